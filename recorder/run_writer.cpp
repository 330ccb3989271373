// Chunks are gathered in memory and leave by one write(), so that a file that another process cuts
// off in its middle never holds half a row that looks like one.
#include "recorder/run_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tidemark::recorder {
namespace {

constexpr std::size_t longest_name = 1 << 12;  // templates of templates

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// errno of what went wrong, or 0.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

RunWriter::~RunWriter() {
  if (file_ >= 0) ::close(file_);
}

bool RunWriter::open(const std::string& path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file_ < 0) return false;
  error_ = write_all(file_, importers::run_magic);
  whole_ = static_cast<std::int64_t>(importers::run_magic.size());
  return true;
}

void RunWriter::add_text(std::uint32_t kind, std::string_view text) {
  write_chunk(kind, text.substr(0, importers::largest_chunk));
}

std::uint32_t RunWriter::name(std::string_view text) {
  text = text.substr(0, longest_name);
  const auto [place, is_new] =
      names_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    if (new_names_.size() + longest_name + sizeof(std::uint32_t) > importers::largest_chunk)
      flush();
    append(new_names_, static_cast<std::uint32_t>(text.size()));
    new_names_.append(text);
  }
  return place->second;
}

template <typename Row>
void RunWriter::write_rows(Rows<Row>& waiting) {
  if (waiting.rows.empty()) return;
  write_chunk(waiting.kind, {reinterpret_cast<const char*>(waiting.rows.data()),
                             waiting.rows.size() * sizeof(Row)});
  waiting.rows.clear();
}

void RunWriter::flush() {
  if (!new_names_.empty()) write_chunk(importers::chunk_names, new_names_);
  new_names_.clear();
  write_rows(kernels_);
  write_rows(transfers_);
  write_rows(memory_);
  write_rows(pools_);
  write_rows(ranges_);
  write_rows(launches_);
}

void RunWriter::finish(EndRow end) {
  if (file_ < 0) return;
  flush();
  end.error = static_cast<std::uint32_t>(error_);
  error_ = 0;  // what was cut off left room for the end, as a rule
  write_chunk(importers::chunk_end, {reinterpret_cast<const char*>(&end), sizeof end});
  ::close(file_);
  file_ = -1;
}

void RunWriter::write_chunk(std::uint32_t kind, std::string_view bytes) {
  if (file_ < 0 || error_ != 0) return;
  chunk_.clear();
  append(chunk_, importers::ChunkHead{kind, static_cast<std::uint32_t>(bytes.size())});
  chunk_.append(bytes);
  error_ = write_all(file_, chunk_);
  if (error_ == 0) {
    whole_ += static_cast<std::int64_t>(chunk_.size());
  } else if (::ftruncate(file_, whole_) == 0) {
    ::lseek(file_, whole_, SEEK_SET);
  }
}

}  // namespace tidemark::recorder
