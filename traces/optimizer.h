// The one table of optimizers: what each keeps per parameter, and what an update takes beside that,
// by the form in which it runs. A new optimizer is its enumerator and its row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "traces/tensor.h"

namespace tidemark {

/// How an update runs: one parameter after the other, in kernels over all parameters at once with
/// temporaries for all of them, or in one kernel that needs none.
enum class OptimizerForm : std::uint8_t { ForLoop, Foreach, Fused };

inline constexpr std::array optimizer_forms = {
    Named{OptimizerForm::ForLoop, std::string_view("for-loop")},
    Named{OptimizerForm::Foreach, std::string_view("foreach")},
    Named{OptimizerForm::Fused, std::string_view("fused")}};
static_assert(is_in_order(optimizer_forms));
constexpr std::string_view to_string(OptimizerForm form) {
  return optimizer_forms[static_cast<std::size_t>(form)].name;
}

enum class Optimizer : std::uint8_t {
  Sgd,
  SgdMomentum,
  Adagrad,
  RmsProp,
  AdamW,
  AdamW32bit,
  AdamW8bit,
  PagedAdamW32bit,
  PagedAdamW8bit,
  Lion,
  Lion32bit,
  Lion8bit,
  Adafactor,
  AdafactorTransformers,
  Muon,
};

/// What one state tensor holds.
enum class StateKind : std::uint8_t {
  LikeParameter,
  Fp32,
  /// A byte per element and fp32 factors per block of 256; fp32 below 4096 elements.
  Blocks8bit,
  /// Of a matrix one number per row and one per column of its last two axes; else like the
  /// parameter.
  Factored,
  FactoredFp32,
};

/// What an update takes, in tensors like the parameter.
struct UpdateForm {
  int temporaries = 0;  ///< alive at once
  int held = 0;         ///< of these, what a variable names until the next parameter's is made
  int decay = 0;        ///< further ones where weight decay is a term of the gradient
  double passes = 0;    ///< reads and writes of a tensor like the parameter; 0: each operand's own
  int kernels = 1;
};

struct OptimizerRow {
  Optimizer value;
  std::string_view name;
  int states;
  StateKind state;
  std::optional<UpdateForm> for_loop, foreach, fused;
  std::string_view source;
  std::optional<OptimizerForm> usual = {};  ///< unset: the framework's
  bool is_paged = false;                    ///< states in unified memory, outside of the allocator

