// No lock of ours is held while CUPTI is called: it calls back with locks of its own. The thread
// has all signals blocked, so that the program's handlers run where they would without it, and a
// file limit (SIGXFSZ) is an error of write() instead of the program's end.
#include "recorder/run_recorder.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <mutex>
#include <utility>
#include <vector>

#include "recorder/cupti_library.h"
#include "recorder/cupti_rows.h"
#include "recorder/process_text.h"
#include "recorder/run_writer.h"

namespace tidemark::recorder {
namespace {

namespace cupti = profiler::cupti;

/// CUPTI recommends 1 to 10 MB; a process that is killed loses those that are not full.
constexpr std::size_t buffer_size = std::size_t{1} << 20;
constexpr std::size_t most_buffers = 64;
/// What CUPTI gets when those are in use. What it writes there is counted, not kept: CUPTI before
/// 12.9 is said not to bear a refusal.
constexpr std::size_t spare_size = std::size_t{1} << 16;
constexpr std::size_t most_ranges = std::size_t{1} << 16;
constexpr long tick_nanoseconds = 250'000'000;
/// How long the program's end may wait for the disk, and its death by a signal.
constexpr int exit_seconds = 10, signal_seconds = 2;
constexpr int asked_by_exit = -1;
/// How long a handler in Python may take before the program ends without it: the history of a
/// million events is a file of a few hundred megabytes.
constexpr int answer_seconds = 20;

struct Buffer {
  std::uint8_t* data;
  std::size_t valid;
};

/// A chunk of text that waits.
struct Text {
  std::uint32_t kind;
  std::string text;
};

/// Never destroyed: CUPTI may call until the very end.
struct Run {
  std::mutex mutex;  // of what follows
  std::vector<Buffer> completed;
  std::vector<Range> ranges;
  std::vector<Text> texts;
  std::size_t in_use = 0;  ///< buffers that CUPTI has, or that wait
  std::uint64_t dropped = 0, ranges_left = 0;

