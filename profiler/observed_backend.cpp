// Each run is pushed by its place among the runs of the step, not by its step of the schedule: an
// optimizer step is many runs.
#include "profiler/observed_backend.h"

#include "base/error.h"

namespace tidemark::profiler {
namespace {

class Pushed {
 public:
  Pushed(CuptiRecorder& recorder, std::uint64_t id) : recorder_(recorder) { recorder_.push(id); }
  ~Pushed() { recorder_.pop(); }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  CuptiRecorder& recorder_;
};

}  // namespace

void ObservedBackend::time_by(Timing timing) {
  const bool watches = timing == Timing::EachRun;
  if (watches && !is_watching_) recorder_.start();
  if (!watches && is_watching_) recorder_.stop();
  is_watching_ = watches;
  backend_->time_by(timing);
}

void ObservedBackend::begin_step(std::size_t streams, std::size_t events, const StepState& state) {
  issued_ = 0;
  backend_->begin_step(streams, events, state);
  origin_ = recorder_.now();
}

void ObservedBackend::run(std::uint32_t step, std::size_t stream, const Call& call) {
  if (!is_watching_) return backend_->run(step, stream, call);
  recorder_.drain();
  const Pushed pushed(recorder_, issued_++);
  backend_->run(step, stream, call);
}

void ObservedBackend::copy(std::uint32_t step, std::size_t stream, std::byte* to,
                           const std::byte* from, Bytes size) {
  if (!is_watching_) return backend_->copy(step, stream, to, from, size);
  const Pushed pushed(recorder_, issued_++);
  backend_->copy(step, stream, to, from, size);
}

std::vector<Ran> ObservedBackend::finish() {
  std::vector<Ran> ran = backend_->finish();
  if (!is_watching_) return ran;
  recording_ = recorder_.take();
  return with_seen_times(std::move(ran), recording_, origin_, &unseen_);
}

std::unique_ptr<Backend> load_observed_cuda_backend(std::string& note) {
  std::string reason;
  try {
    return std::make_unique<ObservedBackend>([] { return load_cuda_backend(); },
                                             std::make_shared<CuptiLibrary>());
  } catch (const NoDevice&) {
    throw;
  } catch (const InputError& error) {
    reason = error.what();
  }
  std::unique_ptr<Backend> backend = load_cuda_backend();
  note = "times are those of CUDA events: " + reason + "\n";  // where there is a GPU to time
  return backend;
}

}  // namespace tidemark::profiler
