// The CUDA backend with CUPTI looking on: the same runs, with the times at which the GPU really
// worked on them. Without it times are those of events around each run, which include the wait for
// a host that is late.
#pragma once

#include <functional>

#include "profiler/cupti.h"

namespace tidemark::profiler {

class ObservedBackend final : public Backend {
 public:
  /// The backend is made in here, because CUPTI wants to be asked before CUDA starts.
  ObservedBackend(const std::function<std::unique_ptr<Backend>()>& make,
                  std::shared_ptr<const CuptiLibrary> library)
      : recorder_(std::move(library)), backend_(make()) {
    recorder_.start();
  }

  /// Of the step that finish() ended last.
  const CuptiRecording& recording() const { return recording_; }
  /// Runs of it that CUPTI told nothing about; their times are the backend's own.
  std::size_t unseen() const { return unseen_; }

  std::string name() const override { return backend_->name(); }
  Ground ground() const override { return backend_->ground(); }
  std::string description() const override { return backend_->description(); }
  Bytes capacity() const override { return backend_->capacity(); }
  std::optional<DeviceTraits> traits() const override { return backend_->traits(); }
  std::string remark() const override { return backend_->remark(); }
  /// Whole steps are timed without CUPTI, which costs time on every launch.
  void time_by(Timing timing) override;
  std::optional<Nanoseconds> step_time() const override { return backend_->step_time(); }
  Bytes workspace() const override { return backend_->workspace(); }
  std::unique_ptr<Memory> allocate(Bytes size, MemoryKind kind) override {
    return backend_->allocate(size, kind);
  }
  void begin_step(std::size_t streams, std::size_t events, const StepState& state) override;
  void run(std::uint32_t step, std::size_t stream, const Call& call) override;
  void copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
            Bytes size) override;
  void record(std::size_t stream, std::size_t event) override { backend_->record(stream, event); }
  void wait(std::size_t stream, std::size_t event) override { backend_->wait(stream, event); }
  void synchronize(std::size_t event) override { backend_->synchronize(event); }
  std::vector<Ran> finish() override;
  void upload(std::byte* to, const void* from, Bytes size) override {
    backend_->upload(to, from, size);
  }
  void download(void* to, const std::byte* from, Bytes size) override {
    backend_->download(to, from, size);
  }

 private:
  CuptiRecorder recorder_;
  std::unique_ptr<Backend> backend_;
  bool is_watching_ = true;
  std::uint64_t issued_ = 0;
  Nanoseconds origin_{};
  CuptiRecording recording_;
  std::size_t unseen_ = 0;
};

/// The CUDA backend, observed where CUPTI is there and free; `note` says why it is not. NoDevice as
/// load_cuda_backend().
std::unique_ptr<Backend> load_observed_cuda_backend(std::string& note);

}  // namespace tidemark::profiler
