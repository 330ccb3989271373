// A step with all that a view needs, predicted or measured: what ran when, and whose memory it was.
// The file format of timelines (docs/timeline_format.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/read_progress.h"
#include "simulator/derived.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark {

/// Where a recording's times come from.
enum class Source : std::uint8_t { Predicted, Measured };

inline constexpr std::array sources = {Named{Source::Predicted, std::string_view("predicted")},
                                       Named{Source::Measured, std::string_view("measured")}};
static_assert(is_in_order(sources));

struct Recording {
  Source source = Source::Predicted;
  std::string strategy;  ///< as on the command line
  std::string device;    ///< whose times these are: a device file's name, or a backend's
  Bytes capacity;        ///< to fit in; 0 = unknown
  Bytes planned;         ///< size of the arena; 0 = unknown
  std::shared_ptr<const Trace> trace;
  Schedule schedule;
  Timeline timeline;
  /// By buffer: the arena's offset, or empty where unknown.
  std::vector<std::int64_t> offsets = {};
  /// By tensor: what the plan decided and why; or empty.
  std::vector<std::string> decisions = {};
  /// Of a step that was predicted here; no file has it.
  std::shared_ptr<const Derived> derived = {};
};

/// False of profiles without it: nothing is known then, rather than that nothing is there.
bool has_memory(const Recording& recording);

/// "vit-b-16 · pareprop · predicted for a100-80gb"
std::string title(const Recording& recording);

/// Reads `*.timeline.json` and `*.timeline.json.zst`. InputError says file, JSON pointer, what is
/// wrong and what would be right; no input crashes it. `progress`, if given, is told how far it is.
Recording read_recording(const std::string& path, ReadProgress* progress = nullptr);

/// Compressed if the path ends in .zst; written beside, then renamed.
void write_recording(const std::string& path, const Recording& recording);

}  // namespace tidemark
