// The backend that every machine has: streams are threads, events are places in them.
#include "kernels/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/stream.h"

namespace tidemark {
namespace {

using cpu::Stream;

/// "Intel(R) Xeon(R) Platinum 8481C"; "" where /proc/cpuinfo does not say.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options) : options_(options) {}
  ~CpuBackend() override;
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  std::string name() const override { return "cpu"; }
  Ground ground() const override { return Ground::Process; }
  std::string description() const override {
    const std::string processor = processor_name();
    return fmt::format("{}, {} cores, {}", processor.empty() ? "CPU" : processor,
                       std::thread::hardware_concurrency(), to_text(capacity()));
  }
  Bytes capacity() const override { return cpu::physical_memory(); }
  Bytes workspace() const override;
  std::unique_ptr<Memory> allocate(Bytes size, MemoryKind kind) override;

  void begin_step(std::size_t streams, std::size_t events, const StepState& state) override;
  void run(std::uint32_t step, std::size_t stream, const Call& call) override {
    issue(step, stream, {.call = &call});
  }
  void copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
            Bytes size) override {
    issue(step, stream, {.to = to, .from = from, .size = static_cast<std::size_t>(size.count)});
  }
  void record(std::size_t stream, std::size_t event) override {
    CHECK(event < events_.size() && stream < streams_.size());
    events_[event] = streams_[stream]->here();
  }
  void wait(std::size_t stream, std::size_t event) override {
    CHECK(event < events_.size() && stream < streams_.size());
    const cpu::Place place = events_[event];
    // A stream is always behind what was issued to it before.
    if (place.stream == streams_[stream].get()) return;
    if (place.stream != nullptr) streams_[stream]->issue({.place = place});
  }
  void synchronize(std::size_t event) override {
    CHECK(event < events_.size());
    cpu::await(events_[event]);
  }
  std::vector<Ran> finish() override;

  void upload(std::byte* to, const void* from, Bytes size) override {
    std::memcpy(to, from, static_cast<std::size_t>(size.count));
  }
  void download(void* to, const std::byte* from, Bytes size) override {
    std::memcpy(to, from, static_cast<std::size_t>(size.count));
  }

 private:
  void issue(std::uint32_t step, std::size_t stream, cpu::StreamTask task);

  CpuBackendOptions options_;
  std::optional<cpu::MemoryLimit> limit_ = cpu::available_memory();  ///< before the first block
  std::shared_ptr<Bytes> taken_ = std::make_shared<Bytes>();         ///< by blocks not freed yet
  std::size_t allocations_ = 0;
  cpu::Failure failure_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< kept from step to step
  std::vector<cpu::Place> events_;
  std::deque<Ran> ran_;  ///< a deque: streams hold pointers to elements while it grows
};

Bytes CpuBackend::workspace() const {
  Bytes sum;
  for (const auto& stream : streams_) {
    sum += Bytes{static_cast<std::int64_t>(stream->workspace().taken())};
  }
  return sum;
}

std::unique_ptr<Memory> CpuBackend::allocate(Bytes size, MemoryKind) {
  if (++allocations_ == options_.failing_allocation) {
    throw InputError(fmt::format("cannot allocate {} of memory: this allocation was made to fail",
                                 to_text(size)));
  }
  // Pages are backed when touched, so the system would say yes to anything and kill the process
  // later. What earlier blocks may still grow to is therefore counted with.
  if (limit_ && *taken_ + size > limit_->size) {
    throw InputError(fmt::format(
        "cannot allocate {} of memory: {} can be had here ({}){}; choose a smaller batch or "
        "another strategy",
        to_text(size), to_text(limit_->size), limit_->source,
        *taken_ > Bytes{} ? fmt::format(", {} of it is taken", to_text(*taken_)) : ""));
  }
  return cpu::map_memory(size, taken_);
}

CpuBackend::~CpuBackend() {
  // Work that was issued and never awaited passes undone; only then may a stream end, because
  // others wait for places in it.
  failure_.set(std::make_exception_ptr(InputError("the step was given up")));
  for (const auto& stream : streams_) cpu::await(stream->here());
}

void CpuBackend::begin_step(std::size_t streams, std::size_t events, const StepState& state) {
  failure_.rethrow();
  while (streams_.size() < streams) {
    streams_.push_back(std::make_unique<Stream>(options_.run, failure_));
  }
  events_.assign(events, {});
  ran_.clear();
  const Stream::Clock::time_point start = Stream::Clock::now();
  for (const auto& stream : streams_) stream->begin_step(start, state);
}

void CpuBackend::issue(std::uint32_t step, std::size_t stream, cpu::StreamTask task) {
  CHECK(stream < streams_.size());
  task.ran = &ran_.emplace_back(Ran{.step = step, .stream = static_cast<std::uint8_t>(stream)});
  streams_[stream]->issue(task);
}

std::vector<Ran> CpuBackend::finish() {
  for (const auto& stream : streams_) cpu::await(stream->here());
  failure_.rethrow();
  return {ran_.begin(), ran_.end()};
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tidemark