  sem_t wake;
  std::atomic<int> asked = 0;     ///< to end, by a signal or asked_by_exit
  std::atomic<int> answered = 0;  ///< a signal that a handler of Python's is to answer
  std::atomic<std::uint64_t> answered_at = 0;
  std::atomic<bool> is_done = false;
  std::atomic<std::uint64_t> names_left = 0;
  std::atomic<const CuptiLibrary*> library = nullptr;
  std::int64_t clock_offset = 0;
  RunWriter writer;  ///< the thread's alone
};

std::atomic<Run*> the_run = nullptr;

void add_note(Run& run, std::string note) {
  const std::lock_guard lock(run.mutex);
  run.texts.push_back({importers::chunk_note, std::move(note)});
}

void add_version(Run& run, const CuptiLibrary& library) {
  const std::lock_guard lock(run.mutex);
  run.texts.push_back(
      {importers::chunk_process, "{\"cupti\": " + std::to_string(library.version) + "}"});
}

extern "C" void tidemark_run_buffer_requested(std::uint8_t** buffer, std::size_t* size,
                                              std::size_t* records) {
  *records = 0;  // as many as fit
  bool is_spare = true;
  if (Run* const run = the_run; run != nullptr && !run->is_done) {
    const std::lock_guard lock(run->mutex);
    is_spare = run->in_use >= most_buffers;
    if (!is_spare) ++run->in_use;
  }
  *size = is_spare ? spare_size : buffer_size;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  if (*buffer == nullptr) *size = 0;
}

template <typename Take>
void for_each_record(const CuptiLibrary& library, const Buffer& buffer, Take take) {
  std::uint8_t* record = nullptr;
  // Records of later versions are longer: only CUPTI knows where the next one begins.
  while (buffer.valid > 0 && library.functions.ActivityGetNextRecord(buffer.data, buffer.valid,
                                                                     &record) == cupti::success)
    take(record);
}

extern "C" void tidemark_run_buffer_completed(void* context, std::uint32_t stream,
                                              std::uint8_t* buffer, std::size_t size,
                                              std::size_t valid) {
  Run* const run = the_run;
  const CuptiLibrary* const library = run == nullptr ? nullptr : run->library.load();
  if (library == nullptr) return std::free(buffer);
  std::size_t dropped = 0;
  library->functions.ActivityGetNumDroppedRecords(context, stream, &dropped);
  if (size == spare_size) for_each_record(*library, {buffer, valid}, [&](auto*) { ++dropped; });
  const std::lock_guard lock(run->mutex);
  run->dropped += dropped;
  if (size == spare_size) return std::free(buffer);
  run->completed.push_back({buffer, valid});
  ::sem_post(&run->wake);
}

void write_texts(Run& run) {
  std::vector<Text> taken;
  {
    const std::lock_guard lock(run.mutex);
    taken.swap(run.texts);
  }
  for (const Text& text : taken) run.writer.add_text(text.kind, text.text);
}

void write_buffers(Run& run) {
  std::vector<Buffer> taken;
  {
    const std::lock_guard lock(run.mutex);
    taken.swap(run.completed);
  }
  const CuptiLibrary* const library = run.library;
  for (const Buffer& buffer : taken) {
    for_each_record(*library, buffer, [&](const std::uint8_t* record) {
      add_record(record, run.clock_offset, run.writer);
    });
    std::free(buffer.data);
    const std::lock_guard lock(run.mutex);
    --run.in_use;
  }
}

void write_ranges(Run& run) {
  std::vector<Range> taken;
  {
    const std::lock_guard lock(run.mutex);
    taken.swap(run.ranges);
  }
  for (const Range& range : taken)
    run.writer.add(RangeRow{range.begin, range.end, run.writer.name(*range.name), range.thread});
}

void write_end(Run& run, int asked) {
  EndRow end;
  end.time = now();
  end.signal = asked == asked_by_exit ? 0 : static_cast<std::uint32_t>(asked);
  end.names_left = run.names_left;
  const std::lock_guard lock(run.mutex);
  end.dropped = run.dropped + run.ranges_left;
  end.outstanding = run.in_use;
  run.writer.finish(end);
}

void wait_for_work(Run& run) {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += tick_nanoseconds;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  while (::sem_timedwait(&run.wake, &until) != 0 && errno == EINTR) {
  }
}

void die_by(int signal) {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::kill(::getpid(), signal);
}

/// The signal whose handler has not come to its end in time, or 0.
int overdue(const Run& run) {
  const int signal = run.answered;
  const std::uint64_t limit = std::uint64_t{answer_seconds} * 1'000'000'000;
  return signal != 0 && now() - run.answered_at > limit ? signal : 0;
}

void* write_run(void* argument) {
  Run& run = *static_cast<Run*>(argument);
  for (int asked = 0; asked == 0;) {
    wait_for_work(run);
    const int late = overdue(run);
    int nobody = 0;
    if (late != 0) run.asked.compare_exchange_strong(nobody, late);
    asked = run.asked;
    if (const CuptiLibrary* const library = run.library) {
      library->functions.ActivityFlushAll(0);
      if (asked != 0) library->functions.ActivityFlushAll(cupti::flush_forced);
    }
    write_texts(run);
    write_buffers(run);
    write_ranges(run);
    run.writer.flush();
    if (asked != 0) write_end(run, asked);
  }
  run.is_done = true;
  if (const int late = overdue(run)) die_by(late);
  return nullptr;
}

bool start_thread(Run& run) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool is_started = ::pthread_create(&thread, nullptr, write_run, &run) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (is_started) ::pthread_detach(thread);
  return is_started;
}

// May run in a signal's handler: nothing but atomics, sem_post() and nanosleep().
void end_run(int why, int seconds) {
  Run* const run = the_run;
  if (run == nullptr) return;
  int nobody = 0;
  run->asked.compare_exchange_strong(nobody, why);
  ::sem_post(&run->wake);
  constexpr timespec pause{0, 2'000'000};
  for (int i = 0; i < seconds * 500 && !run->is_done; ++i) ::nanosleep(&pause, nullptr);
}

// Ends as the signal would have ended it: the same cause, told to whoever waits for the process.
extern "C" void tidemark_run_on_signal(int signal, siginfo_t* info, void*) {
  const int before = errno;
  end_run(signal, signal_seconds);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  const bool is_fault =
      (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL) &&
      info->si_code > 0;
  if (!is_fault) ::raise(signal);  // a fault happens again by itself, at its own place
  errno = before;
}

/// Python's, by signal: it notes the signal for the interpreter.
struct sigaction answering[NSIG] = {};

extern "C" void tidemark_run_on_answered(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  if (Run* const run = the_run) {
    run->answered_at = now();
    run->answered = signal;
  }
  const struct sigaction& own = answering[signal];
  if ((own.sa_flags & SA_SIGINFO) != 0)
    own.sa_sigaction(signal, info, context);
  else if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN)
    own.sa_handler(signal);
  errno = before;
}

// Only those that would end the program: handlers of its own stay, those that it sets later win.
void watch_signals() {
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_sigaction = tidemark_run_on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigfillset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
  }
}

