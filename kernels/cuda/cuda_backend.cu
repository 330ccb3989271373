// The backend of an NVIDIA GPU, and what the plugin exports.
#include <cstring>

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/gemm_cache.h"
#include "kernels/cuda/run.h"
#include "kernels/cuda_plugin.h"

namespace tidemark::cuda {
namespace {

/// What check() throws, where the toolkit's answer means that there is no GPU to use.
void require(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  std::string reason =
      std::string(cudaGetErrorName(result)) + " (" + cudaGetErrorString(result) + ")";
  if (result == cudaErrorInsufficientDriver || result == cudaErrorStubLibrary)
    reason += "; is the NVIDIA driver installed, and new enough for CUDA " +
              std::to_string(CUDART_VERSION / 1000) + "." +
              std::to_string(CUDART_VERSION % 1000 / 10) + "?";
  throw NoDevice(what + ": " + reason);
}

/// Asked for its attributes: an answer means that this build has code for the GPU.
__global__ void probe() {}

cudaDeviceProp usable_device() {
  int count = 0;  // stays untouched on errors
  require(cudaGetDeviceCount(&count), "no usable NVIDIA GPU");
  if (count == 0) throw NoDevice("no usable NVIDIA GPU: none is visible (CUDA_VISIBLE_DEVICES?)");
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0), "no usable NVIDIA GPU");
  cudaFuncAttributes attributes{};
  require(cudaFuncGetAttributes(&attributes, probe),
          std::string("the CUDA plugin was not built for ") + properties.name + " (capability " +
              std::to_string(properties.major) + "." + std::to_string(properties.minor) + ")");
  return properties;
}

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(Bytes size) : block_(std::max(size.count, std::int64_t{1})), size_(size) {
    check(cudaMemset(block_.data(), 0, static_cast<std::size_t>(size.count)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
  }
  std::byte* data() const override { return block_.data(); }
  Bytes size() const override { return size_; }

 private:
  DeviceBlock block_;
  Bytes size_;
};

/// Pinned: copies from and to it run beside kernels.
class HostMemory final : public Memory {
 public:
  explicit HostMemory(Bytes size) : size_(size) {
    const auto bytes = static_cast<std::size_t>(std::max(size.count, std::int64_t{1}));
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault),
          "cannot allocate " + to_text(size) + " of pinned host memory");
    std::memset(data_, 0, bytes);
  }
  ~HostMemory() override { cudaFreeHost(data_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  Bytes size() const override { return size_; }

 private:
  void* data_ = nullptr;
  Bytes size_;
};

class Event {
 public:
  explicit Event(unsigned flags) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

constexpr std::size_t no_stamp = ~std::size_t{0};

struct Stream {
  Stream(cublasLtHandle_t blas, std::int64_t blas_workspace, GemmCache& products,
         const cudaDeviceProp& device)
      : context(blas, blas_workspace, products) {
    check(cudaStreamCreateWithFlags(&launch.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    launch.processors = device.multiProcessorCount;
    launch.shared_memory = static_cast<std::int64_t>(device.sharedMemPerBlockOptin);
    launch.context = &context;
  }
  ~Stream() { cudaStreamDestroy(launch.stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamContext context;
  Launch launch;
  std::size_t last_stamp = no_stamp;  ///< the end of its last run, if the next may begin there
};

class CudaBackend final : public Backend {
 public:
  CudaBackend() : device_(usable_device()) {
    check(cublasLtCreate(&blas_), "cannot start cuBLASLt");
  }
  ~CudaBackend() override {
    cudaDeviceSynchronize();  // what fails now was told before
    streams_.clear();
    cublasLtDestroy(blas_);
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string name() const override { return "cuda"; }
  Ground ground() const override { return Ground::Device; }
  std::string description() const override;
  Bytes capacity() const override { return {static_cast<std::int64_t>(device_.totalGlobalMem)}; }
  std::optional<DeviceTraits> traits() const override;
  std::string remark() const override { return products_.remark(); }
  Bytes workspace() const override {
    Bytes sum;
    for (const auto& stream : streams_) sum += stream->context.taken();
    return sum;
  }
  std::unique_ptr<Memory> allocate(Bytes size, MemoryKind kind) override {
    if (kind == MemoryKind::Host) return std::make_unique<HostMemory>(size);
    return std::make_unique<DeviceMemory>(size);
  }

  void begin_step(std::size_t streams, std::size_t events, const StepState& state) override;
  void run(std::uint32_t step, std::size_t stream, const Call& call) override;
  void copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
            Bytes size) override;
  void record(std::size_t stream, std::size_t event) override {
    check(cudaEventRecord(events_.at(event), stream_of(stream)), "cudaEventRecord");
  }
  void wait(std::size_t stream, std::size_t event) override {
    check(cudaStreamWaitEvent(stream_of(stream), events_.at(event), 0), "cudaStreamWaitEvent");
    streams_[stream]->last_stamp = no_stamp;  // the next run begins when the event has come
  }
  void synchronize(std::size_t event) override {
    check(cudaEventSynchronize(events_.at(event)), failed_step);
    for (const auto& stream : streams_) stream->last_stamp = no_stamp;  // idle, maybe
  }
  std::vector<Ran> finish() override;
  void time_by(Timing timing) override { timing_ = timing; }
  std::optional<Nanoseconds> step_time() const override { return step_time_; }

  void upload(std::byte* to, const void* from, Bytes size) override {
    check(cudaMemcpy(to, from, static_cast<std::size_t>(size.count), cudaMemcpyDefault),
          "copying to the GPU");
    // From pageable memory it returns once the bytes are staged, maybe before they arrive, and the
    // backend's streams do not wait for the default one.
    check(cudaStreamSynchronize(nullptr), "copying to the GPU");
  }
  void download(void* to, const std::byte* from, Bytes size) override {
    check(cudaMemcpy(to, from, static_cast<std::size_t>(size.count), cudaMemcpyDefault),
          "copying from the GPU");
  }

 private:
  // Kernels fail after they were launched, and the toolkit does not say which it was.
  static constexpr const char* failed_step =
      "the GPU stopped in the middle of a step (CUDA_LAUNCH_BLOCKING=1 shows which kernel it was)";

  cudaStream_t stream_of(std::size_t stream) const { return streams_.at(stream)->launch.stream; }
  template <typename Work>
  void timed(std::uint32_t step, std::size_t stream, Work&& work);
  std::size_t stamp(std::size_t stream);
  Nanoseconds since_start(std::size_t stamp) const;

  cudaDeviceProp device_;
  cublasLtHandle_t blas_ = nullptr;
  GemmCache products_;
  Timing timing_ = Timing::EachRun;
  std::optional<Nanoseconds> step_time_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< kept from step to step, as are all events
  std::vector<Event> events_;
  std::vector<Event> clocks_;  ///< the first begins the step
  std::size_t clocks_used_ = 0;
  std::vector<Ran> ran_;
  std::vector<std::pair<std::size_t, std::size_t>> stamps_;  ///< of each run: its begin and end
};

std::string CudaBackend::description() const {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return std::string(device_.name) + ", capability " + std::to_string(device_.major) + "." +
         std::to_string(device_.minor) + ", " + to_text(capacity()) + ", driver for CUDA " +
         std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

std::optional<DeviceTraits> CudaBackend::traits() const {
  int kilohertz = 0;  // CUDA 13 has no clockRate among the properties any more
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "asking for the clock rate");
  return DeviceTraits{std::to_string(device_.major) + "." + std::to_string(device_.minor),
                      device_.multiProcessorCount,
                      kilohertz * 1e3,
                      {device_.l2CacheSize}};
}

void CudaBackend::begin_step(std::size_t streams, std::size_t events, const StepState& state) {
  // What NVIDIA's manual of cuBLAS recommends as workspace: 32 MiB from Hopper on, else 4 MiB.
  const std::int64_t blas_workspace = std::int64_t{device_.major >= 9 ? 32 : 4} << 20;
  while (streams_.size() < streams)
    streams_.push_back(std::make_unique<Stream>(blas_, blas_workspace, products_, device_));
  while (events_.size() < events) events_.emplace_back(cudaEventDisableTiming);
  for (const auto& stream : streams_) stream->launch.state = state;
  ran_.clear(), stamps_.clear();
  clocks_used_ = 0;
  const std::size_t start = stamp(0);
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    if (stream > 0)
      check(cudaStreamWaitEvent(stream_of(stream), clocks_[start], 0), "cudaStreamWaitEvent");
    streams_[stream]->last_stamp = start;
  }
}

std::size_t CudaBackend::stamp(std::size_t stream) {
  if (clocks_used_ == clocks_.size()) clocks_.emplace_back(cudaEventDefault);
  check(cudaEventRecord(clocks_[clocks_used_], stream_of(stream)), "cudaEventRecord");
  return clocks_used_++;
}

/// Between two time stamps. A stamp is taken when the stream gets there; where the host is late,
/// the time until the launch arrives is therefore part of the run. Each stamp costs host and GPU
/// about a microsecond, so a run begins where the one before it on its stream has ended.
template <typename Work>
void CudaBackend::timed(std::uint32_t step, std::size_t stream, Work&& work) {
  if (timing_ == Timing::WholeStep) {
    work();
    ran_.push_back({step, static_cast<std::uint8_t>(stream), {}, {}});
    return;
  }
  std::size_t& last = streams_.at(stream)->last_stamp;
  const std::size_t begin = last != no_stamp ? last : stamp(stream);
  work();
  last = stamp(stream);
  ran_.push_back({step, static_cast<std::uint8_t>(stream), {}, {}});
  stamps_.emplace_back(begin, last);
}

void CudaBackend::run(std::uint32_t step, std::size_t stream, const Call& call) try {
  timed(step, stream, [&] { cuda::run(call, streams_.at(stream)->launch); });
} catch (const InputError& error) {
  const bool is_op = call.pass == Pass::Forward || call.pass == Pass::Backward;
  const auto pass = passes[static_cast<std::size_t>(call.pass)].name;
  throw InputError("step " + std::to_string(step) + ", " + std::string(pass) +
                   (is_op ? " of " + std::string(to_string(call.kind)) : "") + ": " + error.what());
}

void CudaBackend::copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
                       Bytes size) {
  timed(step, stream, [&] {
    const cudaError_t result = cudaMemcpyAsync(to, from, static_cast<std::size_t>(size.count),
                                               cudaMemcpyDefault, stream_of(stream));
    if (result != cudaSuccess) check(result, "step " + std::to_string(step) + ", copy");
  });
}

Nanoseconds CudaBackend::since_start(std::size_t stamp) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, clocks_[0], clocks_[stamp]), "cudaEventElapsedTime");
  return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6));
}

std::vector<Ran> CudaBackend::finish() {
  std::vector<std::size_t> ends;
  if (timing_ == Timing::WholeStep)
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) ends.push_back(stamp(stream));
  for (const auto& stream : streams_)
    check(cudaStreamSynchronize(stream->launch.stream), failed_step);
  step_time_.reset();
  for (const std::size_t end : ends)
    step_time_ = std::max(step_time_.value_or(Nanoseconds{}), since_start(end));
  for (std::size_t i = 0; i < stamps_.size(); ++i) {
    ran_[i].begin = since_start(stamps_[i].first);
    ran_[i].end = since_start(stamps_[i].second);
  }
  for (const auto& stream : streams_) stream->context.free_outgrown();
  return ran_;
}

Backend* make_backend() { return new CudaBackend; }

}  // namespace
}  // namespace tidemark::cuda

extern "C" __attribute__((visibility("default"))) const tidemark::CudaPlugin tidemark_cuda_plugin;
const tidemark::CudaPlugin tidemark_cuda_plugin{tidemark::backend_version(),
                                                tidemark::cuda::make_backend};
