// Bytes get token numbers in the order of their values; pages are sorted by path before joining.
#include "examples/training/corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::training {

Corpus corpus_of(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
  std::array<std::int64_t, 256> token_of{};
  Corpus corpus;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte)
    if (occurs[byte]) token_of[byte] = corpus.vocabulary++;
  corpus.tokens.reserve(text.size());
  for (const char c : text) corpus.tokens.push_back(token_of[static_cast<unsigned char>(c)]);
  return corpus;
}

std::string read_pages(const std::string& folder, std::string_view except) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".md" && entry.path().filename() != except)
      paths.push_back(entry.path().string());
  if (paths.empty()) throw InputError(folder + ": no Markdown page to learn from");
  std::ranges::sort(paths);
  std::string text;
  for (const std::string& path : paths) text += read_file(path, FileKind::TrainingData);
  return text;
}

}  // namespace tidemark::training
