// The names that people know linears by: those of Hugging Face's modules, as PEFT's target_modules
// lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// The linears of our traces that a target of adapters names: "q" for "q_proj", "proj" and "fc2"
/// for GPT-2's "c_proj", nothing else for a name of our own. "all" is every linear. What "dense" is
/// depends on the family.
std::vector<std::string_view> linears_named(std::string_view target, std::string_view family);

/// The linears that adapters go beside where nobody says which; none: it has to be said.
std::vector<std::string> usual_targets(std::string_view family);

/// The last part of a dotted name: "blocks.0.attn.q" → "q".
std::string_view leaf_of(std::string_view name);

}  // namespace tidemark
