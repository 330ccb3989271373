// Tensors inside a backward that the framework composes of several kernels: they come and go while
// the one node that stands for it runs.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "traces/trace.h"

namespace tidemark {

/// All of them there at once when the backward needs most, beside what its node reads and writes.
class InnerTensors {
 public:
  void add(std::int64_t bytes) {
    if (bytes > 0) sizes_[count_++] = Bytes{bytes};
  }
  std::span<const Bytes> sizes() const { return {sizes_.data(), count_}; }

 private:
  std::array<Bytes, 4> sizes_{};
  std::size_t count_ = 0;
};

/// How an op's backward is called.
struct BackwardCall {
  std::uint32_t gradients = 0;  ///< of these inputs (bit i = input i)
  bool keeps_dy = false;        ///< something else reads the gradient of the op's output later
  bool made_again = false;  ///< a checkpoint has run the op again, and forgets what it hands out
};

/// May the op's backward have any?
bool has_inner_tensors(const Trace& trace, const Op& op);

InnerTensors inner_tensors(const Trace& trace, const Op& op, const BackwardCall& call);

/// By how much all of them are less where a checkpoint has run the op again.
Bytes saved_by_running_again(const Trace& trace, const Op& op);

}  // namespace tidemark
