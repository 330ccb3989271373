// Which kernel runs a call: one table for the ops, one switch for what is no op.
#include "kernels/accumulate/accumulate.h"
#include "kernels/activation/activation.h"
#include "kernels/attention/attention.h"
#include "kernels/conv/conv.h"
#include "kernels/cpu/workspace.h"
#include "kernels/dropout/dropout.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/linear/linear.h"
#include "kernels/loss/loss.h"
#include "kernels/mesa/mesa.h"
#include "kernels/movement/movement.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pooling/pooling.h"
#include "kernels/rope/rope.h"
#include "kernels/softmax/softmax.h"
#include "traces/error.h"

namespace tidemark::cpu {
namespace {

struct KernelRow {
  OpKind value;
  Kernel forward, backward;  ///< nullptr: nothing runs
};

constexpr std::array kernel_rows = [] {
  using enum OpKind;
  return std::array{
      KernelRow{Linear, linear_forward, linear_backward},
      KernelRow{MatMul, matmul_forward, matmul_backward},
      KernelRow{Conv2d, conv2d_forward, conv2d_backward},
      KernelRow{FlashAttention, flash_attention_forward, flash_attention_backward},
      KernelRow{LayerNorm, layer_norm_forward, layer_norm_backward},
      KernelRow{RmsNorm, rms_norm_forward, rms_norm_backward},
      KernelRow{MsLayerNorm, ms_layer_norm_forward, ms_layer_norm_backward},
      KernelRow{MsRmsNorm, ms_rms_norm_forward, ms_rms_norm_backward},
      KernelRow{Gelu, gelu_forward, gelu_backward},
      KernelRow{GeluComposed, gelu_composed_forward, gelu_composed_backward},
      KernelRow{Silu, silu_forward, silu_backward},
      KernelRow{Tanh, tanh_forward, tanh_backward},
      KernelRow{ReGelu2, regelu2_forward, regelu2_backward},
      KernelRow{ReSilu2, resilu2_forward, resilu2_backward},
      KernelRow{Softmax, softmax_forward, softmax_backward},
      KernelRow{LogSoftmax, log_softmax_forward, log_softmax_backward},
      KernelRow{Add, add_forward, add_backward},
      KernelRow{Mul, mul_forward, mul_backward},
      KernelRow{Scale, scale_forward, scale_backward},
      KernelRow{Average, average_forward, average_backward},
      KernelRow{Dropout, dropout_forward, dropout_backward},
      KernelRow{DropPath, drop_path_forward, drop_path_backward},
      KernelRow{Cast, cast_forward, cast_backward},
      KernelRow{Rope, rope_forward, rope_backward},
      KernelRow{View, nullptr, nullptr},
      KernelRow{Select, nullptr, select_backward},
      KernelRow{Split, nullptr, split_backward},
      KernelRow{Copy, copy_forward, copy_backward},
      KernelRow{Concat, concat_forward, concat_backward},
      KernelRow{RepeatHeads, repeat_heads_forward, repeat_heads_backward},
      KernelRow{Embedding, embedding_forward, embedding_backward},
      KernelRow{MeanPool, mean_pool_forward, mean_pool_backward},
      KernelRow{MaxPool, max_pool_forward, max_pool_backward},
      KernelRow{NllLoss, nll_loss_forward, nll_loss_backward},
  };
}();
static_assert(is_in_order(kernel_rows) && kernel_rows.size() == op_rows.size());

}  // namespace

Kernel kernel_of(const Call& call) {
  const KernelRow& row = kernel_rows[static_cast<std::size_t>(call.kind)];
  switch (call.pass) {
    case Pass::Forward:
      return row.forward;
    case Pass::Backward:
      return row.backward;
    case Pass::Fill:
      return fill;
    case Pass::Accumulate:
      return accumulate;
    case Pass::Subtract:
      return subtract;
    case Pass::Quantize:
      return quantize;
    case Pass::Dequantize:
      return dequantize;
    case Pass::Update:
      return update;
  }
  return nullptr;
}

void run(const Call& call, Workspace& workspace) {
  const Kernel kernel = kernel_of(call);
  CHECK(kernel != nullptr);
  kernel(call, workspace);
}

}  // namespace tidemark::cpu
