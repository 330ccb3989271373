// Turns JSON text into a document. A quick parser takes what is plainly right: lists of integers
// as whole columns, text without copies in between. At the first thing it does not take, the whole
// text goes through the JSON library instead, which knows what is wrong with it and where.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "traces/error.h"
#include "traces/json_reader.h"
#include "traces/quoted.h"

namespace tidemark {
namespace {

/// "3:17": where byte number `position` (from one) of `text` stands.
std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position == 0 ? 0 : position - 1);
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t line_begin = lines == 0 ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}", lines + 1, before.size() - line_begin + 1);
}

/// The parser's own words without its "[json.exception…] parse error at line 1, column 2: ".
std::string reason(std::string_view what) {
  for (const std::string_view prefix : {"] ", "column ", ": "}) {
    const std::size_t found = what.find(prefix);
    if (found != std::string_view::npos)
      what.remove_prefix(found + prefix.size());
    else
      break;
  }
  return printable(what, 240);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// May stand in a text as it is: no quote, no backslash, no control character, and ASCII.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/// The first of [at, end) that is not plain. Eight bytes at a time: a bit is set for each byte
/// with the high bit, below 0x20, or equal to the quote or backslash. A borrow can set a wrong bit
/// only behind a right one, and only the first one counts.
const char* end_of_plain(const char* at, const char* end) {
  constexpr std::uint64_t each = 0x0101010101010101;
  if constexpr (std::endian::native == std::endian::little)
    for (; end - at >= 8; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, sizeof word);
      const std::uint64_t special = (word | (word - each * 0x20) | ((word ^ each * '"') - each) |
                                     ((word ^ each * '\\') - each)) &
                                    each * 0x80;
      if (special != 0) return at + std::countr_zero(special) / 8;
    }
  while (at != end && is_plain(*at)) ++at;
  return at;
}

}  // namespace

