// A backend that computes nothing: each run takes the time that it is charged, on a clock of its
// own, and begins no earlier than a host of that clock could have issued it. Memory is address
// space that nobody touches, so any model can be replayed on any machine.
#pragma once

#include <algorithm>

#include "kernels/backend.h"

namespace tidemark::profiler {

class NullBackend : public Backend {
 public:
  std::string name() const override { return "null"; }
  Ground ground() const override { return Ground::Addresses; }
  std::string description() const override { return "no hardware: predicted times, no values"; }
  Bytes capacity() const override { return {}; }
  Bytes workspace() const override { return {}; }
  std::unique_ptr<Memory> allocate(Bytes size, MemoryKind kind) override;
  void begin_step(std::size_t streams, std::size_t events, const StepState& state) override;
  void run(std::uint32_t step, std::size_t stream, const Call& call) override;
  void copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
            Bytes size) override;
  void record(std::size_t stream, std::size_t event) override { events_[event] = clock_[stream]; }
  void wait(std::size_t stream, std::size_t event) override;
  void synchronize(std::size_t event) override { host_ = std::max(host_, events_[event]); }
  std::vector<Ran> finish() override { return std::move(ran_); }
  std::optional<Nanoseconds> host_time() const override { return host_; }
  void charge(std::vector<Charge> charges) override { charges_ = std::move(charges); }
  void upload(std::byte*, const void*, Bytes) override {}
  void download(void* to, const std::byte* from, Bytes size) override;

 private:
  void advance(std::uint32_t step, std::size_t stream);

  std::vector<Charge> charges_;
  Nanoseconds host_{};
  std::vector<Nanoseconds> clock_, events_;  ///< by stream, by event
  std::vector<Ran> ran_;
};

}  // namespace tidemark::profiler
