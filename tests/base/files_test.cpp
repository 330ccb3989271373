// Files and pipes, plain, zstd or gzip, are read within limits, and a failed write leaves the old
// one.
#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/gzip.h"

namespace tidemark::files_test {
namespace {

namespace fs = std::filesystem;
using namespace literals;

class Files : public ::testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("tidemark_files." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string contents(const std::string& path) { return read_file(path, FileKind::TrainingData); }

template <class Action>
std::string files_error(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(Files, WhatIsWrittenIsRead) {
  const std::string text("first\nsecond\0third\xff", 19);
  for (const std::string name : {"a.json", "a.json.zst"}) {
    write_file(path(name), text);
    EXPECT_EQ(contents(path(name)), text);
    write_file(path(name), "");  // and replaced
    EXPECT_EQ(contents(path(name)), "");
  }
  EXPECT_EQ(file_count(), 2u);  // nothing left beside them
}

TEST_F(Files, ZstIsSmallerOnDisk) {
  const std::string text(1'000'000, 'x');
  write_file(path("x.zst"), text);
  EXPECT_LT(fs::file_size(path("x.zst")), 1000u);
  EXPECT_EQ(contents(path("x.zst")), text);
}

TEST_F(Files, MissingFilesAndFoldersAreNamed) {
  EXPECT_EQ(files_error([&] { contents(path("none")); }),
            path("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(files_error([&] { contents(folder_.string()); }),
            folder_.string() + ": cannot read: Is a directory");
  EXPECT_EQ(files_error([&] { write_file(path("none/a.json"), "x"); }),
            path("none/a.json") + ": cannot write: No such file or directory");
  EXPECT_NE(files_error([&] { write_file(folder_.string(), "x"); }), "no error");
  EXPECT_NE(files_error([&] { write_file("", "x"); }), "no error");
}

FileKindRow note_of(Bytes limit) { return {FileKind::TrainingData, "a note", limit, "write less"}; }

TEST_F(Files, TheSizeLimitHoldsOnDiskAndAfterDecompression) {
  write_file(path("a"), std::string(1025, 'x'));
  EXPECT_EQ(files_error([&] { read_file(path("a"), note_of(1_KiB)); }),
            path("a") + ": holds 1.00 KiB; a note may have 1.00 KiB (write less)");
  EXPECT_EQ(read_file(path("a"), note_of(1025_B)).size(), 1025u);

  // A bomb: a few kilobytes on disk, 64 MiB in memory if nobody looks.
  write_file(path("bomb.zst"), std::string(64 << 20, '\0'));
  EXPECT_LT(fs::file_size(path("bomb.zst")), 10'000u);
  EXPECT_EQ(files_error([&] { read_file(path("bomb.zst"), note_of(1_MiB)); }),
            path("bomb.zst") + ": holds 64.0 MiB; a note may have 1.00 MiB (write less)");
  // A frame may claim any size, also one that no signed number holds.
  put(path("claim.zst"), "\x28\xb5\x2f\xfd\xe0" + std::string(8, '\xf0'));
  EXPECT_EQ(files_error([&] { read_file(path("claim.zst"), note_of(1_MiB)); }),
            path("claim.zst") + ": holds 8388608 TiB; a note may have 1.00 MiB (write less)");
}

TEST_F(Files, TheSizeLimitHoldsWhereTheEndIsNotKnownBeforehand) {
  EXPECT_EQ(files_error([&] { read_file("/dev/zero", note_of(1_MiB)); }),
            "/dev/zero: does not end within 1.00 MiB, the most that a note may have (write less)");
}

// A file of two gigabytes is refused by its size, before any of it is read.
TEST_F(Files, EachKindHasALimitThatItsErrorNames) {
  struct Wrong {
    FileKind kind;
    const char* message;
  };
  put(path("huge"), "");
  fs::resize_file(path("huge"), std::uintmax_t{2} << 30);
  for (const auto& [kind, message] :
       {Wrong{FileKind::Config, "a model's config may have 8.00 MiB (name its config.json"},
        Wrong{FileKind::Device, "a device file may have 1.00 MiB ("},
        Wrong{FileKind::Check, "a check file may have 64.0 MiB ("},
        Wrong{FileKind::AllocatorScript, "an allocation script may have 64.0 MiB ("},
        Wrong{FileKind::WindowScript, "a script for the window may have 1.00 MiB ("},
        Wrong{FileKind::Settings, "a settings file may have 64.0 KiB ("},
        Wrong{FileKind::Result, "a replay's result may have 64.0 MiB ("},
        Wrong{FileKind::Trace, "a trace may have 1.00 GiB ("},
        Wrong{FileKind::Recording, "a timeline or report may have 1.00 GiB ("},
        Wrong{FileKind::TrainingData, "a file of training data may have 1.00 GiB ("}}) {
    const std::string error = files_error([&, kind = kind] { read_file(path("huge"), kind); });
    EXPECT_TRUE(error.starts_with(path("huge") + ": holds 2.00 GiB; " + message)) << error;
  }
}

TEST_F(Files, EveryTruncationOfAZstIsAnError) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i * i);
  write_file(path("a.zst"), text);
  const std::string packed = bytes_of(path("a.zst"));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    put(path("cut.zst"), packed.substr(0, size));
    EXPECT_EQ(files_error([&] { contents(path("cut.zst")); }),
              path("cut.zst") + ": not a sound zstd file: it ends early, behind byte " +
                  std::to_string(size) + " (copy it again)");
  }
  put(path("text.zst"), "{\"plain\": \"text\"}");
  EXPECT_EQ(files_error([&] { contents(path("text.zst")); }),
            path("text.zst") +
                ": not a zstd file, although it is named .zst (rename it if it is a "
                "plain text)");
  put(path("tail.zst"), packed + "tail");
  EXPECT_EQ(files_error([&] { contents(path("tail.zst")); }),
            path("tail.zst") + ": not a sound zstd file: Unknown frame descriptor behind byte " +
                std::to_string(packed.size() + 4) + " (copy it again)");
}

/// As gzip compresses it.
void put_gzip(const std::string& path, std::string_view text) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST_F(Files, GzipIsReadAndEveryTruncationIsAnError) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * i);
  put_gzip(path("long.gz"), text);
  EXPECT_EQ(contents(path("long.gz")), text);
  EXPECT_EQ(first_bytes(path("long.gz"), 10), text.substr(0, 10));
  put_gzip(path("a.gz"), text.substr(0, 700));
  const std::string packed = bytes_of(path("a.gz"));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    put(path("cut.gz"), packed.substr(0, size));
    EXPECT_EQ(files_error([&] { contents(path("cut.gz")); }),
              path("cut.gz") + ": not a sound gzip file: it ends early (copy it again)")
        << size;
  }
  put(path("two.gz"), packed + packed);  // as `cat a.gz a.gz` makes it
  EXPECT_EQ(contents(path("two.gz")), text.substr(0, 700) + text.substr(0, 700));
  for (const std::string& wrong : {std::string("{\"plain\": \"text\"}"), packed + "tail",
                                   packed.substr(0, packed.size() - 8) + std::string(8, 'x')}) {
    put(path("wrong.gz"), wrong);
    EXPECT_EQ(files_error([&] { contents(path("wrong.gz")); }),
              path("wrong.gz") + ": not a sound gzip file (copy it again)");
  }
  EXPECT_EQ(first_bytes(path("none.gz"), 10), "");
}

