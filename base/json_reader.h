// Reads JSON that somebody else wrote. A document is one flat array of values in text order; a
// view is a place in it. A long list of integers is one value with an array of its own. Example:
//   const JsonDocument document = read_json("device.json");
//   const JsonView root = document.root();
//   root.allow_only({"name", "sm_count", "rates"});
//   const std::int64_t sms = root.at("sm_count").integer(1, 1024);
//   for (const JsonView rate : root.at("rates").items()) total += rate.number(0, 1e18);
// Everything that does not fit is an InputError: "device.json: /rates/2: found text 'fast'; need a
// number from 0 to 1e+18". A view costs two words and builds that text only when it fails, so a
// reader of a 100 MB trace may ask for every value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_kind.h"

namespace tidemark {

/// Integer is a number written without fraction or exponent that fits in 64 signed bits.
enum class JsonKind : std::uint8_t { Null, Boolean, Integer, Number, Text, List, Object };

class JsonDocument;
class JsonChildren;

/// One value of a document, which must outlive it.
class JsonView {
 public:
  /// `item` is one of the integers of the column at `index`; without it, the value at `index`.
  JsonView(const JsonDocument& document, std::uint32_t index, std::uint32_t item = whole)
      : document_(&document), index_(index), item_(item) {}

  JsonKind kind() const;
  /// The key that this value stands under in its object; "" elsewhere.
  std::string_view key() const;

  /// The value under `key` of this object. Walks the members: in an object with thousands of them
  /// iterate over members() instead.
  JsonView at(std::string_view key) const;
  /// Like at(), but nothing when the key is absent or its value is null.
  std::optional<JsonView> find(std::string_view key) const;

  JsonChildren items() const;    // of a list
  JsonChildren members() const;  // of an object, in text order

  /// A whole number in [min, max]; 8e10 is one, 0.5 is not.
  std::int64_t integer(std::int64_t min = 0, std::int64_t max = largest_size) const;
  double number(double min, double max) const;
  std::string_view text() const;
  bool boolean() const;

  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min = 0,
                          std::int64_t max = largest_size) const;
  double number_or(std::string_view key, double fallback, double min, double max) const;
  std::string_view text_or(std::string_view key, std::string_view fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  /// Fails on a member of this object whose key is not listed, with the nearest listed one.
  void allow_only(std::initializer_list<std::string_view> keys) const;
  void allow_only(const std::vector<std::string_view>& keys) const;

  /// The JSON pointer: "/ops/17/name", "" for the root.
  std::string pointer() const;
  /// Throws InputError "file: /pointer: problem".
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  friend class JsonDocument;
  friend class JsonChildren;
  static constexpr std::uint32_t whole = 0xffffffff;

  [[noreturn]] void fail_needing(std::string_view need) const;

  const JsonDocument* document_;
  std::uint32_t index_;
  std::uint32_t item_;
};

/// The values of a list or the members of an object, for a range-for.
class JsonChildren {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = JsonView;
    using difference_type = std::ptrdiff_t;
    using pointer = const JsonView*;
    using reference = JsonView;

    explicit Iterator(JsonView view) : view_(view) {}
    JsonView operator*() const { return view_; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const {
      return view_.index_ == other.view_.index_ && view_.item_ == other.view_.item_;
    }

   private:
    JsonView view_;
  };

  JsonChildren(JsonView begin, JsonView end) : begin_(begin), end_(end) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }
  bool empty() const { return begin_ == end_; }
  /// Walks the children, except those of a column.
  std::size_t size() const;

 private:
  Iterator begin_;
  Iterator end_;
};

/// A parsed file: well-formed, no key twice in one object, at most `max_depth` levels.
class JsonDocument {
 public:
  static constexpr std::size_t max_depth = 64;
  static constexpr std::size_t max_values = 100'000'000;
  static constexpr Bytes max_size{std::int64_t{1} << 30};

  /// `file` is only a name, for messages.
  JsonDocument(std::string_view text, std::string_view file);

  JsonView root() const& { return {*this, 0}; }
  JsonView root() const&& = delete;  // the view would outlive the document
  const std::string& file() const { return file_; }

 private:
  friend class JsonView;
  friend class JsonChildren;
  friend class JsonBuilder;

  // Children follow their parent directly; siblings are found by skipping whole subtrees:
  //   {"a": [1, 2], "b": 3}   ->   0 object (end 5) | 1 a: list (end 4) | 2: 1 | 3: 2 | 4 b: 3
  struct Value {
    union {
      std::int64_t integer;  // or a boolean
      double number;
      std::uint64_t text;    // in texts_: begin · 2^32 + size
      std::uint64_t end;     // of a list or object: one past its subtree
      std::uint64_t column;  // of a list that is one: in columns_
    };
    std::uint32_t key = 0;  // in strings_; 0 is ""
    JsonKind kind = JsonKind::Null;
    bool is_column = false;
  };

  /// The values of a long list that holds integers only.
  class Column {
   public:
    explicit Column(const std::vector<std::int64_t>& values);
    std::size_t size() const { return narrow_.size() + wide_.size(); }
    std::int64_t operator[](std::size_t i) const { return wide_.empty() ? narrow_[i] : wide_[i]; }

   private:
    std::vector<std::int32_t> narrow_;  // if all fit, otherwise empty
    std::vector<std::int64_t> wide_;
  };

  std::uint32_t next(std::uint32_t index) const;
  Value value_at(std::uint32_t index, std::uint32_t item) const;
  std::string pointer_to(std::uint32_t index) const;
  [[noreturn]] void fail_at(std::uint32_t index, std::string_view problem) const;

  std::string file_;
  std::vector<Value> values_;
  std::vector<Column> columns_;
  std::deque<std::string> strings_;  // each distinct key once
  std::string texts_;                // all text values, one behind the other
};

/// Parses the file at `path` (a ".zst" is decompressed); its name in messages is the path.
JsonDocument read_json(const std::string& path, FileKind kind);

}  // namespace tidemark
