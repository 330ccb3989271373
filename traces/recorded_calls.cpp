// Walks the calls once, with what is there.
#include "traces/recorded_calls.h"

#include <utility>

#include "traces/trace_check.h"

namespace tidemark {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 58;

class CallChecker {
 public:
  explicit CallChecker(Defects& defects) : defects_(defects) {}

  void check(std::string_view list, std::span<const std::int64_t> calls) {
    for (std::size_t i = 0; i < calls.size() && is_sound_; ++i)
      if (const std::string_view wrong = play(calls[i]); !wrong.empty()) {
        is_sound_ = false;  // all behind it would be said to be wrong, too
        defects_.add(fmt::format("/allocator_calls/{}/{}", list, i), "found {}; need {}", calls[i],
                     wrong);
      }
  }

 private:
  std::string_view play(std::int64_t call) {
    if (call == 0) return "bytes to allocate, or a number below zero to free";
    if (call > 0) {
      if (call > most_bytes || (present_ += call) > most_bytes)
        return "at most 2^58 bytes present at once";
      sizes_.push_back(call);
      return {};
    }
    const auto made = static_cast<std::int64_t>(sizes_.size());
    if (call < -made || sizes_[static_cast<std::size_t>(made + call)] == 0)
      return "an allocation before it that was not freed yet";
    present_ -= std::exchange(sizes_[static_cast<std::size_t>(made + call)], 0);
    return {};
  }

  Defects& defects_;
  std::vector<std::int64_t> sizes_;  // by allocation; 0: freed
  std::int64_t present_ = 0;
  bool is_sound_ = true;
};

}  // namespace

RecordedCalls read_recorded_calls(JsonView object) {
  object.allow_only({"setup", "first_step", "step", "work"});
  const auto list = [&](std::string_view key) {
    std::vector<std::int64_t> calls;
    const JsonChildren items = object.at(key).items();
    calls.reserve(items.size());
    for (const JsonView call : items) calls.push_back(call.integer(-largest_size, largest_size));
    return calls;
  };
  return {.setup = list("setup"),
          .first_step = list("first_step"),
          .step = list("step"),
          .work = static_cast<std::size_t>(object.at("work").integer())};
}

void check_recorded_calls(const RecordedCalls& calls, Defects& defects) {
  const std::size_t count = calls.setup.size() + calls.first_step.size() + calls.step.size();
  if (count > most_recorded_calls)
    return defects.add("/allocator_calls", "found {} calls; need at most {}", count,
                       most_recorded_calls);
  if (calls.work > calls.step.size())
    defects.add("/allocator_calls/work", "found {}; need at most {}, the calls of the step",
                calls.work, calls.step.size());
  CallChecker checker(defects);
  checker.check("setup", calls.setup);
  checker.check("first_step", calls.first_step);
  checker.check("step", calls.step);
}

}  // namespace tidemark
