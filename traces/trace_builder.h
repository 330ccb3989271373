// Builds a trace op by op. The one place where the rules of a framework (autocast casts, copies,
// kept tensors) become ops and tensors; model files say only what the model computes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formula.h"
#include "traces/trace.h"

namespace tidemark {

/// Who a parameter belongs to when only a part of the model is trained.
enum class ParameterRole : std::uint8_t {
  Base,
  Adapter,
  FrozenAdapter,
  Head,
  Fixed,  ///< that its class never trains: Whisper's and ViTMAE's tables of waves
};

/// Where the code of an RMSNorm multiplies by its weight.
enum class RmsGain : std::uint8_t {
  Rounded,     ///< after rounding to the stream's dtype: LLaMA's and most others'
  Fp32,        ///< before it, so that the kept normalized x is fp32: OLMo-2
  KeepsInput,  ///< as Rounded, but x in its own dtype is kept beside its fp32 copy: T5
  OnePlus,     ///< as Fp32, by 1 + an fp32 copy of the weight: Gemma
  WideWeight,  ///< as Fp32, by an fp32 copy of the weight: NVIDIA's own file of Nemotron-H
};

struct OutputSpec {
  std::string_view suffix;  ///< appended to the op's name; "" for the main output
  Shape shape;
  DType dtype;
  TensorId over = no_tensor;  ///< of a result in place: the input whose memory it is written to
};

/// How a fused attention kernel is called.
struct FusedKernel {
  bool memory_efficient = false;
  double factor = 1;  ///< of the scores, beside 1/√d
};

/// The linear that an adapter sits beside (none where its weight is stored in few bits), and what
/// is trained.
struct Adapter {
  TensorId weight = no_tensor, bias = no_tensor;
  TensorId a = no_tensor, b = no_tensor;
  TensorId magnitude = no_tensor;  ///< of DoRA: one per output
};

/// Learned keys and values [batch, key heads, tokens, d] in front of a block's own.
struct Prefix {
  TensorId keys = no_tensor, values = no_tensor;
};

class TraceBuilder {
 public:
  TraceBuilder(std::string model, std::string family, const StepOptions& options);

  const Framework& framework() const { return framework_; }
  const StepOptions& step() const { return trace_.step; }
  /// What has been built so far.
  const Trace& trace() const { return trace_; }
  /// dtype of parameters and of the residual stream.
  DType base_dtype() const { return base_; }
  /// dtype that matrix products run in.
  DType compute_dtype() const { return compute_; }
  const Tensor& operator[](TensorId id) const { return trace_[id]; }
  Shape shape(TensorId id) const { return trace_[id].shape; }
  /// Shape of `x` without its last dimension.
  Shape rows(TensorId x) const;
  /// The config's probability unless the options override it.
  double dropout_probability(double of_config) const;
  double drop_path_probability(double of_config) const;
  /// True if LoRA adapters go beside the linear whose name ends in `leaf`; in a reference, too,
  /// which has the linears that they are beside.
  bool is_lora_target(std::string_view leaf) const;

  /// Data of the step: images, token ids, targets, masks, rotary tables.
  TensorId input(std::string_view name, const Shape& shape, DType dtype,
                 const std::optional<InputFill>& fill = {});
  TensorId parameter(std::string_view name, const Shape& shape,
                     ParameterRole = ParameterRole::Base);
  /// The weight of the module `name`, which shares the parameter `table`: that, unless one of both
  /// is trained as a copy, which ends the sharing.
  TensorId tied(const std::string& name, TensorId table);
  /// Learned tokens in front of words [batch, tokens, width], where such are trained; else the
  /// words.
  TensorId with_prompt(TensorId words);
  /// Those of each block, where such are trained; else blocks without.
  std::vector<Prefix> prefixes(std::int64_t blocks, std::int64_t heads, std::int64_t head_width);
  /// x [batch, heads, tokens, d] behind the learned part, where there is one.
  TensorId behind(const std::string& name, TensorId prefix, TensorId x);
  /// What belongs to the model and is not trained.
  TensorId buffer(std::string_view name, const Shape& shape, DType dtype);
  /// Between these the model is built a second time, as the frozen one that the first is compared
  /// with: a second one in memory, or, under adapters, the base without them. It is fed the same
  /// inputs, has no blocks, and its names begin with "reference.".
  void begin_reference();
  void end_reference();
  /// Between these the model predicts a further token, so many ahead of the next, as Megatron-LM
  /// trains it: ops and inputs are named after that, parameters that are there already serve again.
  /// With `is_plain` linears multiply in the precision's dtype whatever those of blocks do.
  void begin_further_token(std::int64_t ahead, bool is_plain);
  void end_further_token() { further_token_.clear(); }
  /// Do products multiply codes in eight or four bits here?
  bool multiplies_codes() const;
  /// … of these sides?
  bool multiplies_codes(std::int64_t in, std::int64_t out) const;
  /// How many blocks will come, for what is said of the last of them.
  void expect_blocks(std::int64_t depth) { depth_ = depth; }
  /// x as matrix products read it: autocast's cast of it, or x.
  TensorId to_compute(TensorId x);

