// What a file is that was named as a model and is none: what Tidemark writes says so itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

struct OtherFile {
  std::string_view format;  ///< as it begins
  std::string_view what;
  std::string_view use;
};

constexpr std::array other_files = {
    OtherFile{"tidemark-timeline", "a timeline",
              "tidemark view, explain MODEL --beside and diff take it; its name ends in "
              ".timeline.json"},
    OtherFile{"tidemark-trace", "a trace", "name it so that it ends in .trace.json"},
    OtherFile{"tidemark-plan", "a plan", "name its model, and give it as --plan FILE"},
    OtherFile{"tidemark-check-report", "a report of tidemark check", "no command takes it"},
    OtherFile{"tidemark-check", "a file of experiments", "tidemark check takes it"},
    OtherFile{"tidemark-device", "a device", "give it as --device FILE"},
    OtherFile{"tidemark-cluster", "a cluster", "give it as --cluster FILE"},
    OtherFile{"tidemark-compare", "a report of tidemark compare", "tidemark diff takes it"},
    OtherFile{"tidemark-sweep", "a report of tidemark compare", "tidemark diff takes it"},
    OtherFile{"tidemark-explain", "a report of tidemark explain", "tidemark diff takes it"},
    OtherFile{"tidemark-replay", "a report of tidemark replay", "tidemark diff takes it"},
    OtherFile{"tidemark-timed-steps", "a list of measured steps", "tidemark calibrate takes it"},
    OtherFile{"tidemark-", "a report of Tidemark's", "no command takes it"}};

}  // namespace

void refuse_other_file(const JsonView& root) {
  if (root.kind() != JsonKind::Object) return;
  if (root.find("traceEvents"))
    root.fail(
        "is a trace of Chrome's format, and no model (Perfetto and chrome://tracing show it)");
  const auto format = root.find("format");
  if (!format || format->kind() != JsonKind::Text) return;
  const auto* row = std::ranges::find_if(
      other_files, [&](const OtherFile& each) { return format->text().starts_with(each.format); });
  if (row != other_files.end())
    root.fail(fmt::format("is {}, and no model ({})", row->what, row->use));
}

}  // namespace tidemark::config
