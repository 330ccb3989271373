// One row per modelled framework version or published counting, with the source of its rules.
#include "traces/framework.h"

namespace tidemark {

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> rows = {
      {.name = "transformers-5",
       .title = "PyTorch 2.15, eager; transformers 5.23, peft 0.21",
       .source = "as transformers-4.57; real steps under PyTorch 2.15.0 and transformers 5.23.0 "
                 "(tests/reference/steps_transformers-5.json)",
       .shifts_logits = false,
       .shifts_labels = true,
       .repeats_key_heads = false,
       .efficient_groups = true,
       .vision_softmax_fp32 = true,
       .adapters_fp32 = true,
       .blas_workspace_per_call = true,
       .blackwell_workspace = true,
       .op_scratch = true,
       .drops_idle_masks = true},
      {.name = "transformers-4.57",
       .title = "PyTorch 2.6, eager; transformers 4.53 to 4.57, peft from 0.12",
       .source =
           "derivative formulas and autocast lists of PyTorch 2.6; zero_grad(set_to_none) and "
           "foreach optimizers are the defaults since 2.0; loss_utils.py, sdpa_attention.py and "
           "modeling_*.py of transformers 4.57.1; tuners/lora of peft 0.21",
       .shifts_logits = false,
       .shifts_labels = true,
       .repeats_key_heads = false,
       .packs_unmasked = true,
       .vision_softmax_fp32 = true,
       .adapters_fp32 = true,
       .blas_handle_per_thread = true,
       .op_scratch = true},
      {.name = "transformers-4.51",
       .title = "PyTorch 2.6, eager; transformers 4.48 to 4.52, peft from 0.12",
       .source = "as transformers-4.57, but sdpa_attention.py of 4.51.3 makes its heads contiguous "
                 "and repeats grouped ones",
       .shifts_logits = false,
       .shifts_labels = true,
       .contiguous_heads = true,
       .vision_softmax_fp32 = true,
       .adapters_fp32 = true,
       .blas_handle_per_thread = true,
       .op_scratch = true},
      {.name = "transformers-4.47",
       .title = "PyTorch 2.0 to 2.6, eager; transformers up to 4.47, peft up to 0.11",
       .source = "PyTorch as transformers-4.57; modeling_*.py of transformers 4.47.1, which shift "
                 "the logits",
       .blas_handle_per_thread = true,
       .op_scratch = true},
      {.name = "torch-1.13",
       .title = "PyTorch 1.11 to 1.13, eager",
       .source = "saved tensors of torchvision's ViT-B/16 under PyTorch 1.13.1; gradients are "
                 "summed out of place before 2.0; zero_grad() fills zeros before 2.0",
       .autocast_emulates_bf16 = false,
       .picks_fused_attention = false,
       .accumulates_in_place = false,
       .gradients_persist = true,
       .optimizer_form = OptimizerForm::ForLoop,
       .norm_gradient_by_columns = true},
      {.name = "torch-1.10",
       .title = "PyTorch 1.8 to 1.10, eager",
       .source =
           "as torch-1.13, but the softmax node still keeps its input (the derivative formula "
           "passed `self` before 1.11)",
       .autocast_emulates_bf16 = false,
       .picks_fused_attention = false,
       .log_softmax_is_fp32 = true,
       .softmax_keeps_input = true,
       .accumulates_in_place = false,
       .gradients_persist = true,
       .optimizer_form = OptimizerForm::ForLoop,
       .norm_gradient_by_columns = true,
       .blas_workspace_in_pool = false},
      {.name = "torch-1.7-amp",
       .title = "PyTorch 1.7, automatic mixed precision",
       .source =
           "autocast_mode.cpp of 1.7.1: layer_norm, softmax and gelu on the fp32 list; softmax "
           "node keeps input and output",
       .default_precision = Precision::AmpFp16,
       .gelu_is_fp32 = true,
       .autocast_emulates_bf16 = false,
       .picks_fused_attention = false,
       .log_softmax_is_fp32 = true,
       .softmax_keeps_input = true,
       .accumulates_in_place = false,
       .gradients_persist = true,
       .optimizer_form = OptimizerForm::ForLoop,
       .norm_gradient_by_columns = true,
       .blas_workspace_in_pool = false},
      {.name = "paper",
       .title = "the counting of arXiv 2406.16282: no casts, no statistics, fp32 norm inputs",
       .source = "the unit tables behind its 39.47 % and 29.19 %",
       .default_precision = Precision::AmpFp16,
       .counts_units = true,
       .autocast_casts = false,
       .norm_writes_fp32 = false,
       .norm_reads_fp32 = true,
       .log_softmax_is_fp32 = true,
       .keeps_statistics = false,
       .composed_rms_norm = false,
       .composed_gelu_tanh = false,
       .holds_locals = false,
       .copies_heads = false,
       .shifts_logits = false,
       .repeats_key_heads = false,
       .optimizer_form = OptimizerForm::Fused,
       .blas_workspace_in_pool = false},
  };
  return rows;
}

const Framework& find_framework(std::string_view name) {
  if (name == "torch-2") name = default_framework;  // what files of earlier versions say
  for (const Framework& row : frameworks())
    if (row.name == name) return row;
  throw UsageError(unknown_name("framework", name, names_of(frameworks())));
}

}  // namespace tidemark
