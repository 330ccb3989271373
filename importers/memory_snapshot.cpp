// Takes frames, stacks, events and blocks out of the pickle while it is read; the few hundred
// segments and the settings come at its end. Keys that are not known are skipped: each PyTorch
// brings some.
#include "importers/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/quoted.h"
#include "importers/pickle.h"

namespace tidemark::importers {
namespace {

enum RecordType : std::uint8_t { FrameRecord, StackRecord, EventRecord, BlockRecord, PairRecord };

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;  // the golden ratio: Knuth's multiplicative hash
  return hash ^ hash >> 29;
}

class SnapshotReader {
 public:
  explicit SnapshotReader(PickleInput& input) : pickle_(input) {}
  MemorySnapshot read();

 private:
  using Items = std::span<const Value>;

  std::optional<Value> take(ValueKind kind, Items items);
  std::optional<Value> take_dict(Items items);
  std::optional<Value> take_list(Items items);
  Value take_frame(Items items);
  Value take_event(Items items);
  Value take_block(Items items);
  StackId stack_of(Items frames);

  void read_events(Value list);
  void read_segment(Value dict);
  void read_settings(Value dict);

  const Value* find(Items items, std::string_view key) const;
  std::string_view key_of(Value value) const {
    return value.kind == ValueKind::Text ? pickle_.text(value) : std::string_view();
  }
  std::int64_t integer(const Value* found, std::string_view key, std::string_view of) const;
  std::int64_t integer_or(Items items, std::string_view key, std::string_view of,
                          std::int64_t otherwise) const;
  Bytes size(const Value* found, std::string_view key, std::string_view of) const;
  Bytes size(Items items, std::string_view key, std::string_view of) const {
    return size(find(items, key), key, of);
  }
  std::string text(Items items, std::string_view key, std::string_view of) const;
  static StackId stack(Value frames);
  /// Of a list, whatever is in it.
  Items list(const Value* value, std::string_view what) const;

  static Value record(RecordType type, std::size_t number) {
    return {ValueKind::Record, type, static_cast<std::int64_t>(number)};
  }

  PickleReader pickle_;
  MemorySnapshot made_;
  std::vector<SnapshotEvent> events_;
  std::vector<SnapshotBlock> blocks_;
  std::unordered_map<std::string, std::uint32_t> frame_numbers_;
  std::unordered_multimap<std::uint64_t, StackId> stack_numbers_;
};

MemorySnapshot SnapshotReader::read() {
  const Value root =
      pickle_.read([this](ValueKind kind, Items items) { return take(kind, items); });
  const Items items = pickle_.items(root);
  const Value* segments = root.kind == ValueKind::Dict ? find(items, "segments") : nullptr;
  const Value* traces = segments ? find(items, "device_traces") : nullptr;
  if (!traces)
    pickle_.fail(
        "this pickle is no memory snapshot; need a dict with segments and device_traces, as "
        "torch.cuda.memory._dump_snapshot(path) writes it");
  if (const Value* settings = find(items, "allocator_settings")) read_settings(*settings);
  for (const Value trace : list(traces, "device_traces")) read_events(pickle_.resolved(trace));
  for (const Value segment : list(segments, "segments")) read_segment(pickle_.resolved(segment));
  std::ranges::sort(made_.segments, {}, &SnapshotSegment::address);
  return std::move(made_);
}

std::optional<Value> SnapshotReader::take(ValueKind kind, Items items) {
  if (kind == ValueKind::Dict) return take_dict(items);
  if (kind == ValueKind::List) return take_list(items);
  // The number of a pool, with each event of newer versions.
  if (items.size() == 2 && items[0].kind == ValueKind::Integer &&
      items[1].kind == ValueKind::Integer)
    return record(PairRecord, 0);
  return {};
}

std::optional<Value> SnapshotReader::take_dict(Items items) {
  bool has_function = false, has_line = false, has_state = false, has_address = false;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view key = key_of(items[i]);
    if (key == "action") return take_event(items);
    has_function |= key == "name";
    has_line |= key == "line";
    has_state |= key == "state";
    has_address |= key == "address" || key == "requested_size";
  }
  if (has_function && has_line) return take_frame(items);
  if (has_state && has_address) return take_block(items);
  return {};
}

std::optional<Value> SnapshotReader::take_list(Items items) {
  const auto is_frame = [](Value value) {
    return value.kind == ValueKind::Record && value.type == FrameRecord;
  };
  if (items.empty() || !std::ranges::all_of(items, is_frame)) return {};
  return record(StackRecord, index(stack_of(items)));
}

