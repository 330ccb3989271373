// Walks over the text once and notes, by JSON pointer, where each value begins and ends.
#include "analysis/check/json_places.h"

namespace tidemark::regression {
namespace {

/// Walks over text that is known to be well-formed; the bounds are still checked, so that a text
/// that is not does no harm.
class Walker {
 public:
  Walker(std::string_view text, std::size_t depth,
         std::map<std::string, JsonPlace, std::less<>>& places)
      : text_(text), depth_(depth), places_(places) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte-order mark, as the reader takes it
  }

  void walk(const std::string& pointer, std::size_t level) {
    skip_blanks();
    const std::size_t begin = at_, line = line_;
    if (peek() == '{' || peek() == '[') {
      walk_container(pointer, level);
    } else if (peek() == '"') {
      take_text();
    } else {
      while (at_ < text_.size() && text_.find_first_of(",]} \t\r\n", at_) != at_) ++at_;
    }
    if (level <= depth_) places_.emplace(pointer, JsonPlace{begin, at_, line});
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
      } else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') {
        return;
      }
    }
  }

  // With the quotes; no line ends inside, JSON forbids them.
  std::string_view take_text() {
    const std::size_t begin = at_;
    if (at_ < text_.size()) ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = at_ < text_.size() ? at_ + 1 : text_.size();
    return text_.substr(begin, at_ - begin);
  }

  void walk_container(const std::string& pointer, std::size_t level) {
    const bool is_object = text_[at_++] == '{';
    for (std::size_t item = 0; at_ < text_.size(); ++item) {
      skip_blanks();
      if (peek() == '}' || peek() == ']' || at_ >= text_.size()) break;
      std::string name = std::to_string(item);
      if (is_object) {
        const std::string_view key = take_text();
        name = key.size() < 2 ? std::string() : std::string(key.substr(1, key.size() - 2));
        skip_blanks();
        if (peek() == ':') ++at_;
      }
      // Deeper values need no pointer: nobody can ask for them.
      walk(level < depth_ ? pointer + "/" + name : pointer, level + 1);
      skip_blanks();
      if (peek() == ',') ++at_;
    }
    if (at_ < text_.size()) ++at_;  // the bracket
  }

  std::string_view text_;
  std::size_t depth_;
  std::map<std::string, JsonPlace, std::less<>>& places_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

JsonPlaces::JsonPlaces(std::string_view text, std::size_t depth) {
  Walker(text, depth, places_).walk("", 0);
}

const JsonPlace* JsonPlaces::find(std::string_view pointer) const {
  const auto found = places_.find(pointer);
  return found == places_.end() ? nullptr : &found->second;
}

std::size_t JsonPlaces::line_of(std::string_view pointer, std::size_t otherwise) const {
  const JsonPlace* place = find(pointer);
  return place ? place->line : otherwise;
}

}  // namespace tidemark::regression
