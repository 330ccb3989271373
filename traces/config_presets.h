// The presets that are read from short config files; presets.h is what others ask.
#pragma once

#include <vector>

#include "traces/models/model_config.h"

namespace tidemark {

std::vector<Model> config_presets();

}  // namespace tidemark
