// Feeds every file of the given corpus folders to a fuzz target, in name order. This makes the
// corpus, and every crash that was ever added to it, an ordinary test on every compiler.
//   usage: fuzz_<reader> CORPUS_FOLDER_OR_FILE…
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> corpus_files(const fs::path& corpus) {
  if (fs::is_regular_file(corpus)) return {corpus};
  std::vector<fs::path> files;
  if (!fs::is_directory(corpus)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(corpus)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  // A copy of the exact size, so that a sanitizer sees a read past the end.
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s (%zu bytes)\n", path.filename().c_str(), bytes.size());
  std::fflush(stdout);  // names the culprit even if the next line ends the process
  const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& path : corpus_files(argv[i])) {
      replay(path);
      ++replayed;
    }
  }
  std::printf("%zu inputs replayed\n", replayed);
  if (replayed == 0) std::fprintf(stderr, "no corpus: a replay of nothing proves nothing\n");
  return replayed == 0 ? 1 : 0;
}
