// Splits the settings into tokens as PyTorch does, odd blanks included, and reads key by key.
#include "simulator/allocator/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"

namespace tidemark::allocator {
namespace {

using namespace literals;

constexpr std::int64_t largest_count = INT32_MAX;  // PyTorch keeps all of these numbers in an int

// Splits at , : [ ] and keeps those as tokens of their own. Blanks vanish, even inside a word.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  bool in_word = false;
  for (const char c : text) {
    if (c == ' ') continue;
    const bool is_mark = c == ',' || c == ':' || c == '[' || c == ']';
    if (is_mark || !in_word) tokens.emplace_back();
    tokens.back() += c;
    in_word = !is_mark;
  }
  return tokens;
}

class SettingsParser {
 public:
  explicit SettingsParser(std::string_view text) : tokens_(tokens_of(text)) {}

  AllocatorSettings parse() {
    while (next_ < tokens_.size()) {
      parse_option(take());
      if (next_ < tokens_.size()) expect(",");
    }
    return settings_;
  }

 private:
  [[noreturn]] static void fail(std::string_view problem, std::string_view need) {
    throw InputError(fmt::format("allocator settings: {}; {}", problem, need));
  }
  [[noreturn]] void fail_value(std::string_view value, std::string_view need) const {
    fail(fmt::format("{} is '{}'", option_, value.substr(0, 64)), need);
  }

  std::string take() { return next_ < tokens_.size() ? tokens_[next_++] : std::string(); }
  bool next_is(std::string_view token) const {
    return next_ < tokens_.size() && tokens_[next_] == token;
  }
  void expect(std::string_view mark) {
    const std::string found = take();
    if (found == mark) return;
    const std::string place = option_.empty() ? "" : fmt::format(" in {}", option_);
    fail(found.empty() ? fmt::format("the text ends{}", place)
                       : fmt::format("found '{}'{}", found.substr(0, 64), place),
         fmt::format("need '{}' here", mark));
  }

  template <class Number>
  static bool read(std::string_view text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }

  std::int64_t take_power_of_two(std::int64_t smallest, std::int64_t largest,
                                 std::string_view need) {
    const std::string text = take();
    std::int64_t value = 0;
    const bool fits = read(text, value) && smallest <= value && value <= largest;
    if (!fits || (value & (value - 1)) != 0) fail_value(text, need);
    return value;
  }

  bool take_bool() {
    const std::string text = take();
    if (text != "True" && text != "False") fail_value(text, "need True or False");
    return text == "True";
  }

  Bytes take_mebibytes() {
    const std::string text = take();
    std::int64_t value = 0;
    if (!read(text, value) || value <= 20 || value > largest_count)
      fail_value(text, fmt::format("need a whole number from 21 to {} (MiB)", largest_count));
    return {value << 20};
  }

  double take_threshold() {
    const std::string text = take();
    double value = 0;
    if (!read(text, value) || !(0 < value && value < 1))
      fail_value(text, "need a number between 0 and 1, both excluded");
    return value;
  }

  // "4", or one number per size in MiB: "[64:8,128:2,>:1]".
  void read_divisions() {
    if (!next_is("[")) {
      settings_.roundup_divisions.fill(
          take_power_of_two(1, largest_count, "need a power of two, or a [list]"));
      return;
    }
    expect("[");
    std::optional<std::size_t> last;
    while (!next_is("]")) {
      if (next_is(">")) {
        read_rest(last.value_or(0));
      } else {
        last = read_interval(!last);
      }
      if (!next_is("]")) expect(",");
    }
    expect("]");
  }

  // ">:1". Covers the last named size itself as well, although it reads as "above".
  void read_rest(std::size_t last) {
    expect(">");
    auto& divisions = settings_.roundup_divisions;
    std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(last), divisions.end(), take_count());
  }

  // "64:8". The first one, even after a ">:1", covers all smaller sizes as well.
  std::size_t read_interval(bool is_first) {
    auto& divisions = settings_.roundup_divisions;
    const std::int64_t mebibytes =
        take_power_of_two(1, INT64_MAX, "need a power of two (MiB), or '>', before ':'");
    const int exponent = std::countr_zero(static_cast<std::uint64_t>(mebibytes));
    const std::size_t index = std::min(static_cast<std::size_t>(exponent), divisions.size() - 1);
    const std::int64_t count = take_count();
    if (is_first) std::fill_n(divisions.begin(), index, count);
    divisions[index] = count;
    return index;
  }

  std::int64_t take_count() {
    expect(":");
    return take_power_of_two(0, largest_count, "need a power of two after ':', or 0 for none");
  }

  void read_max_split() { settings_.max_split_size = take_mebibytes(); }
  void read_max_non_split() { settings_.max_non_split_rounding = take_mebibytes(); }
  void read_threshold() { settings_.garbage_collection_threshold = take_threshold(); }
  void read_expandable() { settings_.expandable_segments = take_bool(); }
  void skip_bool() { take_bool(); }
  void skip_threads() { take_power_of_two(1, 128, "need a power of two up to 128"); }
  void check_backend() {
    const std::string name = take();
    if (name != "native") fail_value(name, "only 'native' is modelled");
  }

  struct Option {
    std::string_view name;
    void (SettingsParser::*read)();
  };
  static const std::array<Option, 10> options;

  void parse_option(std::string_view name) {
    const auto* const option = std::ranges::find(options, name, &Option::name);
    if (option == options.end()) {
      std::vector<std::string_view> known(options.size());
      std::ranges::transform(options, known.begin(), &Option::name);
      throw InputError("allocator settings: " + unknown_name("option", name, known));
    }
    option_ = name;
    expect(":");
    (this->*option->read)();
  }

  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
  std::string option_;  // the one being read, for messages
  AllocatorSettings settings_;
};

constexpr std::array<SettingsParser::Option, 10> SettingsParser::options = {{
    {"max_split_size_mb", &SettingsParser::read_max_split},
    {"max_non_split_rounding_mb", &SettingsParser::read_max_non_split},
    {"roundup_power2_divisions", &SettingsParser::read_divisions},
    {"garbage_collection_threshold", &SettingsParser::read_threshold},
    {"expandable_segments", &SettingsParser::read_expandable},
    {"backend", &SettingsParser::check_backend},
    // From here on: nothing that changes what is allocated on the device.
    {"release_lock_on_cudamalloc", &SettingsParser::skip_bool},
    {"pinned_use_cuda_host_register", &SettingsParser::skip_bool},
    {"pinned_num_register_threads", &SettingsParser::skip_threads},
    {"pinned_use_background_threads", &SettingsParser::skip_bool},
}};

}  // namespace

AllocatorSettings parse_allocator_settings(std::string_view text) {
  return SettingsParser(text).parse();
}

Bytes rounded_size(const AllocatorSettings& settings, Bytes size) {
  if (size <= smallest_block) return smallest_block;
  const int log2 = 63 - std::countl_zero(static_cast<std::uint64_t>(size.count));
  const auto interval = static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15));
  const std::int64_t divisions = settings.roundup_divisions[interval];

  std::int64_t step = smallest_block.count;
  if (divisions > 1 && size.count > step * divisions)
    step = std::int64_t{1} << (log2 - std::countr_zero(static_cast<std::uint64_t>(divisions)));
  return {(size.count + step - 1) & -step};
}

Bytes segment_size(Bytes rounded) {
  if (rounded <= largest_small_block) return 2_MiB;
  if (rounded < 10_MiB) return 20_MiB;
  return {round_up(rounded.count, (2_MiB).count)};
}

}  // namespace tidemark::allocator
