// Where kernels run: memory, streams and events. The one polymorphic type of the program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/call.h"

namespace tidemark {

/// When one step of the schedule ran, in nanoseconds since begin_step().
struct Ran {
  std::uint32_t step = 0;  ///< as given to run() or copy()
  std::uint8_t stream = 0;
  Nanoseconds begin{}, end{};
};

/// A block of memory of a backend, freed with it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* data() const = 0;
  virtual Bytes size() const = 0;
};

enum class MemoryKind : std::uint8_t { Device, Host };

/// Whose memory a backend works in, and so what its numbers mean.
enum class Ground : std::uint8_t {
  Process,   ///< this process's own: its kernels compute here
  Device,    ///< a device's, behind a link to the host
  Addresses  ///< nobody's: nothing is computed, and steps take the time they are charged
};

/// What a step of the schedule takes on a backend that computes nothing.
struct Charge {
  Nanoseconds host{};    ///< to issue it
  Nanoseconds stream{};  ///< to run it
};

/// What a device says of itself.
struct DeviceTraits {
  std::string compute_capability;  ///< "9.0"
  int processors = 1;              ///< multiprocessors
  double clock_hz = 0;             ///< boost
  Bytes l2_cache;
};

/// A clock between two runs delays the second one by about a microsecond, which small kernels show.
enum class Timing : std::uint8_t {
  EachRun,   ///< finish() says when each run began and ended
  WholeStep  ///< step_time() says how long all took, undisturbed; runs have no times
};

/// Work is issued in host order and runs in order on each stream. What fails throws InputError
/// with place and remedy, at the latest from finish(); the backend is then of no further use but
/// can be destroyed: no stream hangs.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  ///< "cpu", "cuda", "null"
  virtual Ground ground() const = 0;
  virtual std::string description() const = 0;  ///< of the hardware: "NVIDIA H200, driver …"
  virtual Bytes capacity() const = 0;           ///< memory of the device; 0 = unknown
  virtual std::optional<DeviceTraits> traits() const { return {}; }  ///< of a GPU
  /// What it did otherwise than its user may think, since it was made: one line, or "".
  virtual std::string remark() const { return {}; }
  /// Memory for kernels' own scratch: what has been taken so far.
  virtual Bytes workspace() const = 0;

  /// Zero-filled. InputError if there is not so much.
  virtual std::unique_ptr<Memory> allocate(Bytes size, MemoryKind kind) = 0;

  /// Starts a step: as many streams and events as the schedule has; the clock starts at 0.
  virtual void begin_step(std::size_t streams, std::size_t events, const StepState& state) = 0;
  /// The call must live until finish().
  virtual void run(std::uint32_t step, std::size_t stream, const Call& call) = 0;
  /// Between device and host memory, on a stream.
  virtual void copy(std::uint32_t step, std::size_t stream, std::byte* to, const std::byte* from,
                    Bytes size) = 0;
  virtual void record(std::size_t stream, std::size_t event) = 0;
  virtual void wait(std::size_t stream, std::size_t event) = 0;
  /// The host waits for the event.
  virtual void synchronize(std::size_t event) = 0;
  /// Waits for all streams. Runs in the order in which they were issued.
  virtual std::vector<Ran> finish() = 0;
  /// How long the host took to issue the step, where the backend has a clock of its own.
  virtual std::optional<Nanoseconds> host_time() const { return {}; }

  // Outside of steps.
  /// How the next steps are timed. Backends whose clocks cost nothing time every run.
  virtual void time_by(Timing) {}
  /// From the begin of the last step to the end of its last stream, under Timing::WholeStep.
  virtual std::optional<Nanoseconds> step_time() const { return {}; }
  /// By step of the schedule that comes next; steps beyond take no time. Where something is
  /// computed it takes the time that it takes.
  virtual void charge(std::vector<Charge>) {}
  virtual void upload(std::byte* to, const void* from, Bytes size) = 0;
  virtual void download(void* to, const std::byte* from, Bytes size) = 0;
};

/// Streams are threads of this process; each kernel runs on one core.
std::unique_ptr<Backend> make_cpu_backend();

/// Loads the CUDA plugin, which lies beside the program or where TIDEMARK_CUDA_PLUGIN points.
/// InputError if it is not there, of another version, or finds no usable GPU: one line that says
/// which, and what to do.
std::unique_ptr<Backend> load_cuda_backend();

}  // namespace tidemark
