// Reads the events that matter here; all others, and all keys that are not known, are passed over.
#include "importers/kineto_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace tidemark::importers {
namespace {

constexpr double most_us = 1e18;                         // since any epoch
constexpr std::int64_t longest = std::int64_t{1} << 50;  // 13 days, as of a timeline

enum class EventKind : std::uint8_t { Other, Memory, Kernel, Operator, Launch };

class EventReader {
 public:
  explicit EventReader(JsonView root) : events_(root.at("traceEvents")) {}
  KinetoEvents read() &&;

 private:
  void find_begin();
  void read_event(JsonView event, EventKind kind);
  void read_memory(JsonView event);
  std::int64_t time(JsonView event, double later = 0);
  std::uint32_t name(std::string_view text);
  static std::int64_t thread(JsonView event);

  JsonView events_;
  double begin_us_ = std::numeric_limits<double>::max();
  KinetoEvents made_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

std::string_view text_of(JsonView event, std::string_view key) {
  const auto found = event.find(key);
  return found && found->kind() == JsonKind::Text ? found->text() : std::string_view();
}

std::int64_t whole(JsonView object, std::string_view key, std::int64_t otherwise) {
  return object.integer_or(key, otherwise, std::numeric_limits<std::int64_t>::min(),
                           std::numeric_limits<std::int64_t>::max());
}

EventKind kind_of(JsonView event) {
  if (event.kind() != JsonKind::Object || !event.find("ts")) return EventKind::Other;
  if (text_of(event, "name") == "[memory]") return EventKind::Memory;
  if (text_of(event, "ph") != "X") return EventKind::Other;
  const std::string_view category = text_of(event, "cat");
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset")
    return EventKind::Kernel;
  if (category == "cpu_op") return EventKind::Operator;
  if (category == "cuda_runtime" || category == "cuda_driver") return EventKind::Launch;
  // Of annotations those that say a phase: others, as ProfilerStep#3, lie around everything.
  const bool is_phase =
      category == "user_annotation" && text_of(event, "name").starts_with("Optimizer.step#");
  return is_phase ? EventKind::Operator : EventKind::Other;
}

KinetoEvents EventReader::read() && {
  find_begin();
  for (const JsonView event : events_.items()) read_event(event, kind_of(event));
  if (made_.kernels.empty() && made_.operators.empty() && made_.allocations.empty())
    events_.fail(
        "no operator, kernel or allocation is in it (profile a step, and with "
        "profile_memory=True)");
  return std::move(made_);
}

// The earliest of what is kept; metadata may have any time.
void EventReader::find_begin() {
  for (const JsonView event : events_.items())
    if (kind_of(event) != EventKind::Other)
      begin_us_ = std::min(begin_us_, event.at("ts").number(-most_us, most_us));
}

std::int64_t EventReader::time(JsonView event, double later) {
  const double us = event.at("ts").number(-most_us, most_us) - begin_us_ + later;
  const double ns = std::round(us * 1000);
  if (ns > static_cast<double>(longest))
    event.fail("ends more than 13 days behind the first event; need one profile of a few steps");
  made_.duration_ns = std::max(made_.duration_ns, static_cast<std::int64_t>(ns));
  return static_cast<std::int64_t>(ns);
}

std::uint32_t EventReader::name(std::string_view text) {
  const auto [place, is_new] =
      names_.try_emplace(std::string(text), static_cast<std::uint32_t>(made_.names.size()));
  if (is_new) made_.names.emplace_back(text);
  return place->second;
}

// Some events have texts there: "stream 7".
std::int64_t EventReader::thread(JsonView event) {
  const auto found = event.find("tid");
  return found && found->kind() == JsonKind::Integer ? whole(event, "tid", 0) : 0;
}

void EventReader::read_event(JsonView event, EventKind kind) {
  if (kind == EventKind::Other) return;
  if (kind == EventKind::Memory) return read_memory(event);
  const auto args = event.find("args");
  const std::int64_t correlation = args ? whole(*args, "correlation", -1) : -1;
  if (kind == EventKind::Launch) {
    if (correlation >= 0)
      made_.launches.insert_or_assign(correlation, KinetoLaunch{time(event), thread(event)});
    return;
  }
  KinetoSpan span{.begin_ns = time(event),
                  .end_ns = time(event, event.number_or("dur", 0, 0, most_us)),
                  .name = name(text_of(event, "name")),
                  .lane = thread(event)};
  if (kind == EventKind::Operator) return made_.operators.push_back(span);
  span.lane = args ? whole(*args, "stream", span.lane) : span.lane;
  span.device = args ? whole(*args, "device", 0) : 0;
  span.correlation = correlation;
  made_.kernels.push_back(span);
}

void EventReader::read_memory(JsonView event) {
  // As of snapshots: what addresses can name.
  constexpr std::int64_t most = std::int64_t{1} << 48;
  const JsonView args = event.at("args");
  made_.allocations.push_back(
      {.time_ns = time(event),
       .address = whole(args, "Addr", 0),
       .bytes = args.at("Bytes").integer(-most, most),
       .total = args.integer_or("Total Allocated", 0, -most, largest_size),
       .order = whole(args, "Ev Idx", 0),
       .thread = thread(event),
       .device = {whole(args, "Device Type", 0), whole(args, "Device Id", 0)}});
}

}  // namespace

KinetoEvents read_kineto_events(JsonView root) { return EventReader(root).read(); }

}  // namespace tidemark::importers
