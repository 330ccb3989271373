// Which optimizers Megatron-LM has.
#pragma once

#include "traces/optimizer.h"

namespace tidemark {

/// As a choice of its --optimizer.
bool is_of_megatron(Optimizer optimizer);

/// "adamw, sgd, …", of those that are known here.
std::string optimizers_of_megatron();

}  // namespace tidemark
