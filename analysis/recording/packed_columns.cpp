// Walks the text once, and takes what is plainly a list of integers in one of the known places.
#include "analysis/recording/packed_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 5> objects = {"buffers", "steps", "run_steps", "runs",
                                                     "memory"};

/// Values between two words of progress: some milliseconds.
constexpr std::size_t told_every = std::size_t{1} << 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Where a function returns false, the text is wrong or unusual, and is left as it is.
class ColumnTaker {
 public:
  ColumnTaker(std::string_view text, ReadProgress* progress)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), progress_(progress) {}

  bool take_all() {
    return members("", [this](const std::string& name, std::string_view key) {
      if (std::ranges::find(objects, key) != objects.end() && is('{'))
        return members(name + "/", [this](const std::string& place, std::string_view) {
          return column(place) || skip();
        });
      return (key == "operands" && column(name)) || skip();
    });
  }
  UnpackedText finish() && {
    made_.rest.append(copied_, end_);
    return std::move(made_);
  }

 private:
  bool is(char c) const { return at_ != end_ && *at_ == c; }
  bool take(char c) { return is(c) && (++at_, true); }
  void skip_space() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }

  // Of an object; `value(name, key)` goes over each value.
  template <typename Value>
  bool members(const std::string& before, Value value) {
    skip_space();
    if (!take('{')) return false;
    skip_space();
    if (take('}')) return true;
    for (;;) {
      skip_space();
      if (!take('"')) return false;
      const char* const key_begin = at_;
      at_ = std::find_if(at_, end_, [](char c) { return c == '"' || c == '\\'; });
      const std::string_view key(key_begin, at_);
      if (!take('"')) return false;
      skip_space();
      if (!take(':')) return false;
      skip_space();
      if (!value(before + std::string(key), key)) return false;
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return false;
    }
  }

  // Puts it into the columns; or goes back to its begin.
  bool column(const std::string& name) {
    const char* const list = at_;
    PackedColumn values;
    if (integers(values) && values.size() >= shortest_packed && !made_.columns.find(name)) {
      made_.rest.append(copied_, list);
      made_.rest += "[]";
      copied_ = at_;
      made_.columns.by_place.emplace(name, std::move(values));
      return true;
    }
    at_ = list;
    return false;
  }

  bool integers(PackedColumn& values) {
    if (!take('[')) return false;
    for (;;) {
      skip_space();
      std::int64_t value = 0;
      if (!integer(value)) return false;
      values.add(value);
      if (progress_ && values.size() % told_every == 0)
        progress_->reach(static_cast<double>(at_ - begin_) / static_cast<double>(end_ - begin_));
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return false;
    }
  }

  // Of at most 18 digits, which all fit.
  bool integer(std::int64_t& value) {
    const bool is_negative = take('-');
    const char* const digits = at_;
    for (; at_ != end_ && is_digit(*at_) && at_ - digits < 18; ++at_)
      value = value * 10 + (*at_ - '0');
    if (at_ == digits || (*digits == '0' && at_ - digits > 1)) return false;
    if (is_negative) value = -value;
    return at_ != end_ && !is_digit(*at_);
  }

  // Over a value of any kind, whatever is in it.
  bool skip() {
    int depth = 0;
    for (; at_ != end_; ++at_) {
      if (*at_ == '"' && !skip_text()) return false;
      if (*at_ == '{' || *at_ == '[') ++depth;
      if (depth == 0 && (*at_ == ',' || *at_ == '}' || *at_ == ']')) return true;
      if (*at_ == '}' || *at_ == ']') --depth;
    }
    return false;
  }

  // To its closing quote.
  bool skip_text() {
    for (++at_; at_ != end_ && *at_ != '"'; ++at_)
      if (*at_ == '\\' && ++at_ == end_) return false;
    return at_ != end_;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* copied_ = begin_;  // up to here the rest is made
  ReadProgress* progress_;       // may be null
  UnpackedText made_;
};

}  // namespace

void PackedColumn::widen_and_add(std::int64_t value) {
  if (wide_.empty() && value == static_cast<std::int32_t>(value)) {
    narrow_.assign(tiny_.begin(), tiny_.end());
    narrow_.push_back(static_cast<std::int32_t>(value));
  } else {
    if (!tiny_.empty()) wide_.assign(tiny_.begin(), tiny_.end());
    if (!narrow_.empty()) wide_.assign(narrow_.begin(), narrow_.end());
    wide_.push_back(value);
    narrow_ = std::vector<std::int32_t>();  // gives the room back, which {} would keep
  }
  tiny_ = std::vector<std::uint8_t>();
}

UnpackedText take_columns(std::string_view text, std::string_view file, ReadProgress* progress) {
  if (progress) progress->begin("reading columns");
  ColumnTaker taker(text, progress);
  if (!taker.take_all()) return {std::string(text), {}};
  UnpackedText made = std::move(taker).finish();
  made.columns.file = file;
  return made;
}

namespace {

std::string place_of(JsonView object, std::string_view key) {
  return object.key().empty() ? std::string(key) : fmt::format("{}/{}", object.key(), key);
}

}  // namespace

Column::Column(JsonView object, std::string_view key, const PackedColumns& packed)
    : list_(object.at(key)),
      items_(list_.items()),
      next_(items_.begin()),
      packed_(packed.find(place_of(object, key))),
      file_(packed.file) {}

std::int64_t Column::next_item(std::int64_t min, std::int64_t max) {
  if (next_ == items_.end()) fail_short();
  const std::int64_t value = (*next_).integer(min, max);
  ++next_;
  return value;
}

void Column::require_end() const {
  if (packed_ ? position_ != packed_->size() : next_ != items_.end())
    list_.fail("is longer than the columns beside it");
}

void Column::fail_short() const { list_.fail("is shorter than the columns beside it"); }

// As a JsonView would say it.
void Column::fail_range(std::int64_t value, std::int64_t min, std::int64_t max) const {
  throw InputError(fmt::format("{}: {}/{}: found {}; need a whole number from {} to {}", file_,
                               list_.pointer(), position_, value, min, max));
}

}  // namespace tidemark
