// The bytes of a file from its beginning to its end, a piece at a time: a recording may be larger
// than the memory that one would spend on it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace tidemark::importers {

class PickleInput {
 public:
  /// InputError if the file cannot be read or is larger than a snapshot may be.
  explicit PickleInput(const std::string& path);
  /// Of bytes in memory, which must outlive it; errors name `name`.
  PickleInput(std::string_view bytes, std::string name) : name_(std::move(name)), piece_(bytes) {}

  const std::string& name() const { return name_; }
  /// Of the next byte, from the beginning.
  std::uint64_t offset() const { return before_ + next_; }
  /// Is the next one the last, or behind it?
  bool at_end() { return next_ == piece_.size() && !more(1); }
  /// InputError, of `what`, if the file ends before.
  std::uint8_t byte(std::string_view what) {
    if (next_ == piece_.size() && !more(1)) end_of_file(what, 1);
    return static_cast<std::uint8_t>(piece_[next_++]);
  }
  /// So many bytes, until the next call.
  std::string_view bytes(std::uint64_t count, std::string_view what);

  /// "FILE: byte 312: problem"
  [[noreturn]] void fail(std::uint64_t offset, std::string_view problem) const;

 private:
  /// Makes at least so many bytes follow `next_`; false where the file ends before.
  bool more(std::uint64_t count);
  [[noreturn]] void end_of_file(std::string_view what, std::uint64_t count) const;

  std::string name_;
  std::ifstream file_;
  std::string buffer_;      ///< of a file: what piece_ shows
  std::string_view piece_;  ///< what of the file is in memory
  std::size_t next_ = 0;    ///< in piece_
  std::uint64_t before_ = 0;
  std::uint64_t left_ = 0;  ///< of a file, behind piece_
};

}  // namespace tidemark::importers