  // Ops between begin and end belong to the block, and to the part named last. A part's residual
  // add, made by residual(), closes it.
  void begin_block(std::string_view name, TensorId input, int stack, int segment = -1);
  void part(Part part) { part_ = in_reference_ ? Part::None : part; }
  void end_block();

  // A function of the model's code: memory of its local variables, and of what it was called with,
  // is not free before it returns. Ignored where the framework's rules have no local variables.
  void begin_function() { first_local_.push_back(locals_.size()); }
  TensorId local(TensorId x);
  /// The variable of a loop, which has named `before` up to here (no_tensor: nothing yet).
  TensorId next_local(TensorId before, TensorId x);
  /// What the function returns, and the one that called it has a name for.
  TensorId local_of_caller(TensorId x);
  /// What the block being traced returns beside its output, and the stack of blocks has a name for
  /// until the next block has returned.
  TensorId local_of_stack(TensorId x);
  void end_function();

  // Matrix products. Shapes: x [..., in] → [..., out].
  TensorId linear(const std::string& name, TensorId x, std::int64_t out, bool bias = true,
                  ParameterRole role = ParameterRole::Base);
  /// The product with a given weight [out, in], for tied heads.
  TensorId linear_with(const std::string& name, TensorId x, TensorId weight,
                       TensorId bias = no_tensor);
  /// y = linear_with(name, x, …), and what an adapter adds where the linear `leaf` has one. The
  /// first call makes it; a linear that reads several tensors has one for all.
  TensorId adapted(const std::string& name, std::string_view leaf, TensorId x, TensorId y,
                   Adapter& adapter);
  /// a [..., m, k] × b [..., k, n]
  TensorId matmul(const std::string& name, TensorId a, TensorId b);
  /// The same in the dtype of a, without autocast.
  TensorId product(const std::string& name, TensorId a, TensorId b);
  /// x [batch, channels, height, width]; output of the given spatial shape.
  TensorId conv2d(const std::string& name, TensorId x, const Shape& output, std::int64_t kernel,
                  std::int64_t stride, std::int64_t padding, std::int64_t groups, bool bias);
  /// q [batch, heads, tokens, d], k and v [batch, key heads, keys, d] → [batch, heads, tokens, d];
  /// scores are q·k · factor / √d
  TensorId flash_attention(const std::string& name, TensorId q, TensorId k, TensorId v, bool causal,
                           TensorId bias = no_tensor, std::int64_t window = 0,
                           const FusedKernel& kernel = {});

  /// x [..., in] times a parameter [out, in] or [experts, in, out], in eight bits as Transformer
  /// Engine multiplies (engine_linear.h).
  TensorId engine_product(const std::string& name, TensorId x, TensorId weight);
  /// UsageError if linears are to multiply codes, which is not known of such ones.
  void refuse_codes(std::string_view linears) const;

