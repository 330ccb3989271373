// `tidemark frameworks`: lists the known frameworks, or the rules of one and what each rule says.
#include "cli/commands/commands.h"
#include "cli/reports/listing.h"

namespace tidemark::cli {
namespace {

struct Rule {
  std::string_view key;
  bool Framework::*member;
  std::string_view meaning;
};

constexpr std::array rules = {
    Rule{"counts_units", &Framework::counts_units,
         "compare shows saved activations in units of a block's input"},
    Rule{"autocast_casts", &Framework::autocast_casts, "autocast's casts are tensors of their own"},
    Rule{"gelu_is_fp32", &Framework::gelu_is_fp32, "autocast runs GELU in fp32"},
    Rule{"norm_writes_fp32", &Framework::norm_writes_fp32,
         "layer norm under autocast returns fp32"},
    Rule{"norm_reads_fp32", &Framework::norm_reads_fp32, "norms keep an fp32 copy of 16-bit input"},
    Rule{"autocast_emulates_bf16", &Framework::autocast_emulates_bf16,
         "autocast takes bf16 on devices without units for it"},
    Rule{"picks_fused_attention", &Framework::picks_fused_attention,
         "scaled_dot_product_attention chooses the kernel by device and precision"},
    Rule{"softmax_keeps_input", &Framework::softmax_keeps_input, "softmax keeps its input, too"},
    Rule{"keeps_statistics", &Framework::keeps_statistics,
         "mean, 1/std, log-sum-exp and dropout masks are kept"},
    Rule{"composed_rms_norm", &Framework::composed_rms_norm, "RMSNorm is several kernels"},
    Rule{"composed_gelu_tanh", &Framework::composed_gelu_tanh, "tanh-GELU is eight kernels"},
    Rule{"holds_locals", &Framework::holds_locals,
         "local variables of modules live until their function returns"},
    Rule{"copies_heads", &Framework::copies_heads, "math attention copies q, k and v by head"},
    Rule{"shifts_logits", &Framework::shifts_logits, "language models copy shifted fp32 logits"},
    Rule{"shifts_labels", &Framework::shifts_labels,
         "language models make all logits fp32 and shift their labels"},
    Rule{"vocabulary_loss", &Framework::vocabulary_loss,
         "logits become fp32, and their softmax is written over them"},
    Rule{"contiguous_heads", &Framework::contiguous_heads,
         "q, k and v are made contiguous for fused attention"},
    Rule{"repeats_key_heads", &Framework::repeats_key_heads,
         "grouped keys and values are repeated for fused attention"},
    Rule{"efficient_groups", &Framework::efficient_groups,
         "memory-efficient attention takes grouped keys and values as they are"},
    Rule{"vision_softmax_fp32", &Framework::vision_softmax_fp32,
         "ViT's eager attention makes probabilities in fp32"},
    Rule{"adapters_fp32", &Framework::adapters_fp32, "LoRA's weights are fp32 on any base"},
    Rule{"keeps_originals", &Framework::keeps_originals,
         "heads beside LoRA are trained as copies, and the originals stay"},
    Rule{"transformer_engine", &Framework::transformer_engine,
         "layers are Transformer Engine's: norms, attention, loss, a workspace for products"},
    Rule{"grouped_experts", &Framework::grouped_experts,
         "one product has the weights of all experts, of tokens sorted by expert"},
    Rule{"torchtitan", &Framework::torchtitan,
         "LLaMA's code is torchtitan's: heads turn as complex numbers, keys are repeated"},
    Rule{"accumulates_in_place", &Framework::accumulates_in_place,
         "a second gradient is added in place"},
    Rule{"gradients_persist", &Framework::gradients_persist, "gradient buffers stay between steps"},
    Rule{"megatron", &Framework::megatron,
         "Megatron-LM's linears and loop: products add to main gradients, stages name inputs"},
    Rule{"blas_workspace_in_pool", &Framework::blas_workspace_in_pool,
         "cuBLAS workspaces come from the caching allocator"},
    Rule{"blas_handle_per_thread", &Framework::blas_handle_per_thread,
         "the backward's thread has a cuBLAS workspace of its own"},
    Rule{"blas_workspace_per_call", &Framework::blas_workspace_per_call,
         "a cuBLAS workspace is taken for each matrix product and given back"},
    Rule{"blackwell_workspace", &Framework::blackwell_workspace,
         "cuBLAS workspaces have 32 MiB on Blackwell as on Hopper"},
    Rule{"deterministic_workspace", &Framework::deterministic_workspace,
         "cuBLAS workspaces have the 32 MiB of CUBLAS_WORKSPACE_CONFIG=:4096:8"},
    Rule{"keeps_score_buffer", &Framework::keeps_score_buffer,
         "a buffer of the largest attention scores stays between steps"},
    Rule{"op_scratch", &Framework::op_scratch,
         "what kernels take while they run counts as allocated"},
    Rule{"drops_idle_masks", &Framework::drops_idle_masks,
         "all models leave out masks that fused attention needs not"},
    Rule{"compiles", &Framework::compiles,
         "torch.compile(model): kernels are fused, and a cheapest cut says what is kept"},
    Rule{"compiles_blocks", &Framework::compiles_blocks,
         "torch.compile of each block: the same inside of each, and eager code between them"}};

Listing list_frameworks() {
  Listing listing{{{"name", "name"},
                   {"title", "title", Align::Wrapped},
                   {"default_precision", "default precision"},
                   {"source", "source", Align::Wrapped, 3}},
                  {}};
  for (const Framework& row : frameworks())
    listing.rows.push_back({{std::string(row.name)},
                            {std::string(row.title)},
                            {std::string(to_string(row.default_precision))},
                            {std::string(row.source)}});
  return listing;
}

Listing describe_framework(const Framework& row) {
  Listing listing{
      {{"rule", "rule"}, {"value", "value"}, {"meaning", "what it says", Align::Wrapped}}, {}};
  const auto add = [&](std::string_view rule, FieldValue value, std::string_view meaning) {
    listing.rows.push_back({{std::string(rule)}, {std::move(value)}, {std::string(meaning)}});
  };
  add("name", std::string(row.name), row.title);
  add("source", FieldValue(), row.source);
  add("default_precision", std::string(to_string(row.default_precision)), "if none is asked for");
  for (const Rule& rule : rules) add(rule.key, row.*rule.member, rule.meaning);
  add("optimizer_form", std::string(to_string(row.optimizer_form)),
      "how optimizers run that have several forms");
  return listing;
}

}  // namespace

Result run_frameworks(const Options& options) {
  const Format format = format_of(options, for_frameworks);
  const Listing listing = options.subject.empty()
                              ? list_frameworks()
                              : describe_framework(find_framework(options.subject));
  return {print(listing, format, style_of(options)), "", ExitCode::Ok};
}

}  // namespace tidemark::cli
