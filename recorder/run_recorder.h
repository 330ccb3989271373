// The recording of this process: a thread that takes what CUPTI and NVTX leave, and writes it.
//
//   CUPTI's threads ──buffers──┐
//   the program's   ──ranges───┴─► queue (bounded) ─► thread ─► RunWriter ─► file
//
// Nothing here throws, waits for the disk in the program's threads, or takes more memory than
// `most_buffers` and `most_ranges` say: what does not fit is counted and left out.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark::recorder {

/// The folder that the variable TIDEMARK_RUN_FOLDER names gets a file PID.run, once. False where it
/// is not set or no file can be made.
bool start_run();

/// Lets CUPTI record kernels, copies and memory. What is missing becomes a note in the file.
void record_gpu();

/// Lets CUPTI also record which call launched what: for programs that name ranges.
void record_launches();

struct Range {
  std::uint64_t begin = 0, end = 0;
  const std::string* name = nullptr;  ///< stays
  std::uint32_t thread = 0;
};
void add_range(const Range& range);

/// Of a name that had to become "(others)".
void count_name_left();

/// Lets the handler that is there answer this signal first, which one of Python's only does when
/// the interpreter gets to it: where the program is still there some seconds later, the recording
/// and the program end as without it. False: nothing is recorded, and nothing changed.
bool let_handler_answer(int signal);

/// Ends the recording as by this signal; its end in the program is the caller's.
void end_by_signal(int signal);

/// Is this process recorded? Not after a fork.
bool is_recording();

/// Nanoseconds since 1970.
std::uint64_t now();

}  // namespace tidemark::recorder
