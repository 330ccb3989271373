// Matrix products by cuBLASLt.
//
// The library thinks in columns: what lies there in rows is for it the transpose. So it computes
// cᵀ = bᵀ · aᵀ, and its first factor is our b. What it has no algorithm for, a plain kernel
// computes.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <span>

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_cache.h"
#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/plain_gemm.cuh"

namespace tidemark::cuda {
namespace {

cudaDataType_t blas_type(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return CUDA_R_32F;
    case DType::BFloat16:
      return CUDA_R_16BF;
    case DType::Float16:
      return CUDA_R_16F;
    case DType::Float64:
    case DType::Int64:
    case DType::UInt8:
    case DType::Bool:
    case DType::Float8:
    case DType::Float4x2:
      break;
  }
  CHECK(!"a matrix product of a dtype that has none");
  return CUDA_R_32F;
}

std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t alignment = 16;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

GemmKey::Side side_of(const GemmOperand& operand) {
  return {operand.row_stride, operand.batch_stride, alignment_of(operand.data), operand.dtype,
          operand.transposed};
}

std::string text_of(const Gemm& product) {
  return "matrix product of " + std::to_string(product.batch) + " × " + std::to_string(product.m) +
         " × " + std::to_string(product.n) + " × " + std::to_string(product.k) + " in " +
         std::string(to_string(product.a.dtype));
}

/// The stored matrix, which has `rows` rows of `columns` elements.
void describe(cublasLtMatrixLayoutOpaque_t& layout, const GemmOperand& operand, std::int64_t rows,
              std::int64_t columns, std::int64_t batch) {
  const auto height = static_cast<std::uint64_t>(columns), width = static_cast<std::uint64_t>(rows);
  check(cublasLtMatrixLayoutInit(&layout, blas_type(operand.dtype), height, width,
                                 operand.row_stride),
        "cublasLtMatrixLayoutInit");
  const auto count = static_cast<std::int32_t>(batch);
  check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count),
        "batch count");
  check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                         &operand.batch_stride, sizeof operand.batch_stride),
        "batch stride");
}

