// What PyTorch 2.6 keeps for the backward of Hugging Face's models, storage by storage. Where it
// keeps something else than our builders say, the difference is stated here with its cause; nothing
// is compared with a tolerance. Fixtures: tests/reference/make_saved_fixtures.py.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/json_reader.h"
#include "traces/models/config_reader.h"

namespace tidemark::hf_saved_test {
namespace {

/// Bytes of a storage → how many there are.
using Storages = std::map<std::int64_t, std::int64_t>;

struct Case {
  explicit Case(const JsonView& view)
      : name(view.at("name").text()),
        config(read_model_config(view.at("config").text(), name).config),
        precision(parse_name(precisions, "precision", view.at("precision").text())),
        eager(view.at("attention").text() == "eager"),
        batch(view.at("batch").integer()),
        tokens(view.at("tokens").integer()) {
    for (const JsonView group : view.at("groups").items())
      measured[group.at("bytes").integer()] += group.at("count").integer();
  }

  bool begins(std::string_view family) const { return name.starts_with(family); }
  /// What transformers 4.47 does not have yet was measured with 4.51.
  bool is_newer() const {
    const auto* decoder = std::get_if<DecoderConfig>(&config);
    return begins("qwen3") || (decoder && decoder->family != "llama");
  }
  std::int64_t compute_bytes() const { return precision == Precision::Fp32 ? 4 : 2; }

  Trace trace() const {
    return build_trace({name, "", "", "", config},
                       {.batch = batch,
                        .sequence = tokens,
                        .precision = precision,
                        .attention = eager ? Attention::Math : Attention::Flash,
                        .framework = is_newer() ? "transformers-4.51" : "transformers-4.47"});
  }

  std::string name;
  ModelConfig config;
  Precision precision;
  bool eager;
  std::int64_t batch, tokens;
  Storages measured;
};

// Buffers of the modules, which the fixtures leave out as they do parameters. RoBERTa and GPT-2
// make their positions in each step.
bool is_buffer(const Case& of, const Tensor& tensor) {
  if (tensor.category != Category::Input) return false;
  return tensor.name.ends_with(".relative_position_index") ||
         ((of.begins("bert") || of.begins("distilbert")) && tensor.name == "position_ids");
}

Storages predicted_storages(const Case& of) {
  const Trace trace = of.trace();
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
  for (std::size_t t = 0; t < kept.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool counts = tensor.category != Category::Parameter && !of_parameter[t];
    if (kept[t] && counts && !is_buffer(of, tensor)) ++storages[size(tensor).count];
  }
  return storages;
}

/// `count` storages of `bytes` each that PyTorch keeps beyond ours; fewer if negative.
struct Difference {
  std::int64_t count, bytes;
};

// The flash kernel keeps seed and offset of its random numbers, also where nothing is dropped: two
// CPU tensors of 8 bytes, which take no memory of the device.
void add_flash_state(const Case& of, std::int64_t depth, std::vector<Difference>& differences) {
  if (!of.eager && of.precision != Precision::Fp32) differences.push_back({2 * depth, 8});
}

// gelu_new multiplies by three numbers, each of which PyTorch keeps as a CPU tensor of 8 bytes. The
// scores are divided by a tensor of their own dtype where we have such a number.
void add_gpt2(const Case& of, const Gpt2Config& config, std::vector<Difference>& differences) {
  if (config.activation == ActivationForm::GeluComposed)
    differences.push_back({3 * config.depth, 8});
  if (!of.eager) return;
  differences.push_back({-config.depth, 8});
  differences.push_back({config.depth, of.compute_bytes()});
}

// In transformers 4.47 each of Mistral's layers makes its rotary tables, in the dtype of its q; in
// later versions all share those of the model, as in LLaMA.
void add_own_tables(const Case& of, const DecoderConfig& config,
                    std::vector<Difference>& differences) {
  const std::int64_t elements = of.tokens * config.head_width;
  const std::int64_t stream_bytes = of.precision == Precision::Bf16 ? 2 : 4;
  differences.push_back({-2, elements * stream_bytes});
  differences.push_back({2 * config.depth, elements * of.compute_bytes()});
}

// gelu_new as in add_gpt2(). Gemma's words are scaled by a tensor of their own dtype, a buffer from
// the third on, where we have a number.
void add_scalars(const Case& of, const DecoderConfig& config,
                 std::vector<Difference>& differences) {
  if (config.activation == ActivationForm::GeluComposed)
    differences.push_back({3 * config.depth, 8});
  if (config.embedding_factor == 1) return;
  differences.push_back({-1, 8});
  if (config.family != "gemma3")
    differences.push_back({1, of.precision == Precision::Bf16 ? 2 : 4});
}

// DistilBERT fills the scores where its mask says so, and keeps that mask in each block.
void add_masks(const Case& of, const BertConfig& config, std::vector<Difference>& differences) {
  if (!config.has_pooler && of.eager) differences.push_back({config.depth, of.batch * of.tokens});
}

std::int64_t depth_of(const ModelConfig& config) {
  if (const auto* vit = std::get_if<VitConfig>(&config)) return vit->depth;
  if (const auto* bert = std::get_if<BertConfig>(&config)) return bert->depth;
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) return gpt2->depth;
  const auto* llama = std::get_if<DecoderConfig>(&config);
  return llama ? llama->depth : 0;  // Swin has no fused attention in Hugging Face's code
}

std::vector<Difference> known_differences(const Case& of) {
  std::vector<Difference> differences;
  add_flash_state(of, depth_of(of.config), differences);
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&of.config)) add_gpt2(of, *gpt2, differences);
  if (const auto* bert = std::get_if<BertConfig>(&of.config)) add_masks(of, *bert, differences);
  if (const auto* llama = std::get_if<DecoderConfig>(&of.config)) {
    add_scalars(of, *llama, differences);
    if (of.begins("mistral")) add_own_tables(of, *llama, differences);
  }
  return differences;
}

