// What PyTorch's backward nodes hold of the families that came later, storage by storage, as eager
// steps on CUDA tensors left it (scripts/capture_steps/family_cases.py).
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/json_reader.h"
#include "tests/support/measured_steps.h"
#include "traces/models/config_reader.h"

namespace tidemark::family_storages_test {
namespace {

/// Bytes of a storage → how many there are.
using Storages = std::map<std::int64_t, std::int64_t>;

constexpr std::int64_t most = std::int64_t{1} << 50;

StepOptions options_of(const JsonView& step) {
  StepOptions options{.batch = step.at("batch").integer(),
                      .precision = parse_name(precisions, "precision", step.at("precision").text()),
                      .framework = "transformers-4.57"};
  if (const auto tokens = step.find("tokens")) options.sequence = tokens->integer();
  if (const auto tokens = step.find("target_tokens")) options.target_sequence = tokens->integer();
  if (step.at("attention").text() == "math") options.attention = Attention::Math;
  options.liger = step.boolean_or("liger", false);
  options.padded = step.boolean_or("padded", false);
  if (const auto reference = step.find("reference"))
    options.loss = parse_token_loss(reference->text() == "precomputed" ? "dpo:precomputed" : "dpo");
  if (const auto name = step.find("linears")) options.linears = parse_coded_linears(name->text());
  if (const auto name = step.find("base"))
    options.base = parse_name(base_weights, "base", name->text());
  return options;
}

Storages measured_storages(const JsonView& step) {
  Storages storages;
  for (const JsonView group : step.at("storages").items()) {
    const auto pair = group.items();
    auto number = pair.begin();
    const std::int64_t bytes = (*number).integer(0, most);
    storages[bytes] += (*++number).integer(0, most);
  }
  return storages;
}

// Numbers that a node keeps lie on the CPU, and positions that are buffers of a module count with
// the parameters there: neither is in the fixtures.
bool counts(const Tensor& tensor) {
  const bool is_number = tensor.dtype == DType::Float64 && tensor.shape.rank() == 0;
  const bool is_buffer =
      tensor.category == Category::Input &&
      (tensor.name == "position_ids" || tensor.name.ends_with(".relative_position_index"));
  return tensor.category != Category::Parameter && !is_number && !is_buffer;
}

Storages predicted_storages(const Trace& trace) {
  const auto required = requires_gradient(trace);
  std::vector<bool> kept(trace.tensors.size()), of_parameter(trace.tensors.size());
  for (const Op& op : trace.ops) {
    const Operands saved = saved_operands(trace, op, inputs_with_gradient(trace, op, required));
    for (int bit = 0; bit < 32; ++bit)
      if ((saved >> bit & 1) != 0) kept[index(trace[operand(trace, op, bit)].storage)] = true;
    if (op.kind == OpKind::Cast && trace[trace.inputs(op)[0]].category == Category::Parameter)
      of_parameter[index(trace.outputs(op)[0])] = true;
  }
  Storages storages;
  for (std::size_t t = 0; t < kept.size(); ++t)
    if (kept[t] && !of_parameter[t] && counts(trace.tensors[t]))
      ++storages[size(trace.tensors[t]).count];
  return storages;
}

// What is looked up by numbers in Python costs PyTorch small tensors of them: CLIP's last token of
// each sample a row and a column, Falcon's keys and values a number each, and a block of 7B or 40B
// keeps both. Its last tokens are looked up like CLIP's.
void leave_out_indices(const JsonView& step, const ModelConfig& config, Storages& storages) {
  const auto remove = [&](std::int64_t bytes, std::int64_t count) {
    storages[bytes] -= count;
    if (storages[bytes] == 0) storages.erase(bytes);
  };
  if (const auto* clip = std::get_if<ClipConfig>(&config); clip && !clip->is_sigmoid && !clip->sees)
    remove(step.at("batch").integer() * 8, 2);
  const auto* falcon = std::get_if<DecoderConfig>(&config);
  if (falcon && falcon->head == Head::SequenceClassification)
    remove(step.at("batch").integer() * 8, 2);
  const bool looks_up = falcon && (falcon->unpacking == Unpacking::OneKeyHead ||
                                   falcon->unpacking == Unpacking::Grouped);
  if (looks_up) remove(8, 2 * falcon->depth);
}

TEST(FamilyStorages, AreWhatPyTorchKeeps) {
  const JsonDocument document =
      read_json(TIDEMARK_TESTS_DIR "/reference/steps_families.json", FileKind::TrainingData);
  int compared = 0;
  for (const JsonView step : document.root().at("steps").items()) {
    if (step.find("lora") || step.find("checkpoint")) continue;
    const std::string name(step.at("name").text());
    const ModelConfig config = read_model_config(step.at("config").text(), name).config;
    const Trace trace = build_trace({name, "", "", "", config}, options_of(step));
    Storages measured = measured_storages(step);
    leave_out_indices(step, config, measured);
    EXPECT_EQ(predicted_storages(trace), measured) << name;
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

// Liger's loss makes the table's gradient in the forward and keeps it; here it is made later.
void leave_out_gradient_of_table(const JsonView& step, const Trace& trace, Storages& storages) {
  if (step.find("lora")) return;
  for (const Tensor& tensor : trace.tensors) {
    if (tensor.name != "lm_head.weight" && tensor.name != "embed.weight") continue;
    const auto found = storages.find(size(tensor).count);
    ASSERT_NE(found, storages.end()) << "no gradient of " << tensor.name;
    if (--found->second == 0) storages.erase(found);
    return;
  }
}

/// Compares each step of a fixture that is not checkpointed, and says how many these were.
template <typename LeaveOut>
int compare_kept(const std::string& fixture, LeaveOut leave_out) {
  const JsonDocument document =
      read_json(TIDEMARK_TESTS_DIR "/reference/" + fixture, FileKind::TrainingData);
  int compared = 0;
  for (const JsonView step : document.root().at("steps").items()) {
    if (step.find("checkpoint")) continue;
    const std::string name(step.at("name").text());
    const ModelConfig config = read_model_config(step.at("config").text(), name).config;
    StepOptions options = options_of(step);
    options.tuning = tuning_of(step);
    if (fixture.ends_with("_transformers-5.json")) options.framework = "transformers-5";
    const Trace trace = build_trace({name, "", "", "", config}, options);
    Storages measured = measured_storages(step);
    leave_out(step, config, trace, measured);
    EXPECT_EQ(predicted_storages(trace), measured) << name;
    ++compared;
  }
  return compared;
}

// What transformers 5 sorts by experts, and multiplies with the weights of all; beside what fused
// attention draws random numbers from. Below compute capability 8.0 a context names where the rows
// of an expert end.
TEST(ExpertStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_experts_transformers-5.json",
      [](const JsonView& step, const ModelConfig& config, const Trace&, Storages& measured) {
        measured.erase(8), measured.erase(16);
        const auto& decoder = std::get<DecoderConfig>(config);
        if (step.find("sm")) measured[4 * decoder.experts.count] += decoder.depth;
      });
  EXPECT_EQ(compared, 22);
}

TEST(LigerStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept("steps_liger.json", [](const JsonView& step, const ModelConfig&,
                                                           const Trace& trace, Storages& measured) {
    leave_out_gradient_of_table(step, trace, measured);
  });
  EXPECT_EQ(compared, 28);
}

// BERT's token types are a buffer of the module, too; GPT-2 makes its positions in the step. (Of
// RoBERTa's kin both is true, and both have the same bytes.)
void count_indices(const JsonView& step, const ModelConfig& config, Storages& storages) {
  constexpr std::int64_t of_index = 8;
  const auto* bert = std::get_if<BertConfig>(&config);
  if (bert && bert->token_types > 0 && !bert->is_roberta())
    ++storages[step.at("batch").integer() * step.at("tokens").integer() * of_index];
  if (std::holds_alternative<Gpt2Config>(config)) {
    EXPECT_EQ(storages.erase(step.at("tokens").integer() * of_index), 1u);
  }
}

// torchao 0.9 keeps codes of each weight and a factor, 0.18 neither.
TEST(Fp8Storages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_fp8.json", [](const JsonView& step, const ModelConfig& config, const Trace&,
                           Storages& measured) { count_indices(step, config, measured); });
  EXPECT_EQ(compared, 24);
}

// Each weight is kept as it was decoded, where its input needs a gradient. What PyTorch 2.15's
// fused attention draws random numbers from is kept beside it, two tensors of each block.
TEST(Fp8BaseStorages, AreWhatPyTorchKeeps) {
  const int compared =
      compare_kept("steps_fp8_base_transformers-5.json",
                   [](const JsonView& step, const ModelConfig&, const Trace&, Storages& measured) {
                     const int blocks = 3;
                     const bool is_fp32 = step.at("precision").text() == "fp32";
                     EXPECT_EQ(measured[8], is_fp32 ? 2 * blocks : blocks);
                     EXPECT_EQ(measured[16], is_fp32 ? 0 : blocks);
                     measured.erase(8), measured.erase(16);
                   });
  EXPECT_EQ(compared, 12);
}

// A copy of the mask for each block among them, and keys and values behind their prefix. What GPT-2
// divides scores by in each block is a number on the device.
TEST(PrefixStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_prefix.json",
      [](const JsonView& step, const ModelConfig& config, const Trace&, Storages& measured) {
        const auto* gpt2 = std::get_if<Gpt2Config>(&config);
        if (!gpt2 || step.at("attention").text() != "math") return;
        const std::int64_t of_number = step.at("precision").text() == "fp32" ? 4 : 2;
        measured[of_number] -= gpt2->depth;
        if (measured[of_number] == 0) measured.erase(of_number);
      });
  EXPECT_EQ(compared, 25);
}

// Of the log-sigmoid PyTorch keeps an empty tensor, too. Under adapters no positions are kept.
TEST(PreferenceStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_dpo.json",
      [](const JsonView& step, const ModelConfig& config, const Trace&, Storages& measured) {
        EXPECT_EQ(measured.erase(0), 1u);
        if (!step.find("lora")) count_indices(step, config, measured);
      });
  EXPECT_EQ(compared, 17);
}

// In the place of a family's own: ReLU, SiLU, and GELU in its other ways, in fifteen families.
TEST(ActivationStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_activations.json", [](const JsonView& step, const ModelConfig& config, const Trace&,
                                   Storages& measured) { count_indices(step, config, measured); });
  EXPECT_EQ(compared, 45);
}

// Of rank-stabilized LoRA, of DoRA with and without dropout and biases, and of modules that are
// trained as copies.
TEST(AdapterStorages, AreWhatPyTorchKeeps) {
  const int compared = compare_kept(
      "steps_adapters.json", [](const JsonView& step, const ModelConfig& config, const Trace&,
                                Storages& measured) { leave_out_indices(step, config, measured); });
  EXPECT_EQ(compared, 20);
}

}  // namespace
}  // namespace tidemark::family_storages_test
