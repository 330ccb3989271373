// Bytes → check file → with another baseline → read again. Must be read, with all that people wrote
// kept to the byte, or be refused in one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/check/check_file.h"
#include "base/error.h"

namespace {

using namespace tidemark;

regression::CheckFile read_or_abort(const std::string& text) {
  try {
    return regression::read_check_file(text, "written");
  } catch (const InputError&) {
    std::abort();
  }
}

void write_and_read_again(const regression::CheckFile& file) {
  regression::Baseline baseline =
      file.baseline.value_or(regression::Baseline{"0.0.0", "rules", {}});
  baseline.tidemark += "\"\n";  // text that has to be escaped
  const std::string text = with_baseline(file, baseline);
  const regression::CheckFile again = read_or_abort(text);
  if (again.experiments.size() != file.experiments.size()) std::abort();
  if (again.baseline->tidemark != baseline.tidemark) std::abort();
  if (again.baseline->experiments.size() != baseline.experiments.size()) std::abort();
  // Writing what was read changes nothing.
  if (with_baseline(again, *again.baseline) != text) std::abort();
  const regression::JsonPlace* old = file.places.find("/expected");
  if (old && text.substr(0, old->begin) != file.text.substr(0, old->begin)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    write_and_read_again(regression::read_check_file(text, "fuzz"));
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
