// Models by name: the published sizes of each family, and any config.json.
#pragma once

#include <string_view>
#include <vector>

#include "traces/models/model_config.h"

namespace tidemark {

/// All presets, family by family.
const std::vector<Model>& known_models();

/// The preset called so, else the model of a config.json given by its path or its folder.
/// UsageError with the nearest name otherwise.
Model find_model(std::string_view name_or_path);

}  // namespace tidemark
