// Scratch memory of one stream's kernels on the CPU. It grows to what the largest request was, and
// stays.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "kernels/call.h"

namespace tidemark::cpu {

class Workspace {
 public:
  /// Uninitialized floats; `slot` 0 to 7 gives up to eight pieces that live side by side.
  std::span<float> floats(std::size_t count, std::size_t slot = 0) {
    std::vector<float>& piece = pieces_[slot];
    if (piece.size() < count) {
      taken_ += (count - piece.size()) * sizeof(float);
      piece.resize(count);
    }
    return std::span(piece).first(count);
  }
  /// Bytes taken so far; may be read while kernels run.
  std::size_t taken() const { return taken_; }

  StepState state;  ///< of the step that runs

 private:
  std::array<std::vector<float>, 8> pieces_;
  std::atomic<std::size_t> taken_ = 0;
};

using Kernel = void (*)(const Call&, Workspace&);

/// The kernel of the call; nullptr: nothing runs.
Kernel kernel_of(const Call& call);

/// Runs the kernel of the call on the calling thread.
void run(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu
