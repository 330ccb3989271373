// Bytes as a config.json: a model, whose head and notes are said in whole lines, or an InputError
// of one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "tests/fuzz/refusals.h"
#include "traces/models/config_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Model model = read_model_config(text, "fuzz");
    if (model.family != family_of(model.config)) std::abort();
    require_one_line(model.head_problem);
    std::ranges::for_each(model.notes, require_one_line);
  } catch (const InputError& error) {
    require_one_line(error.what());
  }
  return 0;
}
