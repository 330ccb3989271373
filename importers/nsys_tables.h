// What an export of Nsight Systems holds, of one process on one GPU, before it is made a timeline.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "importers/sqlite_file.h"
#include "simulator/schedule.h"

namespace tidemark::importers {

/// A kernel, a copy, a fill or a CUDA graph. Times are nanoseconds of the recording.
struct NsysRun {
  std::int64_t begin = 0, end = 0;
  std::int64_t process = 0, device = 0;
  std::int64_t context = 0, stream = 0;
  std::int64_t correlation = 0;  ///< with the call that launched it; 0: none
  std::uint32_t name = 0;        ///< into names
  Task task = Task::Forward;     ///< as ranges say; forward where none does
};

/// Memory was asked of the driver, or given back to it.
struct NsysMemory {
  std::int64_t time = 0, address = 0, bytes = 0;
  const char* name = nullptr;  ///< of its kind
  bool appears = true;
};

struct NsysTables {
  std::vector<std::string> names;
  std::vector<NsysRun> runs;  ///< of the busiest process and GPU
  std::int64_t process = 0, device = 0;
  std::vector<NsysMemory> memory;  ///< of the same, in the order of time
};

NsysTables read_nsys_tables(SqliteFile& file);

}  // namespace tidemark::importers
