// Numbers, switches, and what mistakes in values are called.
#include "traces/step_values.h"

#include <fmt/format.h>

#include "base/number_in.h"

namespace tidemark::step_values {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 40;

bool is_count(std::int64_t value) { return value >= 1 && value <= largest_count; }
bool is_possible(MicroBatches batches) {
  return batches.count >= 1 && batches.count <= MicroBatches::most;
}
bool is_probability(double value) { return value >= 0 && value < 1; }

// What PyTorch calls them. Weights in float16 alone would not train, so float16 is autocast's.
constexpr std::array precision_synonyms = {Named{Precision::Fp32, std::string_view("float32")},
                                           Named{Precision::Bf16, std::string_view("bfloat16")},
                                           Named{Precision::AmpFp16, std::string_view("float16")},
                                           Named{Precision::AmpFp16, std::string_view("half")},
                                           Named{Precision::AmpFp16, std::string_view("fp16")}};

}  // namespace

void read(std::int64_t& count, std::string_view text, const StepField& field) {
  const auto value = number_in<std::int64_t>(text);
  if (!value || !is_count(*value))
    throw UsageError(fmt::format("{}: {} is not a whole number from 1 to {}",
                                 long_name(field.switches.front().names), quoted(text),
                                 largest_count));
  count = *value;
}

void read(MicroBatches& batches, std::string_view text, const StepField& field) {
  const auto value = number_in<std::int64_t>(text);
  if (!value || !is_possible({*value}))
    throw UsageError(fmt::format("{}: {} is not a whole number from 1 to {}",
                                 long_name(field.switches.front().names), quoted(text),
                                 MicroBatches::most));
  batches.count = *value;
}

void read(double& probability, std::string_view text, const StepField& field) {
  const auto value = number_in<double>(text);
  if (!value || !is_probability(*value))
    throw UsageError(fmt::format("{}: {} is not a probability (from 0 to below 1)",
                                 long_name(field.switches.front().names), quoted(text)));
  probability = *value;
}

void read(bool& is_on, std::string_view text, const StepField&) { is_on = text == "true"; }

void read(std::string& framework, std::string_view text, const StepField&) {
  framework = find_framework(text).name;
}

void read(Precision& precision, std::string_view text, const StepField& field) {
  const auto* synonym = std::ranges::find(precision_synonyms, text, &Named<Precision>::name);
  precision = synonym != precision_synonyms.end() ? synonym->value
                                                  : parse_name(precisions, field.key, text);
}

void read(std::int64_t& count, const JsonView& json, const StepField&) {
  count = json.integer(1, largest_count);
}

void read(MicroBatches& batches, const JsonView& json, const StepField&) {
  batches.count = json.integer(1, MicroBatches::most);
}

void read(double& probability, const JsonView& json, const StepField&) {
  const double value = json.number(0, 1);
  if (!is_probability(value)) json.fail("found 1; need a probability below 1");
  probability = value;
}

void read(bool& is_on, const JsonView& json, const StepField&) { is_on = json.boolean(); }

std::string more_than(std::string_view text) {
  return fmt::format("found more than its text {} says", quoted(text));
}

std::string no_such_number(std::size_t number, std::size_t count) {
  return fmt::format("found number {}; need one below {}", number, count);
}

std::string defect_of(std::int64_t count) {
  if (is_count(count)) return {};
  return fmt::format("found {}; need a whole number from 1 to {}", count, largest_count);
}

std::string defect_of(MicroBatches batches) {
  if (is_possible(batches)) return {};
  return fmt::format("found {}; need a whole number from 1 to {}", batches.count,
                     MicroBatches::most);
}

std::string defect_of(double share) {
  if (is_probability(share)) return {};
  return fmt::format("found {}; need a number from 0 to below 1", share);
}

std::string defect_of(const std::string& framework) {
  try {
    find_framework(framework);
  } catch (const InputError& error) {
    return printable(error.what(), 400);
  }
  return {};
}

}  // namespace tidemark::step_values
