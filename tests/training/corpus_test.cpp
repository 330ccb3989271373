// Bytes that occur are numbered, pages are read by name, and a folder without pages is an error.
#include "examples/training/corpus.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::training::corpus_test {
namespace {

TEST(Corpus, NumbersTheBytesThatOccur) {
  const Corpus corpus = corpus_of("banana\xff");
  EXPECT_EQ(corpus.vocabulary, 4);
  EXPECT_THAT(corpus.tokens, testing::ElementsAre(1, 0, 2, 0, 2, 0, 3));
}

TEST(Corpus, PagesAreReadByName) {
  const std::string folder = testing::TempDir() + "corpus_test";
  std::filesystem::create_directories(folder);
  write_file(folder + "/b.md", "second ");
  write_file(folder + "/a.md", "first ");
  write_file(folder + "/own.md", "never");
  write_file(folder + "/a.txt", "never");
  EXPECT_EQ(read_pages(folder, "own.md"), "first second ");
}

TEST(Corpus, NoPageIsAnError) {
  const std::string folder = testing::TempDir() + "corpus_test_empty";
  std::filesystem::create_directories(folder);
  EXPECT_THROW(read_pages(folder, ""), InputError);
}

}  // namespace
}  // namespace tidemark::training::corpus_test
