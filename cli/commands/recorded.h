// Files that hold what ran already: timelines, and what PyTorch has recorded.
#pragma once

#include <string>

#include "analysis/recording/recording.h"
#include "cli/commands/commands.h"
#include "importers/kineto.h"
#include "importers/memory_snapshot.h"
#include "importers/snapshot_timeline.h"

namespace tidemark::cli {

/// A recorded run, a memory snapshot or a profile of PyTorch, or an export of Nsight Systems, by
/// its first bytes.
bool is_imported(const std::string& path);

/// One of those, or a timeline file, by its name.
bool is_recorded(const std::string& path);

/// Reads any of them.
Recording read_recorded(const std::string& path, ReadProgress* progress = nullptr);

/// For comparisons with one step: of a run in which an optimizer did some, the last whole one.
Recording read_step(const std::string& path);

/// What ran, to be held beside a prediction.
struct RecordedRun {
  Recording recording;  ///< of a snapshot with what each block is for, where its stack says so
  std::vector<Bytes> requested;  ///< by buffer, of a snapshot: what was asked for
};

/// Reads any of them. InputError if it has no blocks.
RecordedRun read_beside(const std::string& path);

/// A snapshot as what every view takes.
Recording recording_of(const importers::MemorySnapshot& snapshot,
                       const importers::SnapshotTimeline& made);

/// UsageError of a profile, a recorded run or an export of Nsight Systems, where a step to plan or
/// to explain is needed.
void refuse_profile(const std::string& path);

/// UsageError if an option is given that would change a prediction.
void refuse_inputs(const Options& options);

/// `tidemark explain snapshot.pickle`.
Result explain_snapshot(const Options& options);

/// `tidemark explain run.timeline`.
Result explain_run(const Options& options);

}  // namespace tidemark::cli
