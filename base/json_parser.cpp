// Turns JSON text into a document. A quick parser takes what is plainly right: lists of integers
// as whole columns, text without copies in between. At the first thing it does not take, the whole
// text goes through the JSON library instead, which knows what is wrong with it and where.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/json_builder.h"

namespace tidemark {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// May stand in a text as it is: no quote, no backslash, no control character, and ASCII.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

const char* end_of_plain(const char* at, const char* end) {
  return std::find_if_not(at, end, is_plain);
}

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

}  // namespace

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