/// Appends values to a document: the quick parser's, or the JSON library's events.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(JsonDocument& document, std::string_view text) : document_(document), text_(text) {
    intern("");
  }

  bool null() override { return add(JsonKind::Null, {.integer = 0}); }
  bool boolean(bool value) override { return add(JsonKind::Boolean, {.integer = value}); }
  bool number_integer(std::int64_t value) override {
    return add(JsonKind::Integer, {.integer = value});
  }
  bool number_unsigned(std::uint64_t value) override {
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    if (value <= largest) return number_integer(static_cast<std::int64_t>(value));
    return number(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) override { return number(value); }
  bool number(double value) { return add(JsonKind::Number, {.number = value}); }
  bool string(std::string& value) override { return plain_text(value); }
  bool plain_text(std::string_view value) {
    const std::uint64_t begin = document_.texts_.size();
    document_.texts_ += value;
    return add(JsonKind::Text, {.text = begin << 32 | value.size()});
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // never in JSON text

  bool start_object(std::size_t) override { return open(JsonKind::Object); }
  bool start_array(std::size_t) override { return open(JsonKind::List); }
  bool key(std::string& key) override { return plain_key(key); }
  bool plain_key(std::string_view key) { return key_ = intern(key), true; }
  bool end_array() override { return close(), true; }
  bool end_object() override {
    reject_duplicate_keys(close());
    return true;
  }

  /// Ends the list that was just opened: these are all its values.
  void end_array_of(const std::vector<std::int64_t>& values) {
    // Of a short list, like a shape, values of the common form are smaller.
    constexpr std::size_t shortest = 16;
    if (values.size() < shortest) {
      for (const std::int64_t value : values) number_integer(value);
      end_array();
      return;
    }
    require_room(values.size());
    in_columns_ += values.size();
    JsonDocument::Value& list = document_.values_[close()];
    list.is_column = true;
    list.column = document_.columns_.size();
    document_.columns_.emplace_back(values);
  }

  /// Throws InputError if the document gets too large with so many more values.
  void require_room(std::size_t count) const {
    if (document_.values_.size() + in_columns_ + count > JsonDocument::max_values)
      throw InputError(fmt::format("{}: more than {} values; this is not a file for Tidemark",
                                   document_.file_, JsonDocument::max_values));
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    throw InputError(fmt::format("{}:{}: {}", document_.file_, line_and_column(text_, position),
                                 reason(error.what())));
  }

 private:
  using Value = JsonDocument::Value;

  // Objects in a list mostly have the same keys in the same order.
  std::uint32_t intern(std::string_view text) {
    if (!behind_.empty())
      if (const std::uint32_t guess = behind_[last_]; document_.strings_[guess] == text)
        return last_ = guess;
    auto known = ids_.find(text);
    if (known == ids_.end()) {
      const auto id = static_cast<std::uint32_t>(document_.strings_.size());
      known = ids_.emplace(document_.strings_.emplace_back(text), id).first;
      behind_.push_back(0);
    }
    behind_[last_] = known->second;
    return last_ = known->second;
  }

  bool add(JsonKind kind, Value value) {
    require_room(1);
    value.kind = kind;
    value.key = std::exchange(key_, 0);
    document_.values_.push_back(value);
    return true;
  }

  bool open(JsonKind kind) {
    const auto index = static_cast<std::uint32_t>(document_.values_.size());
    // An open container reaches to the end of the document, so that pointers can be made already.
    add(kind, {.end = std::numeric_limits<std::uint32_t>::max()});
    if (open_.size() == JsonDocument::max_depth)
      document_.fail_at(index, fmt::format("more than {} levels of nesting; a file for Tidemark "
                                           "needs fewer",
                                           JsonDocument::max_depth));
    open_.push_back(index);
    return true;
  }

  std::uint32_t close() {
    const std::uint32_t index = open_.back();
    open_.pop_back();
    document_.values_[index].end = document_.values_.size();
    return index;
  }

  void reject_duplicate_keys(std::uint32_t object) {
    keys_.clear();
    const auto end = static_cast<std::uint32_t>(document_.values_.size());
    for (std::uint32_t i = object + 1; i < end; i = document_.next(i))
      keys_.push_back(document_.values_[i].key);
    std::ranges::sort(keys_);
    const auto twice = std::ranges::adjacent_find(keys_);
    if (twice == keys_.end()) return;
    document_.fail_at(object, fmt::format("found the key '{}' twice; keep one of them",
                                          printable(document_.strings_[*twice], 64)));
  }

  JsonDocument& document_;
  std::string_view text_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;  // of document_.strings_
  std::vector<std::uint32_t> behind_;  // by key: the one that came after it the last time
  std::uint32_t last_ = 0;             // key that was read last
  std::uint32_t key_ = 0;              // of the value that comes next
  std::size_t in_columns_ = 0;         // values that stand in columns
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> keys_;  // scratch
};

/// A parser by descent. It takes a part of JSON's texts, and no others: where a member function
/// returns false, the text is wrong or unusual. The builder limits the depth.
class QuickJsonParser {
 public:
  QuickJsonParser(std::string_view text, JsonBuilder& builder)
      : at_(text.data()), end_(text.data() + text.size()), builder_(builder) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
  }

  bool parse() {
    if (!value()) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  bool is(char c) const { return at_ != end_ && *at_ == c; }
  bool take(char c) { return is(c) && (++at_, true); }
  bool take(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }
  /// Whether there was at least one.
  bool take_digits() {
    const char* begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool value();
  bool object();
  bool list();
  bool number();
  bool text(std::string_view& text);
  bool is_short_integer(std::int64_t& value);

  const char* at_;
  const char* end_;
  JsonBuilder& builder_;
  std::string decoded_;
  std::vector<std::int64_t> integers_;  // at the beginning of a list
};

bool QuickJsonParser::value() {
  skip_space();
  if (at_ == end_) return false;
  std::string_view found;
  switch (*at_) {
    case '{':
      return object();
    case '[':
      return list();
    case '"':
      return text(found) && builder_.plain_text(found);
    case 't':
      return take("true") && builder_.boolean(true);
    case 'f':
      return take("false") && builder_.boolean(false);
    case 'n':
      return take("null") && builder_.null();
    default:
      return number();
  }
}

bool QuickJsonParser::object() {
  ++at_;
  builder_.start_object(0);
  skip_space();
  if (take('}')) return builder_.end_object();
  for (;;) {
    std::string_view key;
    skip_space();
    if (!is('"') || !text(key)) return false;
    builder_.plain_key(key);
    skip_space();
    if (!take(':') || !value()) return false;
    skip_space();
    if (take('}')) return builder_.end_object();
    if (!take(',')) return false;
  }
}

bool QuickJsonParser::list() {
  ++at_;
  builder_.start_array(0);
  skip_space();
  if (take(']')) return builder_.end_array();
  integers_.clear();
  for (std::int64_t integer = 0; is_short_integer(integer);) {
    integers_.push_back(integer);
    skip_space();
    if (take(']')) return builder_.end_array_of(integers_), true;
    if (!take(',')) return false;
    skip_space();
    if (integers_.size() > JsonDocument::max_values) builder_.require_room(integers_.size());
  }
  for (const std::int64_t integer : integers_) builder_.number_integer(integer);
  for (;;) {
    if (!value()) return false;
    skip_space();
    if (take(']')) return builder_.end_array();
    if (!take(',')) return false;
  }
}

/// Takes an integer of at most 18 digits, which all fit; or nothing, and returns false.
bool QuickJsonParser::is_short_integer(std::int64_t& value) {
  const char* at = at_;
  const bool is_negative = at != end_ && *at == '-';
  if (is_negative) ++at;
  const char* begin = at;
  value = 0;
  for (; at != end_ && is_digit(*at) && at - begin < 18; ++at) value = value * 10 + (*at - '0');
  if (at == begin || (*begin == '0' && at - begin > 1)) return false;
  if (at != end_ && (is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E')) return false;
  if (is_negative) value = -value;
  at_ = at;
  return true;
}

bool QuickJsonParser::number() {
  if (std::int64_t integer = 0; is_short_integer(integer)) return builder_.number_integer(integer);
  const char* begin = at_;
  const bool is_negative = take('-');
  const char* digits = at_;
  if (!take_digits() || (*digits == '0' && at_ - digits > 1)) return false;
  bool is_whole = true;
  if (take('.')) {
    is_whole = false;
    if (!take_digits()) return false;
  }
  if (take('e') || take('E')) {
    is_whole = false;
    if (!take('+')) take('-');
    if (!take_digits()) return false;
  }
  const auto parsed = [&](auto& value) {
    return std::from_chars(begin, at_, value).ec == std::errc();
  };
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  double real = 0;
  if (is_whole && parsed(integer)) return builder_.number_integer(integer);
  if (is_whole && !is_negative && parsed(natural)) return builder_.number_unsigned(natural);
  return parsed(real) && builder_.number(real);
}

/// Takes a text in quotes. What has escapes or is not ASCII is left to the JSON library.
bool QuickJsonParser::text(std::string_view& text) {
  const char* begin = ++at_;
  at_ = end_of_plain(at_, end_);
  text = {begin, at_};
  if (take('"')) return true;
  while (at_ != end_ && *at_ != '"') at_ += *at_ == '\\' && end_ - at_ > 1 ? 2 : 1;
  if (!take('"')) return false;
  const auto decoded = nlohmann::json::parse(begin - 1, at_, nullptr, false);
  if (!decoded.is_string()) return false;
  text = decoded_ = decoded.get_ref<const std::string&>();
  return true;
}

JsonDocument::Column::Column(const std::vector<std::int64_t>& values) {
  const auto is_narrow = [](std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
  };
  if (std::ranges::all_of(values, is_narrow)) {
    narrow_.reserve(values.size());
    for (const std::int64_t value : values) narrow_.push_back(static_cast<std::int32_t>(value));
  } else {
    wide_ = values;
  }
}

JsonDocument::JsonDocument(std::string_view text, std::string_view file) : file_(file) {
  if (text.size() > static_cast<std::size_t>(max_size.count))
    throw InputError(fmt::format("{}: found {} of JSON; the limit is {}", file_,
                                 to_text(Bytes{static_cast<std::int64_t>(text.size())}),
                                 to_text(max_size)));
  if (JsonBuilder builder(*this, text); QuickJsonParser(text, builder).parse()) return;
  values_.clear(), columns_.clear(), strings_.clear(), texts_.clear();
  JsonBuilder builder(*this, text);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace tidemark