/// What to add to CUPTI's times, which are CLOCK_REALTIME unless somebody gave it another clock.
std::int64_t clock_offset(const CuptiLibrary& library) {
  std::uint64_t time = 0;
  if (library.functions.GetTimestamp(&time) != cupti::success) return 0;
  const auto offset = static_cast<std::int64_t>(now() - time);
  constexpr std::int64_t as_good_as_equal = 1'000'000;  // far more than two calls are apart
  return std::abs(offset) < as_good_as_equal ? 0 : offset;
}

/// A kind of record, and what is missing without it.
struct Kind {
  std::uint32_t number;
  const char* what;
};

// One line says who keeps us out, whatever the number of kinds.
void enable(Run& run, const CuptiLibrary& library, std::initializer_list<Kind> kinds) {
  for (const Kind& kind : kinds) {
    const cupti::Result result = library.functions.ActivityEnable(kind.number);
    if (result == cupti::success) continue;
    if (result == cupti::too_many_subscribers)
      return add_note(run, "CUPTI records nothing: another profiler or debugger holds it (" +
                               library.text_of(result) + ")");
    add_note(run,
             std::string("CUPTI does not record ") + kind.what + ": " + library.text_of(result));
  }
}

}  // namespace

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

bool let_handler_answer(int signal) {
  if (signal <= 0 || signal >= NSIG || the_run.load() == nullptr) return false;
  ::sigaction(signal, nullptr, &answering[signal]);
  struct sigaction ours {};
  ours.sa_sigaction = tidemark_run_on_answered;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return ::sigaction(signal, &ours, nullptr) == 0;
}

void end_by_signal(int signal) { end_run(signal, signal_seconds); }

bool is_recording() {
  Run* const run = the_run;
  return run != nullptr && run->asked == 0;
}

bool start_run() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (the_run.load() != nullptr) return true;
  const char* const folder = std::getenv("TIDEMARK_RUN_FOLDER");
  if (folder == nullptr) return false;
  auto* const run = new Run;
  ::sem_init(&run->wake, 0, 0);
  if (!run->writer.open(std::string(folder) + "/" + std::to_string(::getpid()) + ".run"))
    return delete run, false;
  run->writer.add_text(importers::chunk_process, process_text(now()));
  the_run = run;
  if (!start_thread(*run)) return the_run = nullptr, false;
  watch_signals();
  static bool is_registered = false;  // once, for the process that forks, too
  if (!std::exchange(is_registered, true)) {
    std::atexit([] { end_run(asked_by_exit, exit_seconds); });
    ::pthread_atfork(nullptr, nullptr, [] { the_run = nullptr; });
  }
  return true;
}

void record_gpu() {
  Run* const run = the_run;
  if (run == nullptr || run->library != nullptr) return;
  auto* const library = new CuptiLibrary;
  std::string problem;
  if (!load_cupti(*library, problem)) return add_note(*run, problem), delete library;
  const cupti::Functions& f = library->functions;
  // Its buffers would lie on the device: a recorder of memory keeps out of it. Refused on some
  // machines (confidential computing).
  std::uint8_t yes = 1;
  std::size_t size = sizeof yes;
  if (f.ActivitySetAttribute(cupti::attribute_host_pinned, &size, &yes) != cupti::success)
    add_note(*run, "CUPTI's own buffers lie in device memory");
  run->clock_offset = clock_offset(*library);
  run->library = library;
  const cupti::Result result =
      f.ActivityRegisterCallbacks(tidemark_run_buffer_requested, tidemark_run_buffer_completed);
  if (result != cupti::success)
    return add_note(*run, "CUPTI takes no buffers: " + library->text_of(result));
  add_version(*run, *library);
  enable(*run, *library,
         {{cupti::kind_concurrent_kernel, "kernels"},
          {cupti::kind_memcpy, "copies"},
          {cupti::kind_memset, "fills"},
          {cupti::kind_memory, "memory"},
          {cupti::kind_memory_pool, "memory pools"}});
}

void record_launches() {
  Run* const run = the_run;
  const CuptiLibrary* const library = run == nullptr ? nullptr : run->library.load();
  static std::atomic<bool> is_asked = false;
  if (library == nullptr || is_asked.exchange(true)) return;
  enable(
      *run, *library,
      {{cupti::kind_runtime, "calls of the runtime"}, {cupti::kind_driver, "calls of the driver"}});
}

void add_range(const Range& range) {
  Run* const run = the_run;
  if (run == nullptr) return;
  const std::lock_guard lock(run->mutex);
  if (run->ranges.size() < most_ranges) {
    run->ranges.push_back(range);
  } else {
    ++run->ranges_left;
  }
}

void count_name_left() {
  if (Run* const run = the_run) ++run->names_left;
}

}  // namespace tidemark::recorder
