// A recorded run (tidemark record), as it stands in its file: docs/recording.md. Whatever ended the
// process, what was written until then is read.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "importers/run_layout.h"

namespace tidemark::importers {

struct RunFile {
  std::int64_t pid = 0;
  std::int64_t cupti_version = 0;    ///< 0: nothing was recorded by CUPTI
  std::vector<std::string> command;  ///< of the process
  std::vector<std::string> notes;    ///< what could not be recorded, and why

  std::vector<std::string> names;
  std::vector<KernelRow> kernels;
  std::vector<TransferRow> transfers;
  std::vector<MemoryRow> memory;
  std::vector<PoolRow> pools;
  std::vector<RangeRow> ranges;
  std::vector<LaunchRow> launches;
  std::vector<MarkRow> marks;
  std::string snapshot;  ///< of PyTorch: a pickle, or empty

  std::optional<EndRow> end;       ///< none: the process was killed, or none was recorded
  std::uint64_t cut_bytes = 0;     ///< of a chunk that the end of the process cut off
  std::size_t without_times = 0;   ///< kernels and transfers that CUPTI could not time: left out
  std::size_t unknown_chunks = 0;  ///< of a later version
};

/// Is it one? Said by its first bytes, whatever it is called.
bool is_run_file(const std::string& path);

/// InputError says file, byte, what is wrong and what would be right.
RunFile read_run_file(const std::string& path);
RunFile read_run_file(std::istream& file, const std::string& name);

/// Sentences about what the recording lacks.
std::vector<std::string> defects(const RunFile& run);

}  // namespace tidemark::importers
