// Where the values of a JSON text stand: for messages that point into a user's file, and for
// replacing one value while every other byte stays as its author wrote it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace tidemark::regression {

struct JsonPlace {
  std::size_t begin = 0, end = 0;  ///< bytes [begin, end) of the text
  std::size_t line = 0;            ///< of the first byte, from one
};

class JsonPlaces {
 public:
  /// The text must be well-formed (JsonDocument has accepted it). Values are found down to
  /// `depth` levels below the root.
  explicit JsonPlaces(std::string_view text, std::size_t depth = 5);

  /// Null if there is no value at this JSON pointer. Keys stand in it as they do in the text.
  const JsonPlace* find(std::string_view pointer) const;
  /// Line of the value, or `otherwise`.
  std::size_t line_of(std::string_view pointer, std::size_t otherwise = 1) const;

 private:
  std::map<std::string, JsonPlace, std::less<>> places_;
};

}  // namespace tidemark::regression
