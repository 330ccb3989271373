// Python's pickles as plain data: numbers, texts, lists, tuples and dicts. A pickle is a program
// for a small machine, which Python lets import and call whatever it names; this machine has no
// such instructions, so that reading a file that somebody sent runs nothing.
//
// What is complete may be taken away while the file is still read: a recording has millions of
// small dicts, which a caller keeps in columns instead. Everything is complete when it is put into
// something else, and may not change afterwards; therefore nothing can contain itself, too.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/pickle_input.h"

namespace tidemark::importers {

enum class ValueKind : std::uint8_t { None, Bool, Integer, Float, Text, List, Tuple, Dict, Record };

/// A number, or the number of something that the reader keeps. Of a float, which no recording of
/// memory needs, only the kind.
struct Value {
  ValueKind kind = ValueKind::None;
  std::uint8_t type = 0;  ///< of a record: the caller's own word for it
  std::int64_t number = 0;
};

class PickleReader {
 public:
  /// What the caller keeps instead of a complete list, tuple or dict; {} where it is not one of
  /// those that it knows. `items` of a dict are key, value, key, value, …
  using Take = std::function<std::optional<Value>(ValueKind kind, std::span<const Value> items)>;

  explicit PickleReader(PickleInput& input) : input_(input) {}

  /// Runs the file to its end and returns its value. InputError says byte and remedy; any bytes are
  /// a file or an error.
  Value read(const Take& take);

  // While it is read, and afterwards:
  std::string_view text(Value value) const {
    return texts_[static_cast<std::size_t>(value.number)];
  }
  /// Of a list, tuple or dict that was not taken away.
  std::span<const Value> items(Value value) const;
  /// The value itself, or the record that stands for it.
  Value resolved(Value value) const;
  /// An error at the instruction under way.
  [[noreturn]] void fail(std::string_view problem) const { input_.fail(at_, problem); }

 private:
  struct Container {
    std::uint32_t place = 0;  ///< in pool_, or a record's number
    ValueKind kind{};
    std::uint8_t type = 0;  ///< of a record
    std::uint8_t depth = 1;
    bool is_complete = false;
  };

  void begin();
  bool step();  // false at the end
  void refuse(char code) const;
  void push_container(ValueKind kind, std::span<const Value> items);
  void push_text(std::uint64_t length);
  void push_long(std::uint64_t length);
  void push_tuple(std::size_t count);
  void append(std::size_t from);
  void set_items(std::size_t from);
  void memoize(std::uint64_t place);
  void recall(std::uint64_t place);
  std::size_t pop_mark();
  std::uint64_t number(int bytes);
  void push(Value value);
  void need(std::size_t values) const;
  void require_share(std::size_t count, std::string_view what) const;
  void hold(std::span<const Value> items, const Container& container);
  Container& target(ValueKind kind, std::size_t from);
  void put(std::size_t from, Container& into);
  /// Before the items are put into `into`.
  void complete(std::span<const Value> items, Container& into);
  void try_to_take(Container& container);
  std::uint32_t free_place();

  PickleInput& input_;
  const Take* take_ = nullptr;
  std::uint64_t at_ = 0;  ///< of the instruction under way
  std::string_view instruction_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Value> memo_;
  std::vector<Container> containers_;
  std::deque<std::vector<Value>> pool_;
  std::vector<std::uint32_t> free_places_;
  std::size_t held_ = 0;  ///< items in pool_
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::int64_t> text_places_;
};

/// Does the file begin as one that this reader may take?
bool looks_like_pickle(const std::string& path);

}  // namespace tidemark::importers
