// What PyTorch 1.13.1 really keeps for the backward of torchvision's ViT-B/16, byte for byte.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/json_reader.h"
#include "traces/models/model_config.h"

namespace tidemark::torchvision_saved_test {
namespace {

Trace torchvision_vit(std::int64_t batch) {
  return build_vit("vit-b-16", VitConfig{},
                   {.batch = batch, .attention = Attention::Math, .framework = "torch-1.13"});
}

/// An operand that a node of the autograd graph holds: "AddmmBackward0 mat1 [197, 768]".
using Holders = std::set<std::string>;

/// The leading dimensions as one, before the `kept` last.
Shape folded(const Shape& shape, std::size_t kept) {
  const auto leading = shape.dims().first(shape.rank() - kept);
  std::vector<std::int64_t> dims = {numel(Shape(leading))};
  const auto last = shape.dims().last(kept);
  dims.insert(dims.end(), last.begin(), last.end());
  return Shape(dims);
}

/// What the graph calls an operand of our op: addmm sees all rows as one batch, bmm all heads.
std::string torch_name(const Trace& trace, const Op& op, int bit) {
  static const std::map<std::pair<OpKind, int>, std::string> names = {
      {{OpKind::Linear, 0}, "AddmmBackward0 mat1"},
      {{OpKind::MatMul, 0}, "BmmBackward0 self"},
      {{OpKind::MatMul, 1}, "BmmBackward0 mat2"},
      {{OpKind::Softmax, 16}, "SoftmaxBackward0 result"},
      {{OpKind::LayerNorm, 0}, "NativeLayerNormBackward0 input"},
      {{OpKind::LayerNorm, 17}, "NativeLayerNormBackward0 result1"},
      {{OpKind::LayerNorm, 18}, "NativeLayerNormBackward0 result2"},
      {{OpKind::Gelu, 0}, "GeluBackward0 self"},
      {{OpKind::Scale, 17}, "DivBackward0 other"},
      {{OpKind::LogSoftmax, 16}, "LogSoftmaxBackward0 result"},
      {{OpKind::NllLoss, 0}, "NllLossBackward0 self"},
      {{OpKind::NllLoss, 1}, "NllLossBackward0 target"},
      {{OpKind::NllLoss, 17}, "NllLossBackward0 total_weight"},
      {{OpKind::Conv2d, 0}, "ConvolutionBackward0 input"},
  };
  const auto known = names.find({op.kind, bit});
  const std::string name = known != names.end()
                               ? known->second
                               : std::string(to_string(op.kind)) + " " + std::to_string(bit);
  Shape shape = trace[operand(trace, op, bit)].shape;
  if (op.kind == OpKind::Linear) shape = folded(shape, 1);
  if (op.kind == OpKind::MatMul || op.kind == OpKind::Softmax) shape = folded(shape, 2);
  return name + " " + to_text(shape);
}

/// The storages that the backward holds, parameters apart, with who holds them.
std::map<TensorId, Holders> saved_storages(const Trace& trace) {
  const auto required = requires_gradient(trace);
  std::map<TensorId, Holders> storages;
  for (const Op& op : trace.ops) {
    const Operands saved = saved_operands(trace, op, inputs_with_gradient(trace, op, required));
    for (int bit = 0; bit < 32; ++bit) {
      if ((saved >> bit & 1) == 0) continue;
      const Tensor& tensor = trace[operand(trace, op, bit)];
      if (tensor.category != Category::Parameter)
        storages[tensor.storage].insert(torch_name(trace, op, bit));
    }
  }
  return storages;
}

TEST(TorchvisionVit, SavesTheMeasuredBytes) {
  const JsonDocument reference = read_json(
      TIDEMARK_TESTS_DIR "/reference/torchvision_saved_fp32.json", FileKind::TrainingData);
  for (const std::int64_t batch : {1, 2, 4}) {
    const Trace trace = torchvision_vit(batch);
    Bytes saved;
    for (const auto& [storage, holders] : saved_storages(trace)) saved += size(trace[storage]);
    const std::string key = "vit_b_16/b" + std::to_string(batch);
    EXPECT_EQ(saved.count, reference.root().at("saved_bytes").at(key).integer()) << key;
  }
}

TEST(TorchvisionVit, SavesTheMeasuredTensorsForTheMeasuredNodes) {
  using Group = std::tuple<std::int64_t, Holders>;  // bytes of the storage, who holds it
  std::map<Group, std::int64_t> predicted, measured;
  const Trace trace = torchvision_vit(1);
  for (const auto& [storage, holders] : saved_storages(trace))
    ++predicted[{size(trace[storage]).count, holders}];

  const JsonDocument reference =
      read_json(TIDEMARK_TESTS_DIR "/reference/torchvision_vit_b_16_saved_groups.json",
                FileKind::TrainingData);
  for (const JsonView group : reference.root().at("groups").items()) {
    Holders holders;
    for (const JsonView holder : group.at("holders").items()) {
      std::vector<std::int64_t> dims;
      for (const JsonView dim : holder.at("shape").items()) dims.push_back(dim.integer());
      holders.insert(std::string(holder.at("node").text()) + " " +
                     std::string(holder.at("tensor").text()) + " " + to_text(Shape(dims)));
    }
    measured[{group.at("storage_bytes").integer(), holders}] += group.at("count").integer();
  }
  EXPECT_EQ(measured.size(), 16u);
  EXPECT_EQ(predicted, measured);
}

}  // namespace
}  // namespace tidemark::torchvision_saved_test
