// Takes the columns of a timeline file apart. Every index is checked while it is read, everything
// else by defect_of().
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/recording/packed_columns.h"
#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "base/quoted.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

using Keys = std::vector<std::string_view>;

/// What the numbers of one kind mean in this program, by what they are in the file.
template <typename Names>
std::vector<std::size_t> read_names(JsonView list, const Names& known) {
  std::vector<std::size_t> meanings;
  for (const JsonView name : list.items()) {
    const auto found = std::ranges::find(known, name.text());
    if (found == known.end()) name.fail(unknown_name("name", printable(name.text()), known));
    meanings.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return meanings;
}

class RecordingReader {
 public:
  RecordingReader(JsonView root, std::string_view file, PackedColumns packed)
      : root_(root), file_(file), packed_(std::move(packed)) {}
  Recording read();

 private:
  void read_head();
  void read_numbers();
  void read_meanings(JsonView names);
  void read_buffers(JsonView view);
  void read_offsets(JsonView view);
  void read_encodings(JsonView buffers, JsonView view);
  void read_steps(JsonView view);
  Step read_step(std::size_t kind, std::int64_t of, StreamId stream, JsonView view);
  void read_operands();
  void read_runs(JsonView view);
  void read_memory(JsonView view);
  void read_decisions(JsonView view);

  /// Largest index into something of this size; with nothing to choose from, none is right.
  static std::int64_t last(std::size_t size) { return static_cast<std::int64_t>(size) - 1; }
  Nanoseconds time(std::string_view key) const {
    return Nanoseconds{root_.at(key).integer(0, longest_step.count())};
  }
  Schedule& schedule() { return recording_.schedule; }

  JsonView root_;
  std::string_view file_;
  PackedColumns packed_;
  Recording recording_;
  std::vector<std::size_t> steps_, tasks_, roles_, categories_;
};

Recording RecordingReader::read() {
  read_head();
  read_numbers();
  read_meanings(root_.at("names"));
  recording_.trace = std::make_shared<const Trace>(
      read_trace(root_.at("trace"), fmt::format("{}: /trace", file_)));
  read_buffers(root_.at("buffers"));
  packed_.forget("buffers");
  read_steps(root_.at("steps"));
  packed_.forget("steps"), packed_.forget("run_steps");
  read_operands();
  packed_.forget("operands");
  read_runs(root_.at("runs"));
  packed_.forget("runs");
  read_memory(root_.at("memory"));
  packed_.forget("memory");
  if (const auto decisions = root_.find("decisions")) read_decisions(*decisions);
  if (const std::string defect = defect_of(recording_); !defect.empty())
    throw InputError(fmt::format("{}: {}", file_, defect));
  return std::move(recording_);
}

void RecordingReader::read_head() {
  const auto format = root_.find("format");
  if (!format || format->text() != timeline_format)
    root_.fail(fmt::format("not a timeline file; need \"format\": \"{}\"", timeline_format));
  if (const JsonView version = root_.at("version");
      version.integer() < oldest_timeline_version || version.integer() > timeline_version)
    version.fail(fmt::format("found {}; this program reads versions {} to {}", version.integer(),
                             oldest_timeline_version, timeline_version));
  static const Keys keys = {
      "format",      "version", "source",  "strategy",          "device",     "capacity_bytes",
      "duration_ns", "host_ns", "idle_ns", "waits_for_host_ns", "overlap_ns", "planned_bytes",
      "streams",     "events",  "names",   "buffers",           "steps",      "run_steps",
      "operands",    "runs",    "memory",  "decisions",         "trace",      "encodings"};
  root_.allow_only(keys);
}

void RecordingReader::read_numbers() {
  const JsonView source = root_.at("source");
  const auto* found = std::ranges::find(sources, source.text(), &Named<Source>::name);
  if (found == sources.end())
    source.fail(unknown_name("source", printable(source.text()), names_of(sources)));
  recording_.source = found->value;
  recording_.strategy = root_.at("strategy").text();
  recording_.device = root_.at("device").text();
  recording_.capacity = {root_.integer_or("capacity_bytes", 0)};
  recording_.planned = {root_.integer_or("planned_bytes", 0)};
  Timeline& timeline = recording_.timeline;
  timeline.duration = time("duration_ns");
  timeline.host = time("host_ns");
  timeline.idle = time("idle_ns");
  timeline.waits_for_host = time("waits_for_host_ns");
  timeline.overlap = time("overlap_ns");
  schedule().streams = static_cast<std::size_t>(root_.at("streams").integer(1, 0xffff));
  schedule().events = static_cast<std::size_t>(root_.at("events").integer(0, 0xfffffffe));
}

void RecordingReader::read_meanings(JsonView names) {
  static const Keys keys = {"step", "task", "role", "category"};
  names.allow_only(keys);
  steps_ = read_names(names.at("step"), Keys(step_kinds.begin(), step_kinds.end()));
  tasks_ = read_names(names.at("task"), names_of(tasks));
  roles_ = read_names(names.at("role"), names_of(roles));
  categories_ = read_names(names.at("category"), names_of(categories));
}

void RecordingReader::read_buffers(JsonView view) {
  static const Keys keys = {"bytes",  "tensor",     "role",   "category",
                            "stream", "persistent", "offset", "encoding"};
  view.allow_only(keys);
  Column bytes(view, "bytes", packed_), tensor(view, "tensor", packed_),
      role(view, "role", packed_), category(view, "category", packed_),
      stream(view, "stream", packed_), persistent(view, "persistent", packed_);
  const std::size_t count = bytes.size();
  schedule().buffers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Buffer buffer{.size = {bytes.next(0, largest_size)}};
    const std::int64_t of = tensor.next(no_number, last(recording_.trace->tensors.size()));
    if (of != no_number) buffer.tensor = static_cast<TensorId>(of);
    buffer.role = role.name<Role>(roles_);
    buffer.category = category.name<Category>(categories_);
    buffer.stream = static_cast<StreamId>(stream.next(0, last(schedule().streams)));
    buffer.persistent = persistent.next(0, 1) == 1;
    if (buffer.persistent)
      recording_.timeline.baseline[static_cast<std::size_t>(buffer.category)] += buffer.size;
    if (recording_.timeline.baseline[static_cast<std::size_t>(buffer.category)].count >
        largest_size)
      view.fail(fmt::format("more than {} persistent", to_text(Bytes{largest_size})));
    schedule().buffers.push_back(buffer);
  }
  for (const Column* column : {&tensor, &role, &category, &stream, &persistent})
    column->require_end();
  if (view.find("offset")) read_offsets(view);
  if (const auto encodings = root_.find("encodings")) read_encodings(view, *encodings);
}

