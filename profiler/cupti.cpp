// Opens CUPTI, and owns the buffers that it writes to.
#include "profiler/cupti.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace tidemark::profiler {
namespace {

/// CUPTI recommends 1 to 10 MB, and its samples take 8 MiB.
constexpr std::size_t buffer_size = std::size_t{8} << 20;

/// Enough for a step of a hundred thousand kernels; beyond, CUPTI drops records and counts them.
constexpr std::size_t most_buffers = 64;

struct RecordBuffer {
  std::uint8_t* data;
  std::size_t valid;
};

/// CUPTI's callbacks carry no user data, so what they write to is the process's own. No lock of
/// ours is held while CUPTI is called: it calls back with locks of its own.
struct Buffers {
  std::mutex mutex;
  std::deque<RecordBuffer> completed;
  std::size_t dropped = 0;
  std::size_t in_use = 0, most_in_use = 0;
  const CuptiLibrary* library = nullptr;  ///< nullptr: nobody records
};

Buffers& buffers() {
  static Buffers* const all = new Buffers;  // never destroyed: CUPTI may call until the very end
  return *all;
}

extern "C" void tidemark_cupti_buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                                std::size_t* records) {
  *buffer = nullptr, *size = 0, *records = 0;  // 0 records: as many as fit
  const std::lock_guard lock(buffers().mutex);
  if (buffers().in_use == most_buffers) return;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_size));
  if (*buffer == nullptr) return;
  *size = buffer_size;
  buffers().most_in_use = std::max(buffers().most_in_use, ++buffers().in_use);
}

extern "C" void tidemark_cupti_buffer_completed(void* context, std::uint32_t stream,
                                                std::uint8_t* buffer, std::size_t,
                                                std::size_t valid) {
  const CuptiLibrary* library = nullptr;
  {
    const std::lock_guard lock(buffers().mutex);
    buffers().completed.push_back({buffer, valid});
    library = buffers().library;
  }
  std::size_t dropped = 0;
  if (library == nullptr || library->functions().ActivityGetNumDroppedRecords(
                                context, stream, &dropped) != cupti::success)
    return;
  const std::lock_guard lock(buffers().mutex);
  buffers().dropped += dropped;
}

std::deque<RecordBuffer> take_completed() {
  const std::lock_guard lock(buffers().mutex);
  std::deque<RecordBuffer> taken;
  taken.swap(buffers().completed);
  buffers().in_use -= taken.size();
  return taken;
}

template <typename F>
void find(void* handle, F& function, const char* name, const std::string& file) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (function == nullptr) {
    throw InputError(fmt::format("{}: no {}: this is no CUPTI of CUDA 12 or 13", file, name));
  }
}

void* open_first(std::string& file) {
  const char* const chosen = std::getenv("TIDEMARK_CUPTI");
  if (chosen != nullptr && std::string_view(chosen) == "off")
    throw InputError("TIDEMARK_CUPTI says off");
  // PyTorch and others bring their own copy: two in one process do not work.
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    file = name;
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return handle;
  }
  if (chosen != nullptr && *chosen != '\0') {
    file = chosen;
    return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13", "libcupti.so.12",
                           "/usr/local/cuda/lib64/libcupti.so.12",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"}) {
    file = name;
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

}  // namespace

CuptiLibrary::CuptiLibrary() {
  std::string file;
  load(open_first(file), file);
}

CuptiLibrary::CuptiLibrary(const std::string& file) {
  load(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), file);
}