class HuggingFace : public testing::TestWithParam<const char*> {};

TEST_P(HuggingFace, SavesTheMeasuredStorages) {
  const JsonDocument fixture =
      read_json(std::string(TIDEMARK_TESTS_DIR "/reference/") + GetParam(), FileKind::TrainingData);
  for (const JsonView view : fixture.root().at("cases").items()) {
    const Case of(view);
    Storages predicted = predicted_storages(of);
    for (const Difference& difference : known_differences(of))
      predicted[difference.bytes] += difference.count;
    std::erase_if(predicted, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(predicted, of.measured) << of.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HuggingFace,
                         testing::Values("saved_2.6.0_cpu.json", "saved_2.6.0_cpu_qwen3.json",
                                         "saved_2.6.0_cuda.json", "saved_2.6.0_cuda_qwen3.json",
                                         "saved_2.6.0_cpu_4.57.json",
                                         "saved_2.6.0_cuda_4.57.json"));

void expect_parameters(const std::string& file) {
  const JsonDocument fixture =
      read_json(TIDEMARK_TESTS_DIR "/reference/" + file, FileKind::TrainingData);
  for (const JsonView view : fixture.root().at("cases").items()) {
    const Case of(view);
    std::int64_t elements = 0;
    for (const Tensor& tensor : of.trace().tensors)
      if (tensor.category == Category::Parameter) elements += numel(tensor.shape);
    EXPECT_EQ(elements, view.at("parameters").integer()) << of.name;
  }
}

TEST(HuggingFaceFixtures, HaveTheParametersThatWeCount) {
  expect_parameters("saved_2.6.0_cpu.json");
  expect_parameters("saved_2.6.0_cpu_4.57.json");
}

}  // namespace
}  // namespace tidemark::hf_saved_test
