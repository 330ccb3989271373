// The long columns of a timeline file, taken out of its text before that is parsed: fifty million
// numbers in one to eight bytes each instead of a JSON value each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/recording/recording.h"
#include "base/json_reader.h"
#include "base/read_progress.h"

namespace tidemark {

/// Integers, each in as many bytes as the widest of them takes.
class PackedColumn {
 public:
  std::size_t size() const { return tiny_.size() + narrow_.size() + wide_.size(); }
  std::int64_t operator[](std::size_t i) const {
    return !tiny_.empty() ? tiny_[i] : !narrow_.empty() ? narrow_[i] : wide_[i];
  }
  void add(std::int64_t value) {
    if (narrow_.empty() && wide_.empty() && value == static_cast<std::uint8_t>(value))
      tiny_.push_back(static_cast<std::uint8_t>(value));
    else if (tiny_.empty() && wide_.empty() && value == static_cast<std::int32_t>(value))
      narrow_.push_back(static_cast<std::int32_t>(value));
    else
      widen_and_add(value);
  }

 private:
  void widen_and_add(std::int64_t value);

  // Two of them are empty.
  std::vector<std::uint8_t> tiny_;
  std::vector<std::int32_t> narrow_;
  std::vector<std::int64_t> wide_;
};

struct PackedColumns {
  std::map<std::string, PackedColumn, std::less<>> by_place;  ///< "operands", "runs/begin_ns"
  std::string_view file = {};                                 ///< a name, for messages

  const PackedColumn* find(std::string_view place) const {
    const auto found = by_place.find(place);
    return found == by_place.end() ? nullptr : &found->second;
  }
  /// Of an object that has been read.
  void forget(std::string_view object) {
    std::erase_if(by_place, [&](const auto& entry) {
      return std::string_view(entry.first).substr(0, entry.first.find('/')) == object;
    });
  }
};

/// Longer lists of plain integers than this are taken out.
inline constexpr std::size_t shortest_packed = 16;

/// A text in which an empty list stands for each list that was taken out.
struct UnpackedText {
  std::string rest;
  PackedColumns columns;
};

/// Takes `operands`, and the columns of `buffers`, `steps`, `run_steps`, `runs` and `memory`.
/// Nothing of a text that is not plainly such an object: whoever parses it then says what is wrong.
UnpackedText take_columns(std::string_view text, std::string_view file,
                          ReadProgress* progress = nullptr);

/// Of a file whose columns were taken out.
Recording read_recording(JsonView root, std::string_view file, PackedColumns packed);

/// Steps through a column in the pace of its neighbours, which must be as long.
class Column {
 public:
  /// Under this key of the file or of an object in it, or among those that were taken out.
  Column(JsonView object, std::string_view key, const PackedColumns& packed);

  std::size_t size() const { return packed_ ? packed_->size() : items_.size(); }
  std::int64_t next(std::int64_t min, std::int64_t max) {
    if (!packed_) return next_item(min, max);
    if (position_ == packed_->size()) fail_short();
    const std::int64_t value = (*packed_)[position_];
    if (value < min || value > max) fail_range(value, min, max);
    ++position_;
    return value;
  }
  /// The enumerator that the file's number stands for.
  template <typename Enum>
  Enum name(const std::vector<std::size_t>& meanings) {
    return static_cast<Enum>(meanings[static_cast<std::size_t>(
        next(0, static_cast<std::int64_t>(meanings.size()) - 1))]);
  }
  void require_end() const;

 private:
  std::int64_t next_item(std::int64_t min, std::int64_t max);
  [[noreturn]] void fail_short() const;
  [[noreturn]] void fail_range(std::int64_t value, std::int64_t min, std::int64_t max) const;

  JsonView list_;
  JsonChildren items_;
  JsonChildren::Iterator next_;
  const PackedColumn* packed_;  // null if the items are all there is
  std::string_view file_;
  std::size_t position_ = 0;
};

}  // namespace tidemark