Value SnapshotReader::take_frame(Items items) {
  const Frame frame = {.function = text(items, "name", "a frame"),
                       .file = text(items, "filename", "a frame"),
                       .line = integer(find(items, "line"), "line", "a frame")};
  const auto [place, is_new] =
      frame_numbers_.try_emplace(fmt::format("{}\n{}\n{}", frame.function, frame.file, frame.line),
                                 static_cast<std::uint32_t>(made_.frames.size()));
  if (is_new) made_.frames.push_back(frame);
  return record(FrameRecord, place->second);
}

StackId SnapshotReader::stack_of(Items frames) {
  std::uint64_t hash = frames.size();
  for (const Value frame : frames) hash = mix(hash, static_cast<std::uint64_t>(frame.number));
  const auto is_same = [&](std::uint32_t known, Value frame) { return known == frame.number; };
  const auto [begin, end] = stack_numbers_.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (std::ranges::equal(made_.stack(known->second), frames, is_same)) return known->second;
  for (const Value frame : frames)
    made_.stack_frames.push_back(static_cast<std::uint32_t>(frame.number));
  made_.stack_ends.push_back(made_.stack_frames.size());
  const auto id = static_cast<StackId>(made_.stack_ends.size() - 1);
  stack_numbers_.emplace(hash, id);
  return id;
}

// A recording has millions, so that each key is looked at once.
Value SnapshotReader::take_event(Items items) {
  constexpr std::string_view what = "an event";
  SnapshotEvent event;
  const Value *action = nullptr, *address = nullptr, *device_free = nullptr, *bytes = nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view key = key_of(items[i]);
    const Value& value = items[i + 1];
    if (key == "frames") event.stack = stack(value);
    if (key == "action") action = &value;
    if (key == "addr") address = &value;
    if (key == "device_free") device_free = &value;
    if (key == "size") bytes = &value;
    if (key == "stream") event.stream = integer(&value, key, what);
    if (key == "time_us") event.time_us = integer(&value, key, what);
  }
  const auto* known =
      std::ranges::find(snapshot_actions, key_of(*action), &Named<SnapshotAction>::name);
  if (known != snapshot_actions.end()) event.action = known->value;
  if (event.action == SnapshotAction::Unknown) ++made_.unknown_events;
  const bool is_oom = event.action == SnapshotAction::Oom;
  if (event.action < SnapshotAction::Snapshot || is_oom) {
    event.address =
        is_oom ? size(device_free, "device_free", what).count : size(address, "addr", what).count;
    event.size = size(bytes, "size", what);
  }
  events_.push_back(event);
  return record(EventRecord, events_.size() - 1);
}

Value SnapshotReader::take_block(Items items) {
  constexpr std::string_view what = "a block";
  SnapshotBlock block;
  const std::string state = text(items, "state", what);
  const auto* known = std::ranges::find(block_states, state, &Named<BlockState>::name);
  if (known == block_states.end())
    pickle_.fail(fmt::format("a block whose state is {}; need {}", quoted(state),
                             fmt::join(names_of(block_states), ", ")));
  block.state = known->value;
  block.size = size(items, "size", what);
  block.address = integer_or(items, "address", what, -1);
  block.requested =
      find(items, "requested_size") ? size(items, "requested_size", what) : block.size;
  if (const Value* frames = find(items, "frames")) block.stack = stack(*frames);
  blocks_.push_back(block);
  return record(BlockRecord, blocks_.size() - 1);
}

void SnapshotReader::read_events(Value trace) {
  auto& events = made_.events.emplace_back();
  for (const Value value : list(&trace, "device_traces")) {
    const Value event = pickle_.resolved(value);
    if (event.kind != ValueKind::Record || event.type != EventRecord)
      pickle_.fail("device_traces holds something without an action; need events only");
    events.push_back(events_[static_cast<std::size_t>(event.number)]);
  }
}

