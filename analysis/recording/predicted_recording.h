// From an evaluation to what views show and files hold: a predicted recording.
#pragma once

#include "analysis/comparison.h"
#include "analysis/recording/recording.h"
#include "analysis/report.h"

namespace tidemark {

/// With the arena's offsets, and for each tensor that the backward needs what was decided and why:
/// "recompute: …". The evaluation's strategy must apply.
Recording recording_of(const Evaluation& evaluation, const Device& device);

/// Of each row that applies, in their order; on all cores.
std::vector<Recording> recordings_of(const Comparison& comparison);

/// By tensor; "" for those that no backward needs and views of others.
std::vector<std::string> decision_texts(const PlannedStep& planned);

}  // namespace tidemark
