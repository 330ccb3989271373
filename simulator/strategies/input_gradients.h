// Gradients that peft's users switch on behind a model's input embeddings.
#pragma once

#include <optional>

#include "simulator/strategies/strategy.h"

namespace tidemark {

/// Do they switch them on beside this? Beside the model's own checkpointing.
bool asks_for_input_gradients(const StrategySpec::Component& component);

/// The trace with them; none where nobody would, or where they are there anyway.
std::optional<Trace> add_input_gradients(const Trace& trace);

}  // namespace tidemark