void RecordingReader::read_encodings(JsonView buffers, JsonView view) {
  static const Keys keys = {"bits", "axis", "group", "metadata", "delayed", "format"};
  view.allow_only(keys);
  Column bits(view, "bits", packed_), axis(view, "axis", packed_), group(view, "group", packed_),
      metadata(view, "metadata", packed_);
  const auto number = [](Column& column, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = static_cast<Member>(column.next(0, std::numeric_limits<Member>::max()));
  };
  for (std::size_t i = 0; i < bits.size(); ++i) {
    Encoding& encoding = schedule().encodings.emplace_back();
    number(bits, encoding.bits), number(axis, encoding.axis);
    number(group, encoding.group), number(metadata, encoding.metadata);
  }
  for (const Column* column : {&axis, &group, &metadata}) column->require_end();
  if (view.find("delayed")) {
    Column delayed(view, "delayed", packed_);
    for (Encoding& encoding : schedule().encodings) encoding.delayed = delayed.next(0, 1) != 0;
    delayed.require_end();
  }
  if (view.find("format")) {
    Column format(view, "format", packed_);
    for (Encoding& encoding : schedule().encodings)
      encoding.format = static_cast<CodeFormat>(format.next(0, std::ssize(code_formats) - 1));
    format.require_end();
  }
  if (schedule().encodings.size() > 0xffff) view.fail("more than 65535");
  Column encoding(buffers, "encoding", packed_);
  for (Buffer& buffer : schedule().buffers)
    buffer.encoding = static_cast<std::uint16_t>(encoding.next(0, last(bits.size())));
  encoding.require_end();
}

void RecordingReader::read_offsets(JsonView view) {
  Column offset(view, "offset", packed_);
  recording_.offsets.reserve(schedule().buffers.size());
  for (std::size_t i = 0; i < schedule().buffers.size(); ++i)
    recording_.offsets.push_back(offset.next(0, largest_size));
  offset.require_end();
}