  constexpr const std::optional<UpdateForm>& in(OptimizerForm form) const {
    return form == OptimizerForm::ForLoop   ? for_loop
           : form == OptimizerForm::Foreach ? foreach
                                            : fused;
  }
};

inline constexpr std::array optimizers = {
    OptimizerRow{Optimizer::Sgd, "sgd", 0, StateKind::LikeParameter,
                 UpdateForm{.decay = 1, .passes = 3}, UpdateForm{.decay = 1, .passes = 3},
                 UpdateForm{}, "torch/optim/sgd.py of PyTorch 2.6"},
    OptimizerRow{Optimizer::SgdMomentum, "sgd-momentum", 1, StateKind::LikeParameter,
                 UpdateForm{.decay = 1, .passes = 8, .kernels = 3},
                 UpdateForm{.decay = 1, .passes = 8, .kernels = 3}, UpdateForm{},
                 "torch/optim/sgd.py of PyTorch 2.6"},
    // sqrt of the sum, then of all parameters at once also the gradient times the rate.
    OptimizerRow{Optimizer::Adagrad,
                 "adagrad",
                 1,
                 StateKind::LikeParameter,
                 UpdateForm{1, 1, 1, 11, 4},
                 UpdateForm{2, 0, 0, 13, 5},
                 {},
                 "torch/optim/adagrad.py of PyTorch 2.6 (fused only on the CPU)"},
    OptimizerRow{Optimizer::RmsProp,
                 "rmsprop",
                 1,
                 StateKind::LikeParameter,
                 UpdateForm{1, 1, 1, 13, 5},
                 UpdateForm{1, 0, 1, 13, 5},
                 {},
                 "torch/optim/rmsprop.py of PyTorch 2.6"},
    // sqrt(v), and one parameter at a time the quotient beside it; 90 B per element of fp32 in
    // p.mul_, m.mul_, m.add_, v.mul_, v.addcmul_, sqrt, div, add_, addcdiv_.
    OptimizerRow{Optimizer::AdamW, "adamw", 2, StateKind::LikeParameter,
                 UpdateForm{2, 1, 0, 22.5, 9}, UpdateForm{1, 0, 0, 22.5, 9}, UpdateForm{},
                 "torch/optim/adamw.py of PyTorch 2.6"},
    OptimizerRow{Optimizer::AdamW32bit,
                 "adamw-32bit",
                 2,
                 StateKind::Fp32,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/adamw.py",
                 OptimizerForm::Fused},
    OptimizerRow{Optimizer::AdamW8bit,
                 "adamw-8bit",
                 2,
                 StateKind::Blocks8bit,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/adamw.py, optim/optimizer.py (arXiv 2110.02861)",
                 OptimizerForm::Fused},
    OptimizerRow{Optimizer::PagedAdamW32bit,
                 "paged-adamw-32bit",
                 2,
                 StateKind::Fp32,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/adamw.py",
                 OptimizerForm::Fused,
                 true},
    OptimizerRow{Optimizer::PagedAdamW8bit,
                 "paged-adamw-8bit",
                 2,
                 StateKind::Blocks8bit,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/adamw.py",
                 OptimizerForm::Fused,
                 true},
    // A copy of the momentum, and the gradient added to it out of place.
    OptimizerRow{Optimizer::Lion,
                 "lion",
                 1,
                 StateKind::LikeParameter,
                 UpdateForm{2, 0, 0, 19, 8},
                 {},
                 {},
                 "lion-pytorch 0.2.5 lion_pytorch.py",
                 OptimizerForm::ForLoop},
    OptimizerRow{Optimizer::Lion32bit,
                 "lion-32bit",
                 1,
                 StateKind::Fp32,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/lion.py",
                 OptimizerForm::Fused},
    OptimizerRow{Optimizer::Lion8bit,
                 "lion-8bit",
                 1,
                 StateKind::Blocks8bit,
                 {},
                 {},
                 UpdateForm{},
                 "bitsandbytes 0.50 optim/lion.py",
                 OptimizerForm::Fused},
    // The estimate of the variance; the loop's variable keeps it.
    OptimizerRow{Optimizer::Adafactor,
                 "adafactor",
                 1,
                 StateKind::Factored,
                 UpdateForm{1, 1, 0, 16, 10},
                 UpdateForm{1, 0, 0, 16, 10},
                 {},
                 "torch/optim/_adafactor.py of PyTorch 2.6, which runs a loop unless asked",
                 OptimizerForm::ForLoop},
    // In fp32, whatever the parameter is: its copy and the gradient's, if it is not, and two more.
    OptimizerRow{Optimizer::AdafactorTransformers,
                 "adafactor-transformers",
                 1,
                 StateKind::FactoredFp32,
                 UpdateForm{2, 0, 0, 20, 14},
                 {},
                 {},
                 "optimization.py of transformers 4.57.1",
                 OptimizerForm::ForLoop},
    // Of the matrices of blocks; AdamW has the rest.
    OptimizerRow{Optimizer::Muon,
                 "muon",
                 1,
                 StateKind::LikeParameter,
                 UpdateForm{1, 0, 0, 14, 21},
                 {},
                 {},
                 "torch/optim/_muon.py of PyTorch 2.9",
                 OptimizerForm::ForLoop},
};
static_assert(is_in_order(optimizers));

constexpr const OptimizerRow& row_of(Optimizer optimizer) {
  return optimizers[static_cast<std::size_t>(optimizer)];
}

/// The forms that a row has: "for-loop, foreach".
std::string forms_of(const OptimizerRow& row);

/// The form asked for if the row has it, else its own, else the framework's.
OptimizerForm form_of(const OptimizerRow& row, std::optional<OptimizerForm> asked,
                      OptimizerForm frameworks);

/// The states of one parameter together. With master weights: an fp32 copy of a 16-bit one and
/// moments in fp32.
Bytes state_bytes(const OptimizerRow& row, const Tensor& parameter, bool master_weights);

/// What the update of one parameter takes beside its operands.
struct UpdateMemory {
  std::vector<Bytes> released;  ///< gone when it is done
  std::vector<Bytes> held;      ///< gone when the next parameter's is done
};
UpdateMemory update_memory(const OptimizerRow& row, const UpdateForm& form, const Tensor& parameter,
                           bool l2_decay);

/// Of Muon's update of a matrix: its products, each m × k times k × n.
struct MatrixProduct {
  std::int64_t m, n, k;
};
std::vector<MatrixProduct> newton_schulz(const Shape& shape);

}  // namespace tidemark
