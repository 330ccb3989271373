// The inputs of a step as texts that are typed or chosen, from the one table of them: an option of
// the command line is an input of the window, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/step_fields.h"

namespace tidemark::gui {

/// Those that have no slider or list of their own in the what-if panel.
std::vector<const StepField*> other_fields();

/// As one would type it; "" while nothing is said.
std::string typed(const StepField& field, const StepOptions& step);
/// The step with this typed into the field instead; "" says nothing. Throws InputError.
StepOptions with_typed(const StepField& field, const StepOptions& step, std::string_view text);

/// The step with nothing said of this field. The step itself if no field has the key.
StepOptions without(std::string_view key, const StepOptions& step);

/// What a list offers instead of a text to type.
struct StepChoice {
  std::string shown, text;
};
/// Empty if any text may be right.
std::vector<StepChoice> choices_of(const StepField& field);

}  // namespace tidemark::gui
