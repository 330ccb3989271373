// Groups of op kinds that share a color in the lanes: forty kinds are more than eyes can tell
// apart.
#pragma once

#include <array>
#include <string_view>

#include "analysis/export/palette.h"
#include "traces/op_kind.h"

namespace tidemark::gui {

enum class KindClass : std::uint8_t {
  Matrix,
  Attention,
  Norm,
  Activation,
  Elementwise,
  Data,
  Loss,
  Opaque
};

struct KindClassRow {
  KindClass value;
  std::string_view name;
  Color color;
};
inline constexpr std::array kind_classes = {
    KindClassRow{KindClass::Matrix, "matrix product", kind_colors[0]},
    KindClassRow{KindClass::Attention, "attention", kind_colors[1]},
    KindClassRow{KindClass::Norm, "norm", kind_colors[2]},
    KindClassRow{KindClass::Activation, "activation", kind_colors[3]},
    KindClassRow{KindClass::Elementwise, "elementwise", kind_colors[4]},
    KindClassRow{KindClass::Data, "data movement", kind_colors[5]},
    KindClassRow{KindClass::Loss, "loss", kind_colors[6]},
    KindClassRow{KindClass::Opaque, "opaque", kind_colors[7]}};
static_assert(is_in_order(kind_classes) && kind_classes.size() + 1 == kind_colors.size());

KindClass class_of(OpKind kind);

}  // namespace tidemark::gui
