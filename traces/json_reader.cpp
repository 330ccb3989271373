#include "traces/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "traces/error.h"
#include "traces/files.h"

namespace tidemark {
namespace {

bool is_container(JsonKind kind) { return kind == JsonKind::List || kind == JsonKind::Object; }

/// `text` as it may stand in a one-line message: no control characters, not too long, and not cut
/// inside a UTF-8 sequence.
std::string shown(std::string_view text, std::size_t limit = 64) {
  const bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
    text = text.substr(0, limit);
  }
  std::string result(text);
  std::ranges::replace_if(
      result, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return cut ? result + "…" : result;
}

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
  return shown(what, 240);
}

}  // namespace

/// Receives the parser's events and appends values to a document.
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
    return add(JsonKind::Number, {.number = static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) override {
    return add(JsonKind::Number, {.number = value});
  }
  bool string(std::string& value) override {
    const std::uint64_t begin = document_.texts_.size();
    document_.texts_ += value;
    return add(JsonKind::Text, {.text = begin << 32 | value.size()});
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // never in JSON text

  bool start_object(std::size_t) override { return open(JsonKind::Object); }
  bool start_array(std::size_t) override { return open(JsonKind::List); }
  bool key(std::string& key) override { return key_ = intern(key), true; }
  bool end_array() override { return close(), true; }
  bool end_object() override {
    reject_duplicate_keys(close());
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    throw InputError(fmt::format("{}:{}: {}", document_.file_, line_and_column(text_, position),
                                 reason(error.what())));
  }

 private:
  using Value = JsonDocument::Value;

  std::uint32_t intern(std::string_view text) {
    const auto known = ids_.find(text);
    if (known != ids_.end()) return known->second;
    const auto id = static_cast<std::uint32_t>(document_.strings_.size());
    ids_.emplace(document_.strings_.emplace_back(text), id);
    return id;
  }

  bool add(JsonKind kind, Value value) {
    if (document_.values_.size() == JsonDocument::max_values)
      throw InputError(fmt::format("{}: more than {} values; this is not a file for Tidemark",
                                   document_.file_, JsonDocument::max_values));
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
                                          shown(document_.strings_[*twice])));
  }

  JsonDocument& document_;
  std::string_view text_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;  // of document_.strings_
  std::uint32_t key_ = 0;                                    // of the value that comes next
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> keys_;  // scratch
};

JsonDocument::JsonDocument(std::string_view text, std::string_view file) : file_(file) {
  if (text.size() > static_cast<std::size_t>(max_size.count))
    throw InputError(fmt::format("{}: found {} of JSON; the limit is {}", file_,
                                 to_text(Bytes{static_cast<std::int64_t>(text.size())}),
                                 to_text(max_size)));
  JsonBuilder builder(*this, text);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
}

std::uint32_t JsonDocument::next(std::uint32_t index) const {
  const Value& value = values_[index];
  return is_container(value.kind) ? static_cast<std::uint32_t>(value.end) : index + 1;
}

std::string JsonDocument::pointer_to(std::uint32_t index) const {
  std::string pointer;
  for (std::uint32_t parent = 0; parent != index;) {
    std::uint32_t child = parent + 1;
    std::size_t position = 0;
    for (; next(child) <= index; child = next(child)) ++position;
    pointer += '/';
    if (values_[parent].kind == JsonKind::List)
      pointer += std::to_string(position);
    else
      for (const char c : shown(strings_[values_[child].key]))
        pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    parent = child;
  }
  return pointer;
}

void JsonDocument::fail_at(std::uint32_t index, std::string_view problem) const {
  const std::string pointer = pointer_to(index);
  throw InputError(fmt::format("{}: {}{}{}", file_, pointer, pointer.empty() ? "" : ": ", problem));
}

JsonDocument read_json(const std::string& path) {
  return JsonDocument(read_file(path, JsonDocument::max_size), path);
}

JsonChildren::Iterator& JsonChildren::Iterator::operator++() {
  index_ = document_->next(index_);
  return *this;
}

JsonKind JsonView::kind() const { return document_->values_[index_].kind; }

std::string_view JsonView::key() const {
  return document_->strings_[document_->values_[index_].key];
}

