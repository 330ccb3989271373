// Sums over what is decided and over the stage's ops.
#include "simulator/planner/stage_noise.h"

namespace tidemark {

GradientError stage_error(const GradientNoise& noise, const Stage& stage, const LocalPlan& local) {
  GradientError error;
  for (std::size_t d = 0; d < stage.decided.size(); ++d)
    if (const Form& form = local.forms[d]; form.action == Action::Quantize)
      error.codes += noise.of_codes(stage.decided[d], form.encoding.bits);
  for (std::size_t k = 0; k < stage.inputs.size(); ++k)
    if (const Form& form = local.inputs[k]; form.action == Action::Quantize)
      error.codes += noise.of_codes(stage.inputs[k], form.encoding.bits);
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    error.operators += noise.of_op(static_cast<OpId>(i));
  return error;
}

}  // namespace tidemark
