// What a replay shows: predicted beside measured, computed once and printed many ways.
#pragma once

#include <functional>
#include <optional>

#include "analysis/report.h"
#include "kernels/backend.h"
#include "profiler/data_file.h"
#include "profiler/gradient_difference.h"
#include "profiler/replay.h"

namespace tidemark::profiler {

/// Steps that are not timed: the first one touches memory and chooses algorithms; a GPU's clock and
/// caches settle over the next few.
constexpr std::int64_t usual_warm_up(Ground ground) { return ground == Ground::Device ? 5 : 1; }

struct ReplayScenario {
  std::shared_ptr<const Trace> trace;
  StrategySpec strategy;
  Device device;  ///< predicts
  std::int64_t steps = 5;
  std::int64_t warm_up = 1;  ///< steps before them that are not timed
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  bool checks_gradients = true;
  /// Each parameter is its first 65,536 numbers again and again, and none is made of another
  /// network's: for who asks for times alone.
  bool repeats_values = false;
  /// Fills the inputs of a step instead of synthetic_input(): numbers, row-major, or nothing.
  Data data = {};
};

/// The same numbers, predicted and measured.
struct ReplayNumbers {
  Bytes live_peak;
  BytesByCategory at_peak{};
  Bytes planned;
  Nanoseconds step{};                    ///< measured: the median
  Nanoseconds overlap{};                 ///< both streams busy
  std::optional<RecoveryTime> recovery;  ///< unset: stopped before it was known

  /// Of the recovery's time; nothing where nothing is recovered.
  std::optional<double> hidden_share() const;
};

/// How the gradients of one step compare with those of a step that keeps everything.
struct GradientComparison {
  std::string reference;  ///< what it is compared with, in words
  bool is_rewired;        ///< another network than the trace's, compared with itself
  GradientDifference difference;
};

struct ReplayReport {
  std::string strategy, backend, description, device;
  bool applies = true;
  std::string reason;  ///< why it does not apply
  ReplayNumbers predicted, measured;
  Nanoseconds fastest{}, slowest{};
  /// Where clocks between runs cost time: the same step with each run timed, which the timeline,
  /// overlap and recovery are of. `measured.step` is without them.
  std::optional<Nanoseconds> run_by_run;
  std::string remark;  ///< of the backend
  std::vector<double> losses;
  std::int64_t steps_asked = 0, steps_timed = 0;
  std::optional<GradientComparison> gradients;
  Bytes workspace;                ///< kernels' scratch and quantizers' ranges, outside of the arena
  Bytes host_memory;              ///< for offloaded tensors
  std::optional<Bytes> resident;  ///< the process's peak above its baseline; CPU backend only
};

/// One step is done, or the gradient check is; `total` counts both.
using ReplayProgress = std::function<void(std::int64_t done, std::int64_t total)>;

struct ReplayEvaluation {
  ReplayReport report;
  Evaluation predicted;
  std::optional<Timeline> measured;  ///< of the step of median time
};

/// Runs it, and where it overlaps, the same plan on one stream after it. `stop` is asked between
/// steps; what was measured so far stays. InputError where the backend or a kernel cannot, or the
/// loss is no number, with the step it happened at.
ReplayEvaluation replay(const ReplayScenario& scenario, Backend& backend,
                        const ReplayProgress& progress = {},
                        const std::function<bool()>& stop = {});

}  // namespace tidemark::profiler