void CuptiLibrary::load(void* handle, const std::string& file) {
  if (handle == nullptr) {
    throw InputError(
        fmt::format("CUPTI cannot be loaded: {}; it comes with the CUDA toolkit, and "
                    "TIDEMARK_CUPTI may name its file",
                    dlerror()));
  }
  const auto get = [&](auto& function, const char* name) { find(handle, function, name, file); };
  cupti::Functions& f = functions_;
  get(f.GetVersion, "cuptiGetVersion");
  get(f.GetResultString, "cuptiGetResultString");
  get(f.GetTimestamp, "cuptiGetTimestamp");
  get(f.ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
  get(f.ActivityEnable, "cuptiActivityEnable");
  get(f.ActivityDisable, "cuptiActivityDisable");
  get(f.ActivityGetNextRecord, "cuptiActivityGetNextRecord");
  get(f.ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords");
  get(f.ActivityFlushAll, "cuptiActivityFlushAll");
  get(f.ActivitySetAttribute, "cuptiActivitySetAttribute");
  get(f.ActivityGetAttribute, "cuptiActivityGetAttribute");
  get(f.ActivityPushExternalCorrelationId, "cuptiActivityPushExternalCorrelationId");
  get(f.ActivityPopExternalCorrelationId, "cuptiActivityPopExternalCorrelationId");
  check(f.GetVersion(&version_), "cuptiGetVersion");
  if (!cupti::is_known(version_)) {
    throw InputError(fmt::format(
        "{} is CUPTI version {}; the records of CUDA 12 and 13 are known (19 to 28, 13xxxx)", file,
        version_));
  }
}

void CuptiLibrary::check(cupti::Result result, const std::string& what) const {
  if (result == cupti::success) return;
  const char* text = nullptr;
  functions_.GetResultString(result, &text);
  throw InputError(fmt::format(
      "{}: {}{}", what, text == nullptr ? fmt::format("CUPTI error {}", result) : text,
      result == cupti::too_many_subscribers ? "; another profiler or debugger holds CUPTI" : ""));
}

CuptiRecorder::CuptiRecorder(std::shared_ptr<const CuptiLibrary> library)
    : library_(std::move(library)) {
  const cupti::Functions& f = library_->functions();
  {
    const std::lock_guard lock(buffers().mutex);
    if (buffers().library != nullptr) throw InputError("the GPU is being recorded already");
    buffers().library = library_.get();
  }
  try {
    // Its buffers would lie on the device: a profiler of memory keeps out of it. Refused on some
    // machines (confidential computing), and told in the recording.
    std::uint8_t yes = 1;
    std::size_t size = sizeof yes;
    buffers_are_pinned_ =
        f.ActivitySetAttribute(cupti::attribute_host_pinned, &size, &yes) == cupti::success;
    library_->check(f.ActivityRegisterCallbacks(tidemark_cupti_buffer_requested,
                                                tidemark_cupti_buffer_completed),
                    "cannot give CUPTI buffers");
  } catch (...) {
    const std::lock_guard lock(buffers().mutex);
    buffers().library = nullptr;
    throw;
  }
}

void CuptiRecorder::start() {
  // Steps are told for calls of a kind that is recorded: ours go to the runtime, some of cuBLASLt's
  // launches to the driver.
  for (const std::uint32_t kind :
       {cupti::kind_external_correlation, cupti::kind_runtime, cupti::kind_driver,
        cupti::kind_concurrent_kernel, cupti::kind_memcpy, cupti::kind_memset, cupti::kind_memory,
        cupti::kind_synchronization, cupti::kind_overhead}) {
    // Of these an older record is shorter than what is read.
    if (kind == cupti::kind_overhead && library_->version() < cupti::first_of_13) continue;
    library_->check(library_->functions().ActivityEnable(kind),
                    "CUPTI cannot record the GPU's work");
    kinds_.push_back(kind);
  }
}

void CuptiRecorder::stop() {
  for (const std::uint32_t kind : kinds_) library_->functions().ActivityDisable(kind);
  kinds_.clear();
}

CuptiRecorder::~CuptiRecorder() {
  stop();
  library_->functions().ActivityFlushAll(cupti::flush_forced);
  for (const RecordBuffer& buffer : take_completed()) std::free(buffer.data);
  const std::lock_guard lock(buffers().mutex);
  buffers().library = nullptr;
}

void CuptiRecorder::push(std::uint64_t step) {
  library_->check(
      library_->functions().ActivityPushExternalCorrelationId(cupti::correlation_custom0, step),
      "naming a step to CUPTI");
}

void CuptiRecorder::pop() {
  std::uint64_t last = 0;
  library_->functions().ActivityPopExternalCorrelationId(cupti::correlation_custom0, &last);
}

Nanoseconds CuptiRecorder::now() const {
  std::uint64_t nanoseconds = 0;
  library_->check(library_->functions().GetTimestamp(&nanoseconds), "reading CUPTI's clock");
  return Nanoseconds(static_cast<std::int64_t>(nanoseconds));
}

void CuptiRecorder::drain() {
  for (const RecordBuffer& buffer : take_completed()) {
    const std::unique_ptr<std::uint8_t, void (*)(void*)> owner(buffer.data, std::free);
    decode(*library_, {buffer.data, buffer.valid}, read_);
  }
}

CuptiRecording CuptiRecorder::take() {
  const cupti::Functions& f = library_->functions();
  // First what is complete: a forced flush hands over what is not, too, without its times.
  library_->check(f.ActivityFlushAll(0), "collecting CUPTI's records");
  library_->check(f.ActivityFlushAll(cupti::flush_forced), "collecting CUPTI's records");
  drain();
  CuptiRecording recording = std::exchange(read_, {});
  recording.version = library_->version();
  recording.buffers_are_pinned = buffers_are_pinned_;
  std::size_t device_buffer = 0, size = sizeof device_buffer;
  if (f.ActivityGetAttribute(cupti::attribute_device_buffer_size, &size, &device_buffer) ==
      cupti::success)
    recording.device_buffer = {static_cast<std::int64_t>(device_buffer)};
  const std::lock_guard lock(buffers().mutex);
  recording.dropped = std::exchange(buffers().dropped, 0);
  recording.host_buffers = {static_cast<std::int64_t>(buffers().most_in_use * buffer_size)};
  return recording;
}

std::string summary(const CuptiRecording& r) {
  std::string text = fmt::format(
      "{} kernels, {} transfers, {} allocations and releases seen by CUPTI {}; it holds {} of "
      "host buffers and at least {} in {}",
      r.kernels.size(), r.transfers.size(), r.allocations.size(), r.version,
      to_text(r.host_buffers), to_text(Bytes{3 * r.device_buffer.count}),
      r.buffers_are_pinned ? "pinned host memory" : "device memory");
  if (r.dropped > 0) text += fmt::format("; {} RECORDS WERE DROPPED", r.dropped);
  if (r.without_times > 0) text += fmt::format("; {} could not be timed", r.without_times);
  if (r.unknown > 0) text += fmt::format("; {} of unknown kinds", r.unknown);
  return text;
}

}  // namespace tidemark::profiler
