// Text as tokens: every byte that occurs is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::training {

struct Corpus {
  std::vector<std::int64_t> tokens;  ///< 0 to vocabulary − 1, numbered by the value of the byte
  std::int64_t vocabulary = 0;
};

Corpus corpus_of(std::string_view text);

/// The Markdown pages in a folder, by name, one behind the other; but not `except`.
std::string read_pages(const std::string& folder, std::string_view except);

}  // namespace tidemark::training