void SnapshotReader::read_segment(Value dict) {
  constexpr std::string_view what = "a segment";
  const Items items = pickle_.items(dict);
  SnapshotSegment segment = {.address = size(items, "address", what).count,
                             .size = size(items, "total_size", what),
                             .stream = integer_or(items, "stream", what, 0),
                             .device = integer_or(items, "device", what, 0),
                             .blocks = {}};
  if (const Value* expandable = find(items, "is_expandable"))
    segment.is_expandable = expandable->number != 0;
  std::int64_t next = segment.address;
  for (const Value value : list(find(items, "blocks"), "blocks")) {
    const Value record = pickle_.resolved(value);
    if (record.kind != ValueKind::Record || record.type != BlockRecord)
      pickle_.fail("a segment holds a block without a state; need blocks only");
    SnapshotBlock block = blocks_[static_cast<std::size_t>(record.number)];
    // Before 2.1 blocks had no address of their own: they follow one another.
    if (block.address < 0) block.address = next;
    if (block.address < next ||
        block.size > Bytes{segment.address} + segment.size - Bytes{block.address})
      pickle_.fail(
          fmt::format("a block of {} B at 0x{:x} does not fit into its segment of {} B at "
                      "0x{:x} behind the block before",
                      block.size.count, block.address, segment.size.count, segment.address));
    next = block.address + block.size.count;
    segment.blocks.push_back(block);
  }
  made_.segments.push_back(std::move(segment));
}

void SnapshotReader::read_settings(Value value) {
  const Items items = pickle_.items(value);
  if (const Value* conf = find(items, "PYTORCH_CUDA_ALLOC_CONF"); conf && key_of(*conf) != "")
    made_.settings_text = key_of(*conf);
  allocator::AllocatorSettings& settings = made_.settings;
  if (const Value* most = find(items, "max_split_size");
      most && most->kind == ValueKind::Integer && most->number > 0)
    settings.max_split_size = Bytes{most->number};
  if (const Value* expandable = find(items, "expandable_segments"))
    settings.expandable_segments = expandable->number != 0;
  const Value* divisions = find(items, "roundup_power2_divisions");
  if (!divisions) return;
  // By the first size in MiB that they are for: "1", "2", "4", …
  const Items by_size = pickle_.items(pickle_.resolved(*divisions));
  for (std::size_t i = 0; i < settings.roundup_divisions.size(); ++i)
    if (const Value* count = find(by_size, std::to_string(1 << i));
        count && count->kind == ValueKind::Integer && count->number > 0 && count->number <= 1 << 20)
      settings.roundup_divisions[i] = count->number;
}

const Value* SnapshotReader::find(Items items, std::string_view key) const {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].kind == ValueKind::Text && pickle_.text(items[i]) == key) return &items[i + 1];
  return nullptr;
}

std::int64_t SnapshotReader::integer(const Value* found, std::string_view key,
                                     std::string_view of) const {
  if (!found) pickle_.fail(fmt::format("{} without {}", of, quoted(key)));
  if (found->kind != ValueKind::Integer)
    pickle_.fail(fmt::format("{} whose {} is no whole number", of, quoted(key)));
  return found->number;
}

std::int64_t SnapshotReader::integer_or(Items items, std::string_view key, std::string_view of,
                                        std::int64_t otherwise) const {
  const Value* found = find(items, key);
  return found ? integer(found, key, of) : otherwise;
}

Bytes SnapshotReader::size(const Value* found, std::string_view key, std::string_view of) const {
  // 256 TiB: what addresses of today's processors can name.
  constexpr std::int64_t most = std::int64_t{1} << 48;
  const std::int64_t count = integer(found, key, of);
  if (count < 0 || count > most)
    pickle_.fail(fmt::format("{} whose {} is {}; need 0 to 2^48", of, quoted(key), count));
  return {count};
}

std::string SnapshotReader::text(Items items, std::string_view key, std::string_view of) const {
  const Value* found = find(items, key);
  if (!found || found->kind != ValueKind::Text)
    pickle_.fail(fmt::format("{} whose {} is no text", of, quoted(key)));
  return std::string(pickle_.text(*found));
}

StackId SnapshotReader::stack(Value frames) {
  if (frames.kind != ValueKind::Record || frames.type != StackRecord) return no_stack;
  return static_cast<StackId>(frames.number);
}

SnapshotReader::Items SnapshotReader::list(const Value* value, std::string_view what) const {
  if (!value || value->kind != ValueKind::List)
    pickle_.fail(fmt::format("{} is no list; need one", quoted(what)));
  return pickle_.items(*value);
}

}  // namespace

MemorySnapshot read_memory_snapshot(PickleInput& input) { return SnapshotReader(input).read(); }

MemorySnapshot read_memory_snapshot(const std::string& path) {
  PickleInput input(path);
  return read_memory_snapshot(input);
}

bool is_memory_snapshot(const std::string& path) { return looks_like_pickle(path); }

}  // namespace tidemark::importers
