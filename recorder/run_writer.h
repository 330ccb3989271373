// Writes a recorded run, chunk by chunk. What is in the file is whole at any moment: a chunk is one
// write(), and one that failed is cut off again, after which nothing but the end is written.
//
// Belongs to one thread. No exceptions: it lives in other people's processes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/run_layout.h"

namespace tidemark::recorder {

using importers::EndRow;
using importers::KernelRow;
using importers::LaunchRow;
using importers::MemoryRow;
using importers::PoolRow;
using importers::RangeRow;
using importers::TransferRow;

/// Rows of one kind that wait to be written.
template <typename Row>
struct Rows {
  std::uint32_t kind;
  std::vector<Row> rows = {};
};

class RunWriter {
 public:
  RunWriter() = default;
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  /// A new file. False, with errno, where there can be none.
  bool open(const std::string& path);
  bool is_open() const { return file_ >= 0; }

  /// JSON for chunk_process, or a line for chunk_note; written at once.
  void add_text(std::uint32_t kind, std::string_view text);
  /// The number of a name.
  std::uint32_t name(std::string_view text);

  void add(const KernelRow& row) { add(kernels_, row); }
  void add(const TransferRow& row) { add(transfers_, row); }
  void add(const MemoryRow& row) { add(memory_, row); }
  void add(const PoolRow& row) { add(pools_, row); }
  void add(const RangeRow& row) { add(ranges_, row); }
  void add(const LaunchRow& row) { add(launches_, row); }

  /// Writes what waits.
  void flush();
  /// Writes what waits, and the end; nothing can be added afterwards.
  void finish(EndRow end);

 private:
  template <typename Row>
  void add(Rows<Row>& into, const Row& row) {
    constexpr std::size_t enough = 1 << 16;  // bytes: few calls of the system, little to lose
    into.rows.push_back(row);
    if (into.rows.size() * sizeof(Row) >= enough) flush();
  }
  template <typename Row>
  void write_rows(Rows<Row>& waiting);
  void write_chunk(std::uint32_t kind, std::string_view bytes);

  int file_ = -1;
  std::int64_t whole_ = 0;  ///< bytes of the file up to the last whole chunk
  int error_ = 0;           ///< of the first write that failed
  std::string chunk_;       ///< under way
  std::string new_names_;   ///< as they stand in a chunk
  std::unordered_map<std::string, std::uint32_t> names_;
  Rows<KernelRow> kernels_{importers::chunk_kernels};
  Rows<TransferRow> transfers_{importers::chunk_transfers};
  Rows<MemoryRow> memory_{importers::chunk_memory};
  Rows<PoolRow> pools_{importers::chunk_pools};
  Rows<RangeRow> ranges_{importers::chunk_ranges};
  Rows<LaunchRow> launches_{importers::chunk_launches};
};

}  // namespace tidemark::recorder
