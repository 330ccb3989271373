// Rotary positions of a config.json: rope_theta and rope_scaling, or both in rope_parameters, as
// transformers 5 writes them. What each type needs: modeling_rope_utils.py.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quoted.h"
#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

constexpr double largest_theta = 1e12, largest_factor = 1e6, most_turns = 1e6;

// Two lists of factors, one of which is in force for a length: other values in tables of the same
// size. "su" in older files.
bool is_long_rope(const JsonView& name) { return name.text() == "longrope" || name.text() == "su"; }

RotaryScaling scaling_named(const JsonView& object) {
  auto name = object.find("rope_type");
  if (!name) name = object.find("type");  // of files before 4.43
  if (!name || is_long_rope(*name)) return RotaryScaling::None;
  const auto* row = std::ranges::find(rotary_scalings, name->text(), &Named<RotaryScaling>::name);
  if (row == rotary_scalings.end())
    name->fail(unknown_name("rope_type", printable(name->text()), names_of(rotary_scalings)));
  return row->value;
}

double required(const JsonView& object, std::string_view key, double min, double max) {
  return object.at(key).number(min, max);
}

void read_yarn(const JsonView& object, Rotary& rotary) {
  rotary.low = object.number_or("beta_slow", 1, 0, most_turns);
  rotary.high = object.number_or("beta_fast", 32, 0, most_turns);
  // The paper's temperature (arXiv 2309.00071, equation 22).
  const double usual = 0.1 * std::log(rotary.factor) + 1;
  rotary.attention_factor = object.number_or("attention_factor", usual, 0, largest_factor);
}

void read_llama3(const JsonView& object, Rotary& rotary) {
  rotary.low = required(object, "low_freq_factor", 0, most_turns);
  rotary.high = required(object, "high_freq_factor", 0, most_turns);
  if (rotary.low >= rotary.high)
    object.fail(fmt::format("low_freq_factor = {} is not below high_freq_factor = {}; use 1 and 4",
                            rotary.low, rotary.high));
  object.at("original_max_position_embeddings");
}

Rotary read_scaling(const JsonView& object, double theta, std::int64_t positions) {
  Rotary rotary{.scaling = scaling_named(object),
                .theta = object.number_or("rope_theta", theta, 1, largest_theta)};
  if (rotary.scaling == RotaryScaling::None) return rotary;
  rotary.factor = required(object, "factor", 1, largest_factor);
  rotary.original_positions =
      object.integer_or("original_max_position_embeddings", positions, 1, most_positions);
  if (rotary.scaling == RotaryScaling::Yarn) read_yarn(object, rotary);
  if (rotary.scaling == RotaryScaling::Llama3) read_llama3(object, rotary);
  return rotary;
}

}  // namespace

Rotary rotary(Fields& root, std::int64_t positions, double usual_theta) {
  const double theta = root.number_or("rope_theta", usual_theta, 1, largest_theta);
  const auto parameters = root.find("rope_parameters"), scaling = root.find("rope_scaling");
  if (parameters) return read_scaling(*parameters, theta, positions);
  if (scaling) return read_scaling(*scaling, theta, positions);
  return {.theta = theta};
}

}  // namespace tidemark::config
