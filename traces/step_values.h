// How a value of each type that a step may be asked with is named, read, shown and checked. An enum
// has a table of names; others have a notation of their own, or are numbers.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quoted.h"
#include "traces/step_fields.h"

namespace tidemark::step_values {

constexpr const auto& table_of(Head) { return head_rows; }
constexpr const auto& table_of(Precision) { return precisions; }
constexpr const auto& table_of(Attention) { return attentions; }
constexpr const auto& table_of(Optimizer) { return optimizers; }
constexpr const auto& table_of(OptimizerForm) { return optimizer_forms; }
constexpr const auto& table_of(BaseWeights) { return base_weights; }
constexpr const auto& table_of(ContextForm) { return context_forms; }
constexpr const auto& table_of(ExpertForm) { return expert_forms; }

/// Is it one of a table of names?
template <typename T>
concept IsNamed = requires(T value) {
  table_of(value);
};

inline Tuning parsed(const Tuning&, std::string_view text) { return parse_tuning(text); }
inline TokenLoss parsed(const TokenLoss&, std::string_view text) { return parse_token_loss(text); }
inline CodedLinears parsed(const CodedLinears&, std::string_view text) {
  return parse_coded_linears(text);
}
inline ExpertLoad parsed(const ExpertLoad&, std::string_view text) {
  return parse_expert_load(text);
}
inline Mesh parsed(const Mesh&, std::string_view text) { return parse_mesh(text); }
inline RankClass parsed(const RankClass&, std::string_view text) { return parse_rank(text); }
inline Sharding parsed(const Sharding&, std::string_view text) { return parse_sharding(text); }
inline PipelineSchedule parsed(const PipelineSchedule&, std::string_view text) {
  return parse_schedule(text);
}

/// Has it a notation of its own?
template <typename T>
concept IsWritten = requires(const T& value, std::string_view text) {
  { parsed(value, text) } -> std::same_as<T>;
  { to_text(value) } -> std::convertible_to<std::string>;
};

inline StepValue shown(std::int64_t count) { return count; }
inline StepValue shown(MicroBatches batches) { return batches.count; }
inline StepValue shown(double share) { return share + 0.0; }  // never "-0"
inline StepValue shown(bool is_on) { return is_on; }
inline StepValue shown(const std::string& framework) { return framework; }
template <IsWritten T>
StepValue shown(const T& value) {
  return to_text(value);
}
template <IsNamed Enum>
StepValue shown(Enum value) {
  return std::string(table_of(value)[static_cast<std::size_t>(value)].name);
}

// As typed on the command line. UsageError if it is no such value.
void read(std::int64_t& count, std::string_view text, const StepField& field);
void read(MicroBatches& batches, std::string_view text, const StepField& field);
void read(double& probability, std::string_view text, const StepField& field);
void read(bool& is_on, std::string_view text, const StepField& field);
void read(std::string& framework, std::string_view text, const StepField& field);
/// PyTorch's names, too.
void read(Precision& precision, std::string_view text, const StepField& field);
template <IsWritten T>
void read(T& value, std::string_view text, const StepField&) {
  value = parsed(value, text);
}
template <IsNamed Enum>
void read(Enum& value, std::string_view text, const StepField& field) {
  std::string name(field.key);
  std::ranges::replace(name, '_', ' ');
  value = parse_name(table_of(value), name, text);
}

// Fail at their place in the file.
void read(std::int64_t& count, const JsonView& json, const StepField& field);
void read(MicroBatches& batches, const JsonView& json, const StepField& field);
void read(double& probability, const JsonView& json, const StepField& field);
void read(bool& is_on, const JsonView& json, const StepField& field);
/// What is named: the place of a mistake is that in the file.
template <typename T>
void read(T& value, const JsonView& json, const StepField& field) {
  const std::string_view text = json.text();
  try {
    read(value, text, field);
  } catch (const InputError& error) {
    json.fail(printable(error.what(), 400));
  }
}

// What defects are called.
std::string more_than(std::string_view text);
std::string no_such_number(std::size_t number, std::size_t count);

// What makes a value that no reader would have let in, or "".
std::string defect_of(std::int64_t count);
std::string defect_of(MicroBatches batches);
std::string defect_of(double share);
std::string defect_of(const std::string& framework);
inline std::string defect_of(bool) { return {}; }
/// That a mesh has the rank is known with both.
inline std::string defect_of(const RankClass&) { return {}; }
template <IsWritten T>
std::string defect_of(const T& value) {
  const std::string text = to_text(value);
  try {
    if (parsed(value, text) == value) return {};
  } catch (const InputError& error) {
    return printable(error.what(), 400);
  }
  return more_than(text);
}
template <IsNamed Enum>
std::string defect_of(Enum value) {
  const std::size_t number = static_cast<std::size_t>(value), count = table_of(value).size();
  return number < count ? std::string() : no_such_number(number, count);
}
template <typename T>
std::string defect_of(const std::optional<T>& value) {
  return value ? defect_of(*value) : std::string();
}

template <typename T>
std::vector<std::string_view> choices_of() {
  if constexpr (IsNamed<T>) return names_of(table_of(T{}));
  if constexpr (std::is_same_v<T, std::string>) return names_of(frameworks());
  return {};
}

template <typename T>
std::vector<std::string_view> beginnings_of() {
  if constexpr (std::is_same_v<T, PipelineSchedule>) return names_of(pipeline_schedules);
  if constexpr (std::is_same_v<T, Sharding>) return names_of(sharding_kinds);
  if constexpr (std::is_same_v<T, ExpertLoad>) return {"even", "worst"};
  return {};
}

template <typename T>
std::optional<StepValue> shown_if_set(const T& value) {
  return shown(value);
}
template <typename T>
std::optional<StepValue> shown_if_set(const std::optional<T>& value) {
  if (!value) return {};
  return shown(*value);
}

/// The type of a value that may be unset.
template <typename T>
struct Stated {
  using Type = T;
};
template <typename T>
struct Stated<std::optional<T>> {
  using Type = T;
};

/// A row: what the type of the member decides, and what is said about it.
template <auto member>
StepField field(StepField row) {
  using Member = std::remove_cvref_t<decltype(std::declval<StepOptions>().*member)>;
  using Value = typename Stated<Member>::Type;
  row.value = [](const StepOptions& step) { return shown_if_set(step.*member); };
  row.read_text = [](const StepField& self, StepOptions& step, std::string_view text) {
    Value value{};
    read(value, text, self);
    step.*member = std::move(value);
  };
  row.read_json = [](const StepField& self, StepOptions& step, const JsonView& json) {
    Value value{};
    read(value, json, self);
    step.*member = std::move(value);
  };
  row.defect = [](const StepOptions& step) { return defect_of(step.*member); };
  row.choices = choices_of<Value>;
  row.beginnings = beginnings_of<Value>;
  return row;
}

}  // namespace tidemark::step_values
