// What the reader and the writer of timeline files agree on: docs/timeline_format.md. A recording
// of a large step has millions of steps, so they are written as columns of small numbers, and the
// file says itself what the numbers of kinds, tasks, roles and categories mean.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/recording/recording.h"
#include "base/json_reader.h"

namespace tidemark {

inline constexpr std::string_view timeline_format = "tidemark-timeline";
/// Counts up when an older program could not read, or would misread, a newer file.
/// 2: buffers of ranges, and the encodings of those and of codes.
inline constexpr int timeline_version = 2;
inline constexpr int oldest_timeline_version = 1;

/// The alternatives of Step, in its order.
inline constexpr std::array<std::string_view, std::variant_size_v<Step>> step_kinds = {
    "allocate", "free", "run", "copy_out", "copy_in", "record", "wait", "synchronize"};

/// 13 days: times of a step may be multiplied by thousands of columns without overflow.
inline constexpr Nanoseconds longest_step{std::int64_t{1} << 50};

/// Number of the buffer, op or event that nothing stands for.
inline constexpr std::int64_t no_number = -1;

/// The first thing that is wrong with a recording whose indices are all in range, as "/pointer:
/// problem"; "" if it is sound: every run is of a step that takes time, on that step's stream and
/// one after the other; every buffer appears at most once and only then disappears; and no sum
/// overflows.
std::string defect_of(const Recording& recording);

/// Of the step: where it runs or takes effect. An Allocate names none, but its buffer does.
StreamId stream_of(const Schedule& schedule, const Step& step);

/// Does a timeline have a run of this step?
bool takes_time(const Step& step);

/// The text of a file, and back. `file` is only a name, for messages.
std::string write_recording_text(const Recording& recording);
Recording read_recording_text(std::string_view json, std::string_view file);
/// Likewise; the text is gone before the recording comes.
Recording read_recording_text(std::string&& json, std::string_view file,
                              ReadProgress* progress = nullptr);
Recording read_recording(JsonView root, std::string_view file);

}  // namespace tidemark