TEST_F(Files, GzipIsNotWritten) {
  const std::string problem =
      path("new.gz") + ": .gz is read, not written (leave it out, or use .zst)";
  EXPECT_EQ(files_error([&] { write_file(path("new.gz"), "text"); }), problem);
  EXPECT_EQ(files_error([&] { require_writable(path("new.gz")); }), problem);
  EXPECT_FALSE(fs::exists(path("new.gz")));
}

TEST_F(Files, AGzipBombIsRefused) {
  put_gzip(path("bomb.gz"), std::string(64 << 20, '\0'));
  EXPECT_LT(fs::file_size(path("bomb.gz")), 100'000u);
  const std::string error = files_error([&] { read_file(path("bomb.gz"), note_of(1_MiB)); });
  EXPECT_TRUE(error.ends_with("1.00 MiB, the most that a note may have (write less)")) << error;
}

TEST_F(Files, SeveralFramesAreOneText) {  // as `cat a.zst b.zst` makes them
  write_file(path("a.zst"), "one ");
  write_file(path("b.zst"), "two");
  put(path("ab.zst"), bytes_of(path("a.zst")) + bytes_of(path("b.zst")));
  EXPECT_EQ(contents(path("ab.zst")), "one two");
}

TEST_F(Files, PipesAreReadToTheirEnd) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path("pipe")) << "abc"; });  // waits for a reader
  EXPECT_EQ(contents(path("pipe")), "abc");
  writer.join();
}

TEST_F(Files, AFullDiskIsReported) {
  EXPECT_EQ(files_error([&] { write_file("/dev/full", "x"); }),
            "/dev/full: cannot write: No space left on device");
  write_file("/dev/null", "x");
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));  // written to, not replaced
}

TEST_F(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  write_file(path("a.json"), "old");

  // Stands in for a disk that fills up: the kernel refuses the 4097th byte.
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error =
      files_error([&] { write_file(path("a.json"), std::string(100'000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(error, path("a.json") + ": cannot write: File too large");
  EXPECT_EQ(contents(path("a.json")), "old");
  EXPECT_EQ(file_count(), 1u);
}

// Told before the work, in the words that would be found after it.
TEST_F(Files, WhatCannotBeWrittenIsKnownBefore) {
  for (const std::string& name : {path("none/a.json"), folder_.string()})
    EXPECT_EQ(files_error([&] { require_writable(name); }),
              files_error([&] { write_file(name, "x"); }));
  for (const std::string& name :
       {path("new.json"), std::string("/dev/null"), std::string("relative.json")})
    EXPECT_EQ(files_error([&] { require_writable(name); }), "no error") << name;
  EXPECT_EQ(file_count(), 0u);  // only asked
}

TEST_F(Files, AnUnwritableFolderIsReported) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  for (const auto& ask : {+[](const std::string& name) { write_file(name, "x"); },
                          +[](const std::string& name) { require_writable(name); }})
    EXPECT_EQ(files_error([&] { ask(path("a.json")); }),
              path("a.json") + ": cannot write: Permission denied");
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(Files, AReadOnlyFileStaysAsItIs) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  write_file(path("a.json"), "old");
  fs::permissions(path("a.json"), fs::perms::owner_read);
  EXPECT_EQ(files_error([&] { write_file(path("a.json"), "new"); }),
            path("a.json") + ": cannot write: Permission denied");
  EXPECT_NE(files_error([&] { require_writable(path("a.json")); }), "no error");
  EXPECT_EQ(contents(path("a.json")), "old");
}

TEST_F(Files, ReplacingKeepsPermissionsAndLinks) {
  write_file(path("a.json"), "old");
  fs::permissions(path("a.json"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path("a.json"), path("link.json"));
  write_file(path("link.json"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(contents(path("a.json")), "new");
  EXPECT_EQ(fs::status(path("a.json")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace tidemark::files_test
