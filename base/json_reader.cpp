// Access to a document's values, where each failed demand names its file and JSON pointer.
#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

bool is_container(JsonKind kind) { return kind == JsonKind::List || kind == JsonKind::Object; }

/// Enough of a text or key to find it by.
constexpr std::size_t shown = 64;

}  // namespace

std::uint32_t JsonDocument::next(std::uint32_t index) const {
  const Value& value = values_[index];
  return is_container(value.kind) && !value.is_column ? static_cast<std::uint32_t>(value.end)
                                                      : index + 1;
}

JsonDocument::Value JsonDocument::value_at(std::uint32_t index, std::uint32_t item) const {
  const Value& value = values_[index];
  if (item == JsonView::whole) return value;
  return {.integer = columns_[value.column][item], .kind = JsonKind::Integer};
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
      for (const char c : printable(strings_[values_[child].key], shown))
        pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    parent = child;
  }
  return pointer;
}

void JsonDocument::fail_at(std::uint32_t index, std::string_view problem) const {
  JsonView(*this, index).fail(problem);
}

JsonDocument read_json(const std::string& path, FileKind kind) {
  return JsonDocument(read_file(path, kind), path);
}

JsonChildren::Iterator& JsonChildren::Iterator::operator++() {
  if (view_.item_ == JsonView::whole)
    view_.index_ = view_.document_->next(view_.index_);
  else
    ++view_.item_;
  return *this;
}

std::size_t JsonChildren::size() const {
  const JsonView first = *begin_, last = *end_;
  if (first.item_ != JsonView::whole) return last.item_ - first.item_;
  return static_cast<std::size_t>(std::distance(begin_, end_));
}

JsonKind JsonView::kind() const {
  return item_ == whole ? document_->values_[index_].kind : JsonKind::Integer;
}

std::string_view JsonView::key() const {
  return document_->strings_[document_->value_at(index_, item_).key];
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
  const JsonDocument::Value& value = document_->values_[index_];
  if (!value.is_column) return {{*document_, index_ + 1}, {*document_, document_->next(index_)}};
  const auto size = static_cast<std::uint32_t>(document_->columns_[value.column].size());
  return {{*document_, index_, 0}, {*document_, index_, size}};
}

JsonChildren JsonView::members() const {
  if (kind() != JsonKind::Object) fail_needing("an object");
  return {{*document_, index_ + 1}, {*document_, document_->next(index_)}};
}

std::int64_t JsonView::integer(std::int64_t min, std::int64_t max) const {
  // Above 2^53 a double no longer holds every integer, so there is no telling what was meant.
  constexpr double exact_below = 9007199254740992.0;
  const JsonDocument::Value value = document_->value_at(index_, item_);
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
  const JsonDocument::Value value = document_->value_at(index_, item_);
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
      fail(unknown_name("key", printable(member.key(), shown), keys));
}

std::string JsonView::pointer() const {
  return document_->pointer_to(index_) + (item_ == whole ? "" : fmt::format("/{}", item_));
}

void JsonView::fail(std::string_view problem) const {
  const std::string place = pointer();
  throw InputError(
      fmt::format("{}: {}{}{}", document_->file_, place, place.empty() ? "" : ": ", problem));
}

void JsonView::fail_needing(std::string_view need) const {
  const JsonDocument::Value value = document_->value_at(index_, item_);
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
        return fmt::format("text '{}'", printable(text(), shown));
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
