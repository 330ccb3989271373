// What an opaque op computes, where kernels are known for it. Its row says what planning asks; the
// formula is for a replay alone, and changes no number of a plan.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/names.h"

namespace tidemark {

/// What the operands are stands beside each rule in formula_rules.cpp, what is computed of them in
/// the kernels' headers.
enum class Formula : std::uint8_t {
  None,
  // mixtures of experts (kernels/routing)
  EvenTopK,
  OneHot,
  FindVisits,
  IndexPairs,
  IndexAdd,
  // rows and elements by their numbers (kernels/lookup)
  IndexRows,
  Gather,
  // arithmetic beside that of the known kinds (kernels/arithmetic)
  Zeros,
  Sum,
  Divide,
  Subtract,
  // planes of another size (kernels/resample)
  StretchBilinear,
  StretchBicubic,
  AdaptiveMean,
  PadOrCrop,
  // frozen weights in few bits (kernels/stored_linear)
  Nf4Linear,
  Int8Linear,
  // pairs that lie beside each other (kernels/pairs)
  TurnPairs,
  SortPairs,
  // rows by the experts that they go to (kernels/sorting)
  HiddenGroups,
  MaskedFill,
  Argsort,
  FloorDivide,
  JoinRows,
  PutRows,
  MulKept,
  // adapters (kernels/dora)
  DoraNorm,
  // sound (kernels/conv1d)
  Conv1d,
  // activations whose backward reads what they wrote (kernels/inverted)
  InvertedGelu,
  InvertedTanhGelu,
  InvertedSilu,
};

inline constexpr std::array formulas = {
    Named{Formula::None, std::string_view("none")},
    Named{Formula::EvenTopK, std::string_view("even_top_k")},
    Named{Formula::OneHot, std::string_view("one_hot")},
    Named{Formula::FindVisits, std::string_view("find_visits")},
    Named{Formula::IndexPairs, std::string_view("index_pairs")},
    Named{Formula::IndexAdd, std::string_view("index_add")},
    Named{Formula::IndexRows, std::string_view("index_rows")},
    Named{Formula::Gather, std::string_view("gather")},
    Named{Formula::Zeros, std::string_view("zeros")},
    Named{Formula::Sum, std::string_view("sum")},
    Named{Formula::Divide, std::string_view("divide")},
    Named{Formula::Subtract, std::string_view("subtract")},
    Named{Formula::StretchBilinear, std::string_view("stretch_bilinear")},
    Named{Formula::StretchBicubic, std::string_view("stretch_bicubic")},
    Named{Formula::AdaptiveMean, std::string_view("adaptive_mean")},
    Named{Formula::PadOrCrop, std::string_view("pad_or_crop")},
    Named{Formula::Nf4Linear, std::string_view("nf4_linear")},
    Named{Formula::Int8Linear, std::string_view("int8_linear")},
    Named{Formula::TurnPairs, std::string_view("turn_pairs")},
    Named{Formula::SortPairs, std::string_view("sort_pairs")},
    Named{Formula::HiddenGroups, std::string_view("hidden_groups")},
    Named{Formula::MaskedFill, std::string_view("masked_fill")},
    Named{Formula::Argsort, std::string_view("argsort")},
    Named{Formula::FloorDivide, std::string_view("floor_divide")},
    Named{Formula::JoinRows, std::string_view("join_rows")},
    Named{Formula::PutRows, std::string_view("put_rows")},
    Named{Formula::MulKept, std::string_view("mul_kept")},
    Named{Formula::DoraNorm, std::string_view("dora_norm")},
    Named{Formula::Conv1d, std::string_view("conv1d")},
    Named{Formula::InvertedGelu, std::string_view("inverted_gelu")},
    Named{Formula::InvertedTanhGelu, std::string_view("inverted_tanh_gelu")},
    Named{Formula::InvertedSilu, std::string_view("inverted_silu")}};
static_assert(is_in_order(formulas));
constexpr std::string_view to_string(Formula formula) {
  return formulas[static_cast<std::size_t>(formula)].name;
}

}  // namespace tidemark
