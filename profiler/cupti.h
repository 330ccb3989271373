// Watches the GPU's work with CUPTI's activity records. The library is opened at run time: a
// machine without it, or without a GPU, gets a line that says so.
//
// Only records are asked for; no subscriber is registered, so that debuggers and other profilers,
// of which CUPTI serves one at a time, are disturbed as little as possible.
#pragma once

#include <memory>
#include <span>

#include "kernels/backend.h"
#include "profiler/cupti_interface.h"
#include "profiler/cupti_records.h"

namespace tidemark::profiler {

/// CUPTI itself: the copy that the process has already loaded, else the one of the environment
/// variable TIDEMARK_CUPTI, else the system's, else the toolkit's usual folder. "off" in that
/// variable means none: watching costs time on every launch.
class CuptiLibrary {
 public:
  /// InputError if there is none, or one whose records are not known.
  CuptiLibrary();
  explicit CuptiLibrary(const std::string& file);

  const cupti::Functions& functions() const { return functions_; }
  std::uint32_t version() const { return version_; }
  /// InputError "what: CUPTI's text" unless it is success.
  void check(cupti::Result result, const std::string& what) const;

 private:
  void load(void* handle, const std::string& file);

  cupti::Functions functions_{};
  std::uint32_t version_ = 0;
};

/// Adds the records of one buffer. The step of a record is told by another, which may come later
/// or in another buffer.
void decode(const CuptiLibrary& library, std::span<std::uint8_t> buffer, CuptiRecording& into);

/// One at a time in a process. Made before the first CUDA call, or CUPTI's buffers lie on the
/// device, in the very memory that is to be measured; started when there is a GPU to record.
class CuptiRecorder {
 public:
  explicit CuptiRecorder(std::shared_ptr<const CuptiLibrary> library);
  ~CuptiRecorder();
  CuptiRecorder(const CuptiRecorder&) = delete;
  CuptiRecorder& operator=(const CuptiRecorder&) = delete;

  /// InputError if CUPTI refuses: another profiler holds it, or there is no GPU.
  void start();
  /// Until it is started again launches cost what they cost without CUPTI.
  void stop();

  /// What the calling thread launches from now on belongs to this step, until pop().
  void push(std::uint64_t step);
  void pop();
  /// On the clock of the records.
  Nanoseconds now() const;
  /// Reads the buffers that CUPTI has filled so far, so that few are held however long a step is.
  void drain();
  /// Everything since the start, or the last take(). The GPU must have been waited for.
  CuptiRecording take();

 private:
  std::shared_ptr<const CuptiLibrary> library_;
  bool buffers_are_pinned_ = false;
  std::vector<std::uint32_t> kinds_;  ///< that were turned on
  CuptiRecording read_;               ///< by drain()
};

/// The runs with the times that CUPTI saw instead of the backend's own: from the first to the last
/// kernel or transfer of each step, since `origin`. `unseen` counts runs without either, which
/// keep their times.
std::vector<Ran> with_seen_times(std::vector<Ran> ran, const CuptiRecording& recording,
                                 Nanoseconds origin, std::size_t* unseen = nullptr);

}  // namespace tidemark::profiler
