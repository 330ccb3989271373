// Clocks per stream and host that charges advance; memory is reserved, and downloads are zeros.
#include "profiler/null_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tidemark::profiler {
namespace {

class Reservation : public Memory {
 public:
  explicit Reservation(Bytes size) : size_(size) {
    const auto length = static_cast<std::size_t>(std::max<std::int64_t>(size.count, 1));
    void* const at = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      throw InputError(fmt::format("no address space for {} bytes", size.count));
    data_ = static_cast<std::byte*>(at);
  }
  ~Reservation() override {
    munmap(data_, static_cast<std::size_t>(std::max<std::int64_t>(size_.count, 1)));
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  std::byte* data() const override { return data_; }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
  std::byte* data_ = nullptr;
};

}  // namespace

std::unique_ptr<Memory> NullBackend::allocate(Bytes size, MemoryKind) {
  return std::make_unique<Reservation>(size);
}

void NullBackend::begin_step(std::size_t streams, std::size_t events, const StepState&) {
  host_ = {};
  clock_.assign(streams, {});
  events_.assign(events, {});
  ran_.clear();
}

void NullBackend::advance(std::uint32_t step, std::size_t stream) {
  // An optimizer step is many calls: the first one is charged for all.
  const bool goes_on = !ran_.empty() && ran_.back().step == step;
  const Charge charge = step < charges_.size() && !goes_on ? charges_[step] : Charge{};
  host_ += charge.host;
  const Nanoseconds begin = std::max(clock_[stream], host_);
  clock_[stream] = begin + charge.stream;
  ran_.push_back({step, static_cast<std::uint8_t>(stream), begin, clock_[stream]});
}

void NullBackend::run(std::uint32_t step, std::size_t stream, const Call&) {
  advance(step, stream);
}

void NullBackend::copy(std::uint32_t step, std::size_t stream, std::byte*, const std::byte*,
                       Bytes) {
  advance(step, stream);
}

void NullBackend::wait(std::size_t stream, std::size_t event) {
  clock_[stream] = std::max(clock_[stream], events_[event]);
}

void NullBackend::download(void* to, const std::byte*, Bytes size) {
  std::memset(to, 0, static_cast<std::size_t>(size.count));
}

}  // namespace tidemark::profiler