JsonView JsonView::at(std::string_view key) const {
  for (const JsonView member : members())
    if (member.key() == key) return member;
  fail(fmt::format("found no key '{}'; it is required", key));
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  for (const JsonView member : members())
    if (member.key() == key && member.kind() != JsonKind::Null) return member;
  return std::nullopt;
}

JsonChildren JsonView::items() const {
  if (kind() != JsonKind::List) fail_needing("a list");
  return {*document_, index_ + 1, document_->next(index_)};
}

JsonChildren JsonView::members() const {
  if (kind() != JsonKind::Object) fail_needing("an object");
  return {*document_, index_ + 1, document_->next(index_)};
}

std::int64_t JsonView::integer(std::int64_t min, std::int64_t max) const {
  // Above 2^53 a double no longer holds every integer, so there is no telling what was meant.
  constexpr double exact_below = 9007199254740992.0;
  const JsonDocument::Value& value = document_->values_[index_];
  std::optional<std::int64_t> found;
  if (value.kind == JsonKind::Integer) found = value.integer;
  if (value.kind == JsonKind::Number && std::abs(value.number) < exact_below &&
      value.number == std::trunc(value.number))
    found = static_cast<std::int64_t>(value.number);
  if (!found || *found < min || *found > max)
    fail_needing(fmt::format("a whole number from {} to {}", min, max));
  return *found;
}

double JsonView::number(double min, double max) const {
  const JsonDocument::Value& value = document_->values_[index_];
  std::optional<double> found;
  if (value.kind == JsonKind::Integer) found = static_cast<double>(value.integer);
  if (value.kind == JsonKind::Number) found = value.number;
  if (!found || !(*found >= min && *found <= max))
    fail_needing(fmt::format("a number from {} to {}", min, max));
  return *found;
}

std::string_view JsonView::text() const {
  if (kind() != JsonKind::Text) fail_needing("text in quotes");
  const std::uint64_t place = document_->values_[index_].text;
  return std::string_view(document_->texts_).substr(place >> 32, place & 0xffffffff);
}

bool JsonView::boolean() const {
  if (kind() != JsonKind::Boolean) fail_needing("true or false");
  return document_->values_[index_].integer != 0;
}

std::int64_t JsonView::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                  std::int64_t max) const {
  const auto found = find(key);
  return found ? found->integer(min, max) : fallback;
}

double JsonView::number_or(std::string_view key, double fallback, double min, double max) const {
  const auto found = find(key);
  return found ? found->number(min, max) : fallback;
}

std::string_view JsonView::text_or(std::string_view key, std::string_view fallback) const {
  const auto found = find(key);
  return found ? found->text() : fallback;
}

bool JsonView::boolean_or(std::string_view key, bool fallback) const {
  const auto found = find(key);
  return found ? found->boolean() : fallback;
}

void JsonView::allow_only(std::initializer_list<std::string_view> keys) const {
  allow_only(std::vector(keys));
}

void JsonView::allow_only(const std::vector<std::string_view>& keys) const {
  for (const JsonView member : members())
    if (std::ranges::find(keys, member.key()) == keys.end())
      fail(unknown_name("key", shown(member.key()), keys));
}

std::string JsonView::pointer() const { return document_->pointer_to(index_); }

void JsonView::fail(std::string_view problem) const { document_->fail_at(index_, problem); }

void JsonView::fail_needing(std::string_view need) const {
  const JsonDocument::Value& value = document_->values_[index_];
  const std::string found = [&]() -> std::string {
    switch (value.kind) {
      case JsonKind::Null:
        return "null";
      case JsonKind::Boolean:
        return value.integer != 0 ? "true" : "false";
      case JsonKind::Integer:
        return std::to_string(value.integer);
      case JsonKind::Number:
        return fmt::format("{}", value.number);
      case JsonKind::Text:
        return fmt::format("text '{}'", shown(text()));
      case JsonKind::List:
        return "a list";
      case JsonKind::Object:
        return "an object";
    }
    CHECK(false);
    return {};
  }();
  fail(fmt::format("found {}; need {}", found, need));
}

}  // namespace tidemark
