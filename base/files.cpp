// Reads with limits on size; regular files are replaced by a rename, never left half written.
#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/compression.h"
#include "base/error.h"
#include "base/file_limits.h"
#include "base/gzip.h"

namespace tidemark {
namespace {

/// Small enough that its zeros are still in the processor's cache when they are overwritten.
constexpr std::size_t chunk_size = std::size_t{1} << 16;

[[noreturn]] void fail(const std::string& path, std::string_view problem) {
  throw InputError(fmt::format("{}: {}", path, problem));
}

[[noreturn]] void fail_with_errno(const std::string& path, std::string_view verb) {
  fail(path, fmt::format("cannot {}: {}", verb, std::strerror(errno)));
}

bool is_compressed(const std::string& path) { return path.ends_with(".zst"); }

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags, mode_t mode = 0)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (is_open()) ::close(descriptor_);
  }
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// False when the last bytes could not be stored, which some file systems tell only now.
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

/// Repeats what a signal interrupted.
template <class Call>
ssize_t retried(Call call) {
  ssize_t result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::string read_raw(const std::string& path, int descriptor, const FileKindRow& kind) {
  std::string text;
  // A pipe has no size, and a file may grow meanwhile: what is read is measured, too.
  struct stat found {};
  if (::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
    const auto size = static_cast<std::uint64_t>(found.st_size);
    require_within(kind, path, size);
    text.reserve(size + chunk_size);  // and a last attempt to get more
  }
  for (;;) {
    const std::size_t old_size = text.size();
    text.resize(old_size + chunk_size);
    const ssize_t count =
        retried([&] { return ::read(descriptor, text.data() + old_size, text.size() - old_size); });
    if (count < 0) fail_with_errno(path, "read");
    text.resize(old_size + static_cast<std::size_t>(count));
    require_within_so_far(kind, path, text.size());
    if (count == 0) return text;
  }
}

/// False, with errno, when the disk is full or the like.
bool write_all(OpenFile& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count =
        retried([&] { return ::write(file.descriptor(), text.data(), text.size()); });
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return file.close();
}

void write_in_place(const std::string& path, std::string_view text) {
  OpenFile file(path, O_WRONLY);
  if (!file.is_open() || !write_all(file, text)) fail_with_errno(path, "write");
}

/// Where a chain of symbolic links ends, so that the rename replaces the file and not the link.
std::string link_target(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

void write_beside(const std::string& path, std::string_view text, mode_t mode) {
  const std::string target = link_target(path);
  const std::string part = fmt::format("{}.{}.part", target, ::getpid());
  OpenFile file(part, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (!file.is_open()) fail_with_errno(path, "write");
  if (write_all(file, text) && std::rename(part.c_str(), target.c_str()) == 0) return;
  const int reason = errno;
  ::unlink(part.c_str());
  errno = reason;
  fail_with_errno(path, "write");
}

// It would be read as what it is not.
void refuse_gzip(const std::string& path) {
  if (is_gzip(path))
    throw InputError(fmt::format("{}: .gz is read, not written (leave it out, or use .zst)", path));
}

}  // namespace

std::string read_file(const std::string& path, FileKind kind) {
  return read_file(path, row_of(kind));
}

std::string read_file(const std::string& path, const FileKindRow& kind, ReadProgress* progress) {
  const OpenFile file(path, O_RDONLY);
  if (!file.is_open()) fail_with_errno(path, "open");
  std::string raw = read_raw(path, file.descriptor(), kind);
  if (is_gzip(path)) return gunzipped(raw, path, kind);
  return is_compressed(path) ? decompressed(raw, path, kind, progress) : raw;
}

std::string read_standard_input(FileKind kind) {
  return read_raw("standard input", STDIN_FILENO, row_of(kind));
}

void write_file(const std::string& path, std::string_view text) {
  refuse_gzip(path);
  const std::string packed = is_compressed(path) ? compressed(text) : std::string();
  const std::string_view bytes = is_compressed(path) ? packed : text;
  struct stat found {};
  const bool exists = ::stat(path.c_str(), &found) == 0;
  // A rename would replace /dev/null by a file.
  if (exists && !S_ISREG(found.st_mode)) return write_in_place(path, bytes);
  // A rename needs no permission on the file itself; the user who took it away meant it.
  if (exists && ::access(path.c_str(), W_OK) != 0) fail_with_errno(path, "write");
  write_beside(path, bytes, exists ? found.st_mode & 0777 : 0666);
}

void require_writable(const std::string& path) {
  refuse_gzip(path);
  struct stat found {};
  const bool exists = ::stat(path.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) {
    errno = EISDIR;
    fail_with_errno(path, "write");
  }
  const std::filesystem::path folder = std::filesystem::path(link_target(path)).parent_path();
  const bool is_replaced = !exists || S_ISREG(found.st_mode);  // by a rename, in its folder
  if ((exists && ::access(path.c_str(), W_OK) != 0) ||
      (is_replaced && ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0))
    fail_with_errno(path, "write");
}

}  // namespace tidemark
