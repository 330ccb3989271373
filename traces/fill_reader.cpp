// One overload per kind of fill reads its fields, with limits on each, and allows no others.
#include "traces/fill_reader.h"

#include <algorithm>

#include "base/quoted.h"

namespace tidemark {
namespace {

constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
constexpr double largest = 1e18;

template <typename Table>
auto named(const JsonView& object, std::string_view key, const Table& table) {
  const JsonView name = object.at(key);
  const auto row = std::ranges::find(table, name.text(), [](const auto& of) { return of.name; });
  if (row == table.end()) name.fail(unknown_name(key, printable(name.text()), names_of(table)));
  return row->value;
}

/// Fills in the fields of each kind; a kind without fields has none but its own name.
struct FillReader {
  const JsonView& object;

  template <typename Plain>
  void operator()(Plain&) const {
    object.allow_only({"kind"});
  }
  void operator()(fill::Positions& fill) const {
    object.allow_only({"kind", "first"});
    fill.first = object.integer_or("first", 0, 0, most_tokens);
  }
  void operator()(fill::CausalMask& fill) const {
    object.allow_only({"kind", "window"});
    fill.window = object.integer_or("window", 0, 0, most_tokens);
  }
  void operator()(fill::Constant& fill) const {
    object.allow_only({"kind", "value"});
    fill.value = object.at("value").number(-largest, largest);
  }
  void operator()(fill::SeamMask& fill) const {
    object.allow_only({"kind", "shift"});
    fill.shift = object.at("shift").integer(1, most_tokens);
  }
  void operator()(fill::RelativeBuckets& fill) const {
    object.allow_only({"kind", "buckets", "farthest", "looks_ahead"});
    fill.buckets = object.at("buckets").integer(4, most_tokens);
    fill.farthest = object.at("farthest").integer(2, most_tokens);
    fill.looks_ahead = object.boolean_or("looks_ahead", false);
  }
  void operator()(fill::RotaryTable& fill) const {
    object.allow_only({"kind", "wave", "theta", "columns", "scaling", "factor", "low", "high",
                       "attention_factor", "original_positions"});
    fill.wave = named(object, "wave", fill::waves);
    if (object.find("columns")) fill.columns = named(object, "columns", fill::wave_columns);
    Rotary& rotary = fill.rotary;
    rotary.theta = object.at("theta").number(1, largest);
    if (object.find("scaling")) rotary.scaling = named(object, "scaling", rotary_scalings);
    rotary.factor = object.number_or("factor", rotary.factor, 1, largest);
    rotary.low = object.number_or("low", rotary.low, 0, largest);
    rotary.high = object.number_or("high", rotary.high, 0, largest);
    rotary.attention_factor =
        object.number_or("attention_factor", rotary.attention_factor, 0, largest);
    rotary.original_positions = object.integer_or("original_positions", 0, 0, most_tokens);
  }
};

template <std::size_t... I>
InputFill fill_numbered(std::size_t wanted, std::index_sequence<I...>) {
  InputFill fill;
  ((wanted == I ? static_cast<void>(fill.emplace<I>()) : static_cast<void>(0)), ...);
  return fill;
}

}  // namespace

InputFill read_fill(const JsonView& object) {
  const JsonView kind = object.at("kind");
  const auto* row = std::ranges::find(fill_names, kind.text());
  if (row == fill_names.end())
    kind.fail(unknown_name("kind of fill", printable(kind.text()),
                           {fill_names.begin(), fill_names.end()}));
  InputFill fill = fill_numbered(static_cast<std::size_t>(row - fill_names.begin()),
                                 std::make_index_sequence<std::variant_size_v<InputFill>>());
  std::visit(FillReader{object}, fill);
  return fill;
}

}  // namespace tidemark
