// Groups of op kinds that share a color in the lanes: forty kinds are more than eyes can tell
// apart.
#pragma once

#include <array>
#include <string_view>

#include "simulator/export/palette.h"
#include "traces/op_kind.h"

namespace tidemark {

enum class KindClass : std::uint8_t {
  Matrix,
  Attention,
  Norm,
  Activation,
  Elementwise,
  Data,
  Loss
};

struct KindClassRow {
  KindClass value;
  std::string_view name;
  Color color;
};
inline constexpr std::array kind_classes = {
    KindClassRow{KindClass::Matrix, "matrix product", palette::blue},
    KindClassRow{KindClass::Attention, "attention", palette::vermilion},
    KindClassRow{KindClass::Norm, "norm", palette::yellow},
    KindClassRow{KindClass::Activation, "activation", palette::green},
    KindClassRow{KindClass::Elementwise, "elementwise", palette::sky},
    KindClassRow{KindClass::Data, "data movement", palette::purple},
    KindClassRow{KindClass::Loss, "loss", palette::grey}};
static_assert(is_in_order(kind_classes));

KindClass class_of(OpKind kind);

}  // namespace tidemark
