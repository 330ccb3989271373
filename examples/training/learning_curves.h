// One picture of how a task was learned: the loss over the steps, and where each seed ended.
#pragma once

#include <span>
#include <string>

#include "examples/training/trainer.h"

namespace tidemark::training {

/// SVG. The first strategy is vanilla; those that do not apply are left out.
std::string learning_curves(std::string_view title, std::span<const Trained> strategies);

}  // namespace tidemark::training
