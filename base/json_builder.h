// Builds a JsonDocument value by value. Only the parser includes this.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/json_reader.h"

namespace tidemark {

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
  void end_array_of(const std::vector<std::int64_t>& values);

  /// Throws InputError if the document gets too large with so many more values.
  void require_room(std::size_t count) const {
    if (document_.values_.size() + in_columns_ + count > JsonDocument::max_values) fail_too_large();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override;

 private:
  using Value = JsonDocument::Value;

  // Objects in a list mostly have the same keys in the same order.
  std::uint32_t intern(std::string_view text) {
    if (!behind_.empty())
      if (const std::uint32_t guess = behind_[last_]; document_.strings_[guess] == text)
        return last_ = guess;
    return intern_unexpected(text);
  }
  std::uint32_t intern_unexpected(std::string_view text);

  bool add(JsonKind kind, Value value) {
    require_room(1);
    value.kind = kind;
    value.key = std::exchange(key_, 0);
    document_.values_.push_back(value);
    return true;
  }

  bool open(JsonKind kind);

  std::uint32_t close() {
    const std::uint32_t index = open_.back();
    open_.pop_back();
    document_.values_[index].end = document_.values_.size();
    return index;
  }

  void reject_duplicate_keys(std::uint32_t object);
  [[noreturn]] void fail_too_large() const;

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

}  // namespace tidemark