template <typename T>
void set(cublasLtMatmulDescOpaque_t& product, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

/// What an algorithm may need and assume.
struct Preference {
  Preference(const GemmKey& key, std::size_t workspace) {
    check(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    // Sums in parts are added up in fp32 and in a fixed order, never in the output's dtype.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c.alignment);
  }
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreferenceOpaque_t preference{};
};

void prepare(PreparedGemm& prepared, const Gemm& g) {
  // fp32 sums; for fp32 factors true fp32 products: no TF32.
  check(cublasLtMatmulDescInit(&prepared.product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescInit");
  set(prepared.product, CUBLASLT_MATMUL_DESC_TRANSA, g.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(prepared.product, CUBLASLT_MATMUL_DESC_TRANSB, g.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (g.bias != nullptr) {
    set(prepared.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(prepared.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, blas_type(g.c.dtype));
    set(prepared.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);  // algorithms depend on it
  }
  describe(prepared.a, g.b, g.b.transposed ? g.n : g.k, g.b.transposed ? g.k : g.n, g.batch);
  describe(prepared.b, g.a, g.a.transposed ? g.k : g.m, g.a.transposed ? g.m : g.k, g.batch);
  describe(prepared.c, g.c, g.m, g.n, g.batch);
}

}  // namespace

GemmKey key_of(const Gemm& g) {
  return {g.m,          g.n,          g.k,         g.batch,          side_of(g.a),
          side_of(g.b), side_of(g.c), g.beta != 0, g.bias != nullptr};
}

std::size_t GemmKeyHash::operator()(const GemmKey& key) const {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over words
  const auto mix = [&](std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001b3u;
  };
  for (const std::int64_t word : {key.m, key.n, key.k, key.batch}) mix(word);
  for (const GemmKey::Side* side : {&key.a, &key.b, &key.c}) {
    mix(side->row_stride), mix(side->batch_stride);
    mix(side->alignment * 64 + static_cast<std::int64_t>(side->dtype) * 2 + side->transposed);
  }
  mix(key.adds * 2 + key.has_bias);
  return hash ^ hash >> 29;
}

namespace {

/// Some launches of one product by one algorithm, timed by the device.
class Trials {
 public:
  Trials(const Gemm& product, PreparedGemm& prepared, Launch& launch)
      : product_(product), prepared_(prepared), launch_(launch), target_(product.c.data) {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
    if (product.beta == 0) return;
    // What is added to must be there unchanged for the run that counts.
    const GemmOperand& c = product.c;
    const std::int64_t count =
        (product.batch - 1) * c.batch_stride + (product.m - 1) * c.row_stride + product.n;
    other_ = DeviceBlock(count * size_of(c.dtype));  // NoRoom
    target_ = other_.data();
  }
  ~Trials() { cudaEventDestroy(begin_), cudaEventDestroy(end_); }
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  /// Milliseconds of one launch; no number if the algorithm does not run.
  float time_of(const cublasLtMatmulAlgo_t& algorithm) {
    constexpr int launches = 3;  // after one that loads the kernel
    if (!run(algorithm)) return NAN;
    check(cudaEventRecord(begin_, launch_.stream), "cudaEventRecord");
    for (int i = 0; i < launches; ++i)
      if (!run(algorithm)) return NAN;
    check(cudaEventRecord(end_, launch_.stream), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "trying a matrix product");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds / launches;
  }

 private:
  bool run(const cublasLtMatmulAlgo_t& algorithm) {
    StreamContext& context = *launch_.context;
    return cublasLtMatmul(context.blas, &prepared_.product, &product_.alpha, product_.b.data,
                          &prepared_.a, product_.a.data, &prepared_.b, &product_.beta,
                          product_.c.data, &prepared_.c, target_, &prepared_.c, &algorithm,
                          context.blas_scratch.data(),
                          static_cast<std::size_t>(context.blas_scratch.bytes()),
                          launch_.stream) == CUBLAS_STATUS_SUCCESS;
  }

  const Gemm& product_;
  PreparedGemm& prepared_;
  Launch& launch_;
  std::byte* target_;
  DeviceBlock other_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

using Candidates = std::array<cublasLtMatmulHeuristicResult_t, most_gemm_candidates>;

/// What the library offers, best first by its own guess.
std::span<cublasLtMatmulHeuristicResult_t> candidates_of(const Gemm& product, const GemmKey& key,
                                                         PreparedGemm& prepared,
                                                         const StreamContext& context,
                                                         Candidates& candidates) {
  Preference preference(key, static_cast<std::size_t>(context.blas_scratch.bytes()));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context.blas, &prepared.product, &prepared.a, &prepared.b, &prepared.c, &prepared.c,
      &preference.preference, most_gemm_candidates, candidates.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_SUCCESS)
    check(status, text_of(product));
  return {candidates.data(), status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0};
}

/// One line per choice goes to the file that TIDEMARK_PRODUCTS names, beside the run's other
/// records.
void note_choice(const Gemm& product, std::span<const float> times, std::size_t chosen) {
  const char* const file = std::getenv("TIDEMARK_PRODUCTS");
  if (file == nullptr || *file == '\0') return;
  std::ofstream out(file, std::ios::app);
  out << text_of(product) << ": ";
  if (chosen == times.size())
    out << "no algorithm\n";
  else
    out << "algorithm " << chosen + 1 << " of " << times.size() << ", " << times[chosen]
        << " ms; the first " << times[0] << " ms\n";
}

/// The number of the candidate to take; as many as there are: none runs.
std::size_t choice_of(const Gemm& product, PreparedGemm& prepared, Launch& launch,
                      std::span<const cublasLtMatmulHeuristicResult_t> candidates) try {
  if (candidates.size() <= 1) return 0;  // one alone needs no trial
  std::array<float, most_gemm_candidates> storage{};
  const auto times = std::span(storage).first(candidates.size());
  Trials trials(product, prepared, launch);
  for (std::size_t i = 0; i < candidates.size(); ++i) times[i] = trials.time_of(candidates[i].algo);
  const std::size_t chosen = chosen_gemm(times);
  note_choice(product, times, chosen);
  return chosen;
} catch (const NoRoom&) {
  return 0;  // the step fills the device: the library's own guess
}

/// prepared.algorithm, or is_plain.
void choose(const Gemm& product, const GemmKey& key, PreparedGemm& prepared, Launch& launch) {
  Candidates storage{};
  const auto candidates = candidates_of(product, key, prepared, *launch.context, storage);
  const std::size_t chosen = choice_of(product, prepared, launch, candidates);
  prepared.is_plain = chosen == candidates.size();
  if (!prepared.is_plain) prepared.algorithm = candidates[chosen].algo;
}

}  // namespace

PreparedGemm& GemmCache::find(const Gemm& product, Launch& launch) {
  const GemmKey key = key_of(product);
  const auto [place, is_new] = prepared_.try_emplace(key);
  PreparedGemm& prepared = place->second;
  if (!is_new) return prepared;
  try {
    prepare(prepared, product);
    choose(product, key, prepared, launch);
  } catch (...) {
    prepared_.erase(place);
    throw;
  }
  return prepared;
}

void GemmCache::count_plain(const Gemm& product) {
  if (plain_.empty()) first_plain_ = text_of(product);
  ++plain_[key_of(product)];
}

std::string GemmCache::remark() const {
  if (plain_.empty()) return {};
  std::size_t launches = 0;
  for (const auto& [key, count] : plain_) launches += count;
  return std::to_string(launches) + " matrix products of " + std::to_string(plain_.size()) +
         " shapes have no algorithm in cuBLASLt and went through a plain, slow kernel, such as a " +
         first_plain_;
}

namespace {

/// The library's kernels count products in a grid's third dimension.
constexpr std::int64_t most_products = 65535;

void launch_gemm(Launch& launch, const Gemm& product) {
  StreamContext& context = *launch.context;
  PreparedGemm& prepared = context.gemms->find(product, launch);
  if (prepared.is_plain) {
    context.gemms->count_plain(product);
    return plain_gemm(launch, product);
  }
  if (product.bias != nullptr)
    set(prepared.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  const cublasStatus_t status =
      cublasLtMatmul(context.blas, &prepared.product, &product.alpha, product.b.data, &prepared.a,
                     product.a.data, &prepared.b, &product.beta, product.c.data, &prepared.c,
                     product.c.data, &prepared.c, &prepared.algorithm, context.blas_scratch.data(),
                     static_cast<std::size_t>(context.blas_scratch.bytes()), launch.stream);
  if (status != CUBLAS_STATUS_SUCCESS) check(status, text_of(product));
}

}  // namespace

void gemm(Launch& launch, const Gemm& product) {
  if (product.m * product.n * product.batch == 0) return;
  Gemm part = product;
  for (std::int64_t first = 0; first < product.batch; first += most_products) {
    part.batch = std::min(most_products, product.batch - first);
    launch_gemm(launch, part);
    for (GemmOperand* operand : {&part.a, &part.b, &part.c})
      operand->data += part.batch * operand->batch_stride * size_of(operand->dtype);
  }
}

}  // namespace tidemark::cuda
