// Reads a Hugging Face config.json (and, for MViT, a file of our own of the same kind): a model is
// what its config says.
#pragma once

#include <string_view>

#include "traces/models/model_config.h"

namespace tidemark {

/// The model that `json` describes, with what it says of its head and its weights' precision, and
/// notes on what was not read. Such files omit every field that equals the default of its class, so
/// the defaults of each `model_type` are ours to know. Throws InputError "file: /pointer: what is
/// wrong and what would be right"; `file` is only a name.
Model read_model_config(std::string_view json, std::string_view file);

}  // namespace tidemark
