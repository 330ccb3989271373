// What the sections of docs/accuracy.md are written with.
#pragma once

#include <fmt/format.h>

#include <string>

#include "analysis/comparison.h"
#include "base/json_reader.h"

namespace tidemark {

inline constexpr double mib = 1048576.0;
inline constexpr double gib = 1073741824.0;

inline double in(Bytes bytes, double unit) { return static_cast<double>(bytes.count) / unit; }

/// By how much the prediction is off: "+1.5 %".
inline std::string percent(double predicted, double published) {
  return fmt::format("{:+.1f} %", (predicted / published - 1) * 100);
}

/// A growing Markdown document.
class Page {
 public:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    text_ += fmt::format(text, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Report predict(const std::string& model, const StepOptions& step, const char* device,
               const char* strategy);

/// Steps that ran in PyTorch's own allocator, from the fixtures in the folder.
void steps_section(Page& page, const std::string& folder);
void captured_section(Page& page, const std::string& folder);

/// Swin on the A100: memory, slopes and times, with what explains the differences.
void swin_section(Page& page, const JsonView& reference);

void torchtune_section(Page& page, const JsonView& reference);

}  // namespace tidemark