  // Norms and activations.
  TensorId layer_norm(const std::string& name, TensorId x, double epsilon, bool bias = true);
  TensorId rms_norm(const std::string& name, TensorId x, double epsilon,
                    RmsGain gain = RmsGain::Rounded);
  TensorId gelu(const std::string& name, TensorId x, bool tanh_form = false);
  /// x · sigmoid(1.702 x)
  TensorId quick_gelu(const std::string& name, TensorId x);
  /// One kernel, whatever the framework composes.
  TensorId fused_gelu(const std::string& name, TensorId x, bool tanh_form);
  TensorId silu(const std::string& name, TensorId x);
  TensorId tanh(const std::string& name, TensorId x);
  TensorId sigmoid(const std::string& name, TensorId x);
  TensorId relu(const std::string& name, TensorId x);
  /// Softmax over the last dimension; fp32 output under autocast or if `in_fp32`.
  TensorId softmax(const std::string& name, TensorId x, bool in_fp32 = false);

  // Elementwise; broadcasting as in NumPy.
  TensorId add(const std::string& name, TensorId a, TensorId b);
  /// a += b
  TensorId add_in_place(const std::string& name, TensorId a, TensorId b);
  /// shortcut + branch: what a reversible coupling inverts.
  TensorId residual(const std::string& name, TensorId shortcut, TensorId branch);
  TensorId mul(const std::string& name, TensorId a, TensorId b);
  TensorId scale(const std::string& name, TensorId x, double factor);
  /// cap · tanh(x / cap)
  TensorId capped(const std::string& name, TensorId x, double cap);
  TensorId dropout(const std::string& name, TensorId x, double probability);
  TensorId drop_path(const std::string& name, TensorId x, double probability);
  /// `neighbours`: elements beside each other turn together, not those half a row apart.
  TensorId rope(const std::string& name, TensorId x, TensorId cosine, TensorId sine,
                bool neighbours = false);
  TensorId cast(const std::string& name, TensorId x, DType dtype);

  // Data movement. A view shares the storage; the others write new memory.
  TensorId view(const std::string& name, TensorId x, const Shape& shape,
                LayoutTransform layout_transform = LayoutTransform::Reshape);
  /// From index `offset` on, of the axis that shrinks.
  TensorId select(const std::string& name, TensorId x, const Shape& shape,
                  LayoutTransform layout_transform = LayoutTransform::Slice,
                  std::int64_t offset = 0);
  std::vector<TensorId> split(const std::string& name, TensorId x, const std::vector<Shape>& shapes,
                              const std::vector<std::string_view>& suffixes,
                              LayoutTransform layout_transform = LayoutTransform::Slice);
  TensorId copy(const std::string& name, TensorId x, const Shape& shape,
                LayoutTransform layout_transform = LayoutTransform::Reshape,
                std::initializer_list<Attribute> attributes = {});
  TensorId concat(const std::string& name, std::span<const TensorId> parts, const Shape& shape);
  TensorId repeat_heads(const std::string& name, TensorId x, const Shape& shape);
  TensorId embedding(const std::string& name, TensorId ids, TensorId table);
  TensorId mean_pool(const std::string& name, TensorId x, const Shape& shape);
  /// Of all elements: a scalar.
  TensorId mean(const std::string& name, TensorId x);
  /// Element by element, of tensors of one shape.
  TensorId average(const std::string& name, std::span<const TensorId> inputs);
  TensorId max_pool(const std::string& name, TensorId x, const Shape& shape, std::int64_t kernel,
                    std::int64_t stride);

  /// Log-softmax and negative log-likelihood: logits [rows, classes], targets [rows]. In fp32 under
  /// autocast, else in the dtype of the logits.
  TensorId cross_entropy(const std::string& name, TensorId logits, TensorId targets);

  /// An operation of no known kind, with what there is to know about it; returns its first output.
  TensorId opaque(const std::string& name, std::span<const TensorId> inputs,
                  std::span<const OutputSpec> outputs, OpaqueRow row,
                  std::span<const Attribute> attributes = {});

  /// Hands over the trace. Throws InputError if its tensors sum to more than 2^58 bytes.
  Trace finish(TensorId loss);

  /// The general form of all of the above: outputs of the given shapes; returns the first.
  TensorId emit(OpKind kind, const std::string& name, std::span<const TensorId> inputs,
                std::span<const OutputSpec> outputs, std::span<const Attribute> attributes = {});

