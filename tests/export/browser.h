// Pages as a browser shows them.
#pragma once

#include <string>

#include "tests/export/tools.h"

namespace tidemark::cli {

inline std::string between(const std::string& text, const std::string& begin,
                           const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

/// The document after its scripts have run; `more` is one more script.
inline std::string dom(const std::string& html, const std::string& width,
                       const std::string& more = "", const std::string& fragment = "") {
  const Folder folder;
  std::string text = html;
  text.insert(text.rfind("</body>"), "<script>" + more + "</script>");
  write_text(folder / "x.html", text);
  Surroundings around;
  around.environment = {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + folder.path().string()};
  const Outcome outcome =
      run_command({"timeout", "60", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                   "--window-size=" + width, "--virtual-time-budget=2000", "--dump-dom",
                   "file://" + (folder / "x.html") + fragment},
                  around);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome.output;
}

inline bool has_browser() { return exports::is_installed("chromium"); }

}  // namespace tidemark::cli
