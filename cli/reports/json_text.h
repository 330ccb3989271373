// JSON for programs: keys in the order written, exact bytes and nanoseconds, the inputs first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "analysis/comparison.h"
#include "traces/step_fields.h"

namespace tidemark::cli {

using Json = nlohmann::ordered_json;

inline Json to_json(std::monostate) { return nullptr; }
inline Json to_json(Bytes bytes) { return bytes.count; }
inline Json to_json(const StepValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}
template <typename T>
Json to_json(const T& value) {
  return value;
}
template <typename T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json();
}
Json to_json(const BytesByCategory& bytes);

/// Format, version, model, options, device and allocator: what the answer is about.
Json inputs_json(std::string_view format, const Comparison& comparison);

/// One row of a comparison.
Json row_json(const Report& row);

/// Indented, with a newline at the end.
std::string document_text(const Json& json);

}  // namespace tidemark::cli
