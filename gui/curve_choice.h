// What the curve of memory stacks, and what it leaves out.
#pragma once

#include <array>
#include <bitset>
#include <string>

#include "base/names.h"
#include "simulator/schedule.h"

namespace tidemark::gui {

enum class CurveBy : std::uint8_t { Category, Module, Tensor };
inline constexpr std::array curve_names = {Named{CurveBy::Category, std::string_view("category")},
                                           Named{CurveBy::Module, std::string_view("module")},
                                           Named{CurveBy::Tensor, std::string_view("tensor")}};
static_assert(is_in_order(curve_names));

struct CurveChoice {
  CurveBy by = CurveBy::Category;
  std::bitset<category_count> hidden = {};
  bool hides_persistent = false;  ///< parameters, optimizer states, …

  bool is_whole() const { return hidden.none() && !hides_persistent; }
  /// "without gradient, without what is persistent"; "" if nothing is left out.
  std::string left_out() const;
  bool operator==(const CurveChoice&) const = default;
};

}  // namespace tidemark::gui