 private:
  TensorId emit(OpKind kind, const std::string& name, std::initializer_list<TensorId> inputs,
                std::initializer_list<OutputSpec> outputs,
                std::initializer_list<Attribute> attributes = {}) {
    return emit(kind, name, std::span(inputs.begin(), inputs.size()),
                std::span(outputs.begin(), outputs.size()),
                std::span(attributes.begin(), attributes.size()));
  }
  TensorId emit_view(OpKind kind, const std::string& name, TensorId x, const Shape& shape,
                     std::span<const Attribute> attributes);
  TensorId parameter_of(std::string_view name, const Shape& shape, DType dtype, ParameterRole role);
  std::string cast_name(TensorId x);
  std::string name_in_model(const std::string& name) const;
  bool is_of_second_model(TensorId x) const;
  std::optional<TensorId> tensor_called(std::string_view name) const;
  std::optional<TensorId> given_to_reference(std::string_view name) const;
  TensorId reference_parameter(std::string_view name, const Shape& shape, DType dtype);
  void end_autocast();
  void hold_until_here(std::span<const TensorId> tensors);
  TensorId prefix_rows(TensorId numbers, std::int64_t width, std::int64_t of_all);
  bool is_at_wide_end() const;
  bool multiplies_codes(std::int64_t in, std::int64_t out, ParameterRole role) const;
  TensorId coded_linear(const std::string& name, TensorId x, TensorId weight, TensorId bias);
  TensorId stored_linear(const std::string& name, TensorId x, std::int64_t out, bool bias);
  TensorId quantized_linear(const std::string& name, TensorId x, std::int64_t out, bool bias);
  TensorId fp8_stored_linear(const std::string& name, TensorId x, std::int64_t out, bool bias);
  TensorId stored_part(const std::string& name, const Shape& shape, DType dtype);
  TensorId add_lora(const std::string& name, TensorId x, TensorId y, const Adapter& adapter);
  TensorId add_dora(const std::string& name, TensorId x, TensorId y, const Adapter& adapter);
  TensorId dora_norm(const std::string& name, TensorId read, const Adapter& adapter);
  bool is_copied(std::string_view parameter, ParameterRole role) const;
  double adapter_dropout() const { return scores_pairs(step()) ? 0 : step().tuning.dropout; }
  bool is_trainable(std::string_view name, ParameterRole role) const;
  TensorId add_external(Tensor tensor);
  DType promoted(TensorId a, TensorId b) const;
  Op& last_op() { return trace_.ops.back(); }

  Trace trace_;
  const Framework& framework_;
  bool autocast_;              ///< amp precision
  bool in_reference_ = false;  ///< between begin_reference() and end_reference()
  std::int64_t depth_ = 0;     ///< of the model; 0: it did not say
  std::string further_token_;  ///< in front of names, while one is predicted
  bool is_further_plain_ = false;
  DType base_, compute_;
  Part part_ = Part::None;
  std::int32_t block_ = -1;
  std::uint32_t random_tensors_ = 0;  ///< parameters and inputs with keys so far
  std::vector<TensorId> locals_;
  std::vector<std::size_t> first_local_;  ///< of each function being traced
  std::vector<TensorId> cached_;          ///< until the outermost of them returns
  std::vector<TensorId> of_stack_;        ///< until the block being traced returns
  std::vector<TensorId> of_next_;         ///< until the one behind it does
  std::vector<TensorId> weight_casts_;    ///< autocast casts each weight once per step
  std::vector<int> casts_;                ///< per activation: how often it has been cast
  /// Parameters of modules that are trained as copies.
  struct Copied {
    TensorId original, copy;
  };
  std::vector<Copied> copied_;
};

/// UsageError if an option of the step asks for what the model does not have: a linear or parameter
/// to tune (less would be trained, or frozen, than was asked for), paths to drop.
void require_used_options(const Trace& trace);

/// Is a part of the linears trained beside them?
bool has_adapters(const Tuning& tuning);

/// The dtype of matrix products.
DType compute_dtype_of(Precision precision);

/// True for the name of the first projection of a LoRA adapter.
bool is_adapter(std::string_view op_name);

/// "lm_head.weight" → "lm_head.original.weight": what lies frozen beside a copy that is trained.
std::string name_of_original(std::string_view parameter);

/// Matches '*' as any run of characters.
bool matches_glob(std::string_view text, std::string_view glob);

}  // namespace tidemark
