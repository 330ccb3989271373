// Names of a trace's tensors and ops: views into blocks of memory that a trace and its copies
// share. An op and what it makes have one name, and copying a million names allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark {

/// A literal, or a text in the pool of the trace that has it: no temporary can become one.
class Name : public std::string_view {
 public:
  constexpr Name() = default;
  template <std::size_t size>
  consteval Name(const char (&literal)[size]) : std::string_view(literal, size - 1) {}

  operator std::string() const { return std::string(data(), size()); }

 private:
  friend class NamePool;
  explicit Name(std::string_view text) : std::string_view(text) {}
};

inline std::string operator+(const Name& name, std::string_view more) {
  return std::string(name).append(more);
}

class NamePool {
 public:
  NamePool() = default;
  /// Names of both stay where they are; what is added to one is not in the other.
  NamePool(const NamePool& other) : blocks_(other.blocks_) {}
  NamePool(NamePool&& other) noexcept
      : blocks_(std::move(other.blocks_)),
        free_(std::exchange(other.free_, {})),
        next_size_(std::exchange(other.next_size_, smallest_block)) {}
  NamePool& operator=(NamePool other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(free_, other.free_);
    std::swap(next_size_, other.next_size_);
    return *this;
  }

  /// A copy of the text, which lives as long as any pool that has it.
  Name add(std::string_view text);
  /// Names of the other pool live as long as this one, too.
  void share(const NamePool& other);

  /// Where names lie makes no difference.
  friend bool operator==(const NamePool&, const NamePool&) { return true; }

 private:
  static constexpr std::size_t smallest_block = 1024, largest_block = std::size_t{1} << 20;

  void add_block(std::size_t least);

  std::vector<std::shared_ptr<char[]>> blocks_;
  std::span<char> free_;  // of the last block that is this pool's own
  std::size_t next_size_ = smallest_block;
};

}  // namespace tidemark
