// Reads a file in pieces of a megabyte; what is asked for lies in one of them as a whole.
#include "importers/pickle_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file_limits.h"
#include "base/quoted.h"

namespace tidemark::importers {
namespace {

using namespace literals;

constexpr std::uint64_t piece_size = 1 << 20;
/// 20 million events of 200 bytes: read in pieces, and kept in little more than it has.
constexpr FileKindRow snapshot_kind{FileKind::Recording, "a memory snapshot", 4_GiB,
                                    "record fewer events (max_entries of _record_memory_history)"};

}  // namespace

PickleInput::PickleInput(const std::string& path) : name_(printable(path, 200)) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) throw InputError(fmt::format("{}: cannot read: {}", name_, error.message()));
  require_within(snapshot_kind, path, size);
  file_.open(path, std::ios::binary);
  if (!file_) throw InputError(fmt::format("{}: cannot read", name_));
  left_ = size;
}

bool PickleInput::more(std::uint64_t count) {
  const std::uint64_t here = piece_.size() - next_;
  if (count > here + left_) return false;
  const std::uint64_t wanted = std::min(std::max(count, piece_size) - here, left_);
  std::string fresh;
  fresh.reserve(here + wanted);
  fresh.append(piece_.substr(next_));
  fresh.resize(here + wanted);
  file_.read(fresh.data() + here, static_cast<std::streamsize>(wanted));
  // It may have been cut since its size was read.
  const auto read = static_cast<std::uint64_t>(std::max<std::streamsize>(0, file_.gcount()));
  fresh.resize(here + read);
  left_ = read < wanted ? 0 : left_ - wanted;
  before_ += next_;
  next_ = 0;
  buffer_ = std::move(fresh);
  piece_ = buffer_;
  return count <= piece_.size();
}

std::string_view PickleInput::bytes(std::uint64_t count, std::string_view what) {
  if (count > piece_.size() - next_ && !more(count)) end_of_file(what, count);
  const std::string_view found = piece_.substr(next_, count);
  next_ += count;
  return found;
}

void PickleInput::end_of_file(std::string_view what, std::uint64_t count) const {
  fail(offset(), fmt::format("the file ends where {} needs {} byte{} (was it copied completely?)",
                             what, count, count == 1 ? "" : "s"));
}

void PickleInput::fail(std::uint64_t offset, std::string_view problem) const {
  throw InputError(fmt::format("{}: byte {}: {}", name_, offset, problem));
}

}  // namespace tidemark::importers