void RecordingReader::read_steps(JsonView view) {
  static const Keys keys = {"kind", "of", "stream"}, run_keys = {"task", "reads", "writes"};
  view.allow_only(keys);
  const JsonView run_steps = root_.at("run_steps");
  run_steps.allow_only(run_keys);
  Column kind(view, "kind", packed_), of(view, "of", packed_), stream(view, "stream", packed_);
  Column task(run_steps, "task", packed_), reads(run_steps, "reads", packed_),
      writes(run_steps, "writes", packed_);
  const std::size_t count = kind.size();
  schedule().steps.reserve(count);
  std::int64_t operands = 0;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() - 1;
    const auto number = kind.name<std::size_t>(steps_);
    const std::int64_t about = of.next(no_number, most);
    const auto on = static_cast<StreamId>(stream.next(0, last(schedule().streams)));
    schedule().steps.push_back(read_step(number, about, on, view));
    Run* run = std::get_if<Run>(&schedule().steps.back());
    if (!run) continue;
    run->task = task.name<Task>(tasks_);
    run->first_operand = static_cast<std::uint32_t>(operands);
    run->reads = static_cast<std::uint32_t>(reads.next(0, most - operands));
    operands += run->reads;
    run->writes = static_cast<std::uint32_t>(writes.next(0, most - operands));
    operands += run->writes;
  }
  for (const Column* column : {&of, &stream, &task, &reads, &writes}) column->require_end();
  if (schedule().events > count)
    root_.at("events").fail(fmt::format("more than the {} steps", count));
  if (Column(root_, "operands", packed_).size() != static_cast<std::size_t>(operands))
    root_.at("operands").fail(fmt::format("need {}, as many as the runs read and write", operands));
}

Step RecordingReader::read_step(std::size_t kind, std::int64_t of, StreamId stream, JsonView view) {
  const auto within = [&](std::size_t count, std::string_view what) {
    if (of < 0 || of > last(count))
      view.fail(fmt::format("step {}: found number {} of {} {}", schedule().steps.size(), of, count,
                            what));
    return static_cast<std::uint32_t>(of);
  };
  const auto buffer = [&] { return BufferId{within(schedule().buffers.size(), "buffers")}; };
  const auto event = [&] { return EventId{within(schedule().events, "events")}; };
  switch (kind) {
    case 0:
      return Allocate{buffer()};
    case 1:
      return Free{buffer(), stream};
    case 2:
      return Run{
          {}, stream, of == no_number ? no_op : OpId{within(recording_.trace->ops.size(), "ops")},
          0,  0,      0};
    case 3:
      return CopyOut{buffer(), stream};
    case 4:
      return CopyIn{buffer(), stream};
    case 5:
      return Record{event(), stream};
    case 6:
      return Wait{event(), stream};
    default:
      return Synchronize{event()};
  }
}

void RecordingReader::read_operands() {
  Column operands(root_, "operands", packed_);
  const std::size_t count = operands.size();
  schedule().operands.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    schedule().operands.push_back(
        static_cast<BufferId>(operands.next(0, last(schedule().buffers.size()))));
}

void RecordingReader::read_runs(JsonView view) {
  static const Keys keys = {"step", "begin_ns", "end_ns"};
  view.allow_only(keys);
  Column step(view, "step", packed_), begin(view, "begin_ns", packed_),
      end(view, "end_ns", packed_);
  const std::size_t count = step.size();
  recording_.timeline.runs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto of = static_cast<std::uint32_t>(step.next(0, last(schedule().steps.size())));
    recording_.timeline.runs.push_back({of, stream_of(schedule(), schedule().steps[of]),
                                        Nanoseconds{begin.next(0, longest_step.count())},
                                        Nanoseconds{end.next(0, longest_step.count())}});
  }
  begin.require_end(), end.require_end();
}

void RecordingReader::read_memory(JsonView view) {
  static const Keys keys = {"time_ns", "buffer", "appears"};
  view.allow_only(keys);
  Column time(view, "time_ns", packed_), buffer(view, "buffer", packed_),
      appears(view, "appears", packed_);
  const std::size_t count = time.size();
  recording_.timeline.memory.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    recording_.timeline.memory.push_back(
        {Nanoseconds{time.next(0, longest_step.count())},
         static_cast<BufferId>(buffer.next(0, last(schedule().buffers.size()))),
         appears.next(0, 1) == 1});
  buffer.require_end(), appears.require_end();
}

void RecordingReader::read_decisions(JsonView view) {
  static const Keys keys = {"texts", "of_tensor"};
  view.allow_only(keys);
  std::vector<std::string_view> texts;
  for (const JsonView text : view.at("texts").items()) texts.push_back(text.text());
  Column of_tensor(view, "of_tensor", packed_);
  for (std::size_t i = 0; i < recording_.trace->tensors.size(); ++i)
    recording_.decisions.emplace_back(
        texts[static_cast<std::size_t>(of_tensor.next(0, last(texts.size())))]);
  of_tensor.require_end();
}

}  // namespace

Recording read_recording(JsonView root, std::string_view file, PackedColumns packed) {
  return RecordingReader(root, file, std::move(packed)).read();
}

}  // namespace tidemark
