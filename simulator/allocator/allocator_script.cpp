// The script's operations in one table; each one run prints a line with all counters.
#include "simulator/allocator/allocator_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {
namespace {

using namespace literals;

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Removes the text up to the first of `marks`, or all of it, and returns it without the mark.
std::string_view take_until(std::string_view& text, std::string_view marks) {
  const std::string_view taken = text.substr(0, text.find_first_of(marks));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

class Script {
 public:
  explicit Script(std::string_view file_name) : file_name_(file_name) {}

  std::string run(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      run_line(trim(take_until(text, "\n")));
    }
    return fmt::to_string(output_);
  }

 private:
  struct Operation {
    std::string_view name;
    std::string_view usage;
    void (Script::*run)();
    bool is_setting = false;
  };
  static const std::array<Operation, 8> operations;

  [[noreturn]] void fail(std::string_view problem) const {
    throw InputError(fmt::format("{}:{}: {}", file_name_, line_, problem));
  }

  void run_line(std::string_view line) {
    if (line.empty() || line.front() == '#') return;
    const std::string_view name = take_until(line, " \t");
    rest_ = trim(line);
    operation_ = std::ranges::find(operations, name, &Operation::name);
    if (operation_ == operations.end()) {
      std::vector<std::string_view> known(operations.size());
      std::ranges::transform(operations, known.begin(), &Operation::name);
      fail(unknown_name("operation", name, known));
    }
    if (operation_->is_setting && allocator_)
      fail(fmt::format("'{}' after the first operation; it must come before", name));
    if (!operation_->is_setting && !allocator_) allocator_.emplace(settings_, capacity_, fraction_);
    (this->*operation_->run)();
  }

  std::string_view take_field(std::string_view what) {
    const std::string_view field = take_until(rest_, " \t");
    rest_ = trim(rest_);
    if (field.empty()) fail(fmt::format("{} is missing; need '{}'", what, operation_->usage));
    return field;
  }

  std::int64_t take_number(std::string_view what, std::int64_t smallest = 0,
                           std::int64_t largest = INT64_MAX) {
    const std::string_view field = take_field(what);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (error != std::errc() || end != field.data() + field.size() || number < smallest ||
        number > largest)
      fail(fmt::format("{} is '{}'; need a whole number from {} to {}", what, field.substr(0, 64),
                       smallest, largest));
    return number;
  }

  // A plain number is bytes here, as allocation logs have it.
  std::int64_t take_bytes(std::int64_t smallest = 0, std::int64_t largest = INT64_MAX) {
    const std::string_view field = rest_.substr(0, rest_.find_first_of(" \t"));
    const bool has_unit = !field.empty() && field.find_first_not_of("-0123456789") != field.npos;
    if (!has_unit) return take_number("BYTES", smallest, largest);
    const std::int64_t bytes = bytes_with_unit(take_field("BYTES"));
    if (bytes < smallest || bytes > largest)
      fail(fmt::format("BYTES is '{}'; need a size from {} to {} bytes", field.substr(0, 64),
                       smallest, largest));
    return bytes;
  }

  std::int64_t bytes_with_unit(std::string_view field) const {
    try {
      return parse_bytes(field, "BYTES").count;
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

  void end_of_line() const {
    if (!rest_.empty())
      fail(fmt::format("'{}' is too much; need '{}'", rest_.substr(0, 64), operation_->usage));
  }

  void set_capacity() {
    if (has_capacity_) fail("'cap' is given twice; need it once");
    has_capacity_ = true;
    capacity_ = {take_bytes(1, largest_size)};
    end_of_line();
  }

  void set_settings() {
    if (has_settings_) fail("'conf' is given twice; need one with all settings, joined by ','");
    has_settings_ = true;
    try {
      settings_ = parse_allocator_settings(rest_);
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

  void set_fraction() {
    if (fraction_) fail("'frac' is given twice; need it once");
    const std::string_view field = take_field("F");
    double fraction = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), fraction);
    if (error != std::errc() || end != field.data() + field.size() ||
        !(0 <= fraction && fraction <= 1))
      fail(fmt::format("F is '{}'; need a number from 0 to 1", field.substr(0, 64)));
    fraction_ = fraction;
    end_of_line();
  }

  void allocate() {
    const std::int64_t id = take_number("ID");
    const Bytes size{take_bytes()};
    const std::uint32_t stream = take_stream();
    end_of_line();
    auto& slot = live_[id];
    if (slot) fail(fmt::format("allocation {} is still live; free it first or use another ID", id));
    slot = allocator_->allocate(size, stream);
    report(slot ? allocator_->address(*slot) : 0, slot ? "" : " OOM");
  }

  void free() {
    const auto allocation = take_allocation();
    end_of_line();
    if (allocation->second) allocator_->free(*allocation->second);
    live_.erase(allocation);
    report();
  }

  void record_stream() {
    const auto allocation = take_allocation();
    const std::uint32_t stream = take_stream();
    end_of_line();
    if (allocation->second) allocator_->record_stream(*allocation->second, stream);
    report();
  }

  void complete_events() {
    const auto stream = streams_.find(take_number("STREAM"));
    end_of_line();
    if (stream != streams_.end()) allocator_->complete_events(stream->second);
    report();
  }

  void empty_cache() {
    end_of_line();
    allocator_->empty_cache();
    report();
  }

  // An empty optional is an allocation that failed and may still be freed.
  using Allocations = std::unordered_map<std::int64_t, std::optional<BlockHandle>>;

  Allocations::iterator take_allocation() {
    const std::int64_t id = take_number("ID");
    const auto allocation = live_.find(id);
    if (allocation == live_.end())
      fail(fmt::format("no live allocation {}; need the ID of an 'a' that is not freed yet", id));
    return allocation;
  }

  // Stream handles are any numbers, the allocator's streams count from 0.
  std::uint32_t take_stream() {
    const std::int64_t handle = take_number("STREAM");
    const auto next = static_cast<std::uint32_t>(streams_.size());
    const std::uint32_t stream = streams_.try_emplace(handle, next).first->second;
    if (stream >= CachingAllocator::stream_limit)
      fail(fmt::format("more than {} different streams", CachingAllocator::stream_limit));
    return stream;
  }

  void report(std::int64_t address = 0, std::string_view outcome = "") {
    const AllocatorStats& s = allocator_->stats();
    fmt::format_to(std::back_inserter(output_),
                   "{} {:x} al={} ac={} rs={} rq={} sg={} ab={} is={} isb={} rt={} da={} df={} "
                   "sy={} sp={},{}{}\n",
                   operation_->name, address, s.allocated.count, s.active.count, s.reserved.count,
                   s.requested.count, s.segments, s.active_blocks, s.inactive_split_blocks,
                   s.inactive_split.count, s.retries, s.device_allocs, s.device_frees, s.full_syncs,
                   s.reserved_small.count, s.reserved_large.count, outcome);
  }

  std::string_view file_name_;
  std::size_t line_ = 0;
  const Operation* operation_ = nullptr;  // of this line
  std::string_view rest_;                 // of this line, not read yet

  Bytes capacity_ = 80_GiB;
  bool has_capacity_ = false;
  AllocatorSettings settings_;
  bool has_settings_ = false;
  std::optional<double> fraction_;

  std::optional<CachingAllocator> allocator_;  // from the first operation on
  Allocations live_;
  std::unordered_map<std::int64_t, std::uint32_t> streams_;
  fmt::memory_buffer output_;
};

constexpr std::array<Script::Operation, 8> Script::operations = {{
    {"a", "a ID BYTES STREAM", &Script::allocate},
    {"f", "f ID", &Script::free},
    {"r", "r ID STREAM", &Script::record_stream},
    {"e", "e STREAM", &Script::complete_events},
    {"c", "c", &Script::empty_cache},
    {"cap", "cap BYTES", &Script::set_capacity, true},
    {"conf", "conf SETTINGS", &Script::set_settings, true},
    {"frac", "frac F", &Script::set_fraction, true},
}};

}  // namespace

std::string run_allocator_script(std::string_view text, std::string_view file_name) {
  return Script(file_name).run(text);
}

}  // namespace tidemark::allocator
