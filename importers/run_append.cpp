// Files are copied a chunk at a time: a snapshot may be larger than the memory at hand.
#include "importers/run_append.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "importers/run_layout.h"

namespace tidemark::importers {
namespace {

/// Calls `take` for each whole chunk; returns where the last one ends, 0 if the file is no run.
std::uint64_t walk_chunks(const std::string& path, const std::function<void(ChunkHead)>& take) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  std::string magic(run_magic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (error || magic != run_magic) return 0;
  std::uint64_t whole = magic.size();
  for (ChunkHead head; file.read(reinterpret_cast<char*>(&head), sizeof head);) {
    const std::uint64_t end = whole + sizeof head + head.bytes;
    if (end > size) break;
    take(head);
    whole = end;
    file.seekg(static_cast<std::streamoff>(end));
  }
  return whole;
}

void append_chunk(std::ostream& file, std::uint32_t kind, std::string_view bytes) {
  const ChunkHead head{kind, static_cast<std::uint32_t>(bytes.size())};
  file.write(reinterpret_cast<const char*>(&head), sizeof head);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void append_file(std::ostream& into, std::uint32_t kind, const std::string& from, std::size_t row) {
  std::ifstream file(from, std::ios::binary);
  std::string piece(largest_chunk / row * row, '\0');
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<std::size_t>(file.gcount()) / row * row;
    if (got > 0) append_chunk(into, kind, std::string_view(piece).substr(0, got));
  }
}

}  // namespace

std::string append_to_run(const std::string& path, const RunAddition& addition) {
  const std::uint64_t whole = walk_chunks(path, [](ChunkHead) {});
  std::error_code error;
  if (whole > 0) std::filesystem::resize_file(path, whole, error);
  if (error) return error.message();
  errno = 0;
  std::ofstream file(path, std::ios::binary | (whole > 0 ? std::ios::app : std::ios::trunc));
  if (whole == 0) file.write(run_magic.data(), static_cast<std::streamsize>(run_magic.size()));
  for (const std::string& note : addition.notes) append_chunk(file, chunk_note, note);
  if (!addition.marks_file.empty())
    append_file(file, chunk_marks, addition.marks_file, sizeof(MarkRow));
  if (!addition.snapshot_file.empty()) append_file(file, chunk_snapshot, addition.snapshot_file, 1);
  file.close();
  if (file) return {};
  const std::string problem = errno != 0 ? std::strerror(errno) : "it cannot be written";
  if (whole > 0) std::filesystem::resize_file(path, whole, error);
  return problem;
}

bool has_records(const std::string& path) {
  bool has = false;
  walk_chunks(path, [&](ChunkHead head) {
    has |= head.kind != chunk_process && head.kind != chunk_note && head.kind != chunk_names &&
           head.kind != chunk_end && head.bytes > 0;
  });
  return has;
}

}  // namespace tidemark::importers
