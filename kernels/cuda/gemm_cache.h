// Products that cuBLASLt was asked for before: its heuristics cost the host tens of microseconds,
// their trial runs the device more, and a training step repeats the same few dozen shapes.
#pragma once

#include <cublasLt.h>

#include <cstring>
#include <string>
#include <unordered_map>

#include "kernels/cuda/gemm.h"

namespace tidemark::cuda {

/// All that decides about the algorithm; alignments are the largest powers of two up to 16 that
/// divide the addresses. Equal keys give equal algorithms and so equal bits, wherever the operands
/// lie in memory.
struct GemmKey {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  struct Side {
    std::int64_t row_stride = 0, batch_stride = 0;
    std::uint32_t alignment = 0;
    DType dtype = DType::Float32;
    bool transposed = false;
    bool operator==(const Side&) const = default;
  };
  Side a, b, c;
  bool adds = false, has_bias = false;

  bool operator==(const GemmKey&) const = default;
};

GemmKey key_of(const Gemm& product);

struct GemmKeyHash {
  std::size_t operator()(const GemmKey& key) const;
};

/// What cublasLtMatmul() wants to know.
struct PreparedGemm {
  cublasLtMatmulDescOpaque_t product{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  cublasLtMatmulAlgo_t algorithm{};
  bool is_plain = false;  ///< the library has no algorithm for it
};

/// One for all streams of a backend: what one of them computes again has the bits of the first
/// time.
class GemmCache {
 public:
  /// The first time a key is asked for, the library's best guesses are run and timed on the
  /// launch's stream, and the host waits for that; C holds any numbers afterwards if beta is 0, and
  /// its own else.
  PreparedGemm& find(const Gemm& product, Launch& launch);

  void count_plain(const Gemm& product);
  /// "": every product had an algorithm. Else one line.
  std::string remark() const;

 private:
  std::unordered_map<GemmKey, PreparedGemm, GemmKeyHash> prepared_;
  std::unordered_map<GemmKey, std::size_t, GemmKeyHash> plain_;  ///< launches
  std::string first_plain_;
};

}  // namespace tidemark::cuda
