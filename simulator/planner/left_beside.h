// What the forwards of earlier stages have left beside what they keep, in a chain of stages.
#pragma once

#include <utility>
#include <vector>

#include "simulator/planner/stages.h"
#include "simulator/planner/survey.h"

namespace tidemark {

class LeftBeside {
 public:
  void add(const Stage& stage, std::int64_t late, std::int64_t input) {
    late_ += late;
    if (stage.input_held != no_op) named_.emplace_back(stage.input_held, input);
  }
  void add(const Stage& stage, const StagePass& cost) { add(stage, cost.late, cost.input); }

  /// Before the forward of the stage that begins with the op.
  std::int64_t before(OpId begin) const {
    std::int64_t bytes = late_;
    for (const auto& [until, input] : named_)
      if (until >= begin) bytes += input;
    return bytes;
  }

 private:
  std::int64_t late_ = 0;
  std::vector<std::pair<OpId, std::int64_t>> named_;  ///< until the op has run
};

}  // namespace tidemark
