// One tensor or op as JSON: operands or readers, lives or runs, the decision about it.
#include "cli/reports/json_text.h"
#include "cli/reports/print_explanation.h"

namespace tidemark::cli {
namespace {

Json shape_json(const Shape& shape) {
  Json dims = Json::array();
  for (const std::int64_t dim : shape.dims()) dims.push_back(dim);
  return dims;
}

Json tensor_json(const Tensor& tensor) {
  return {{"name", tensor.name},
          {"shape", shape_json(tensor.shape)},
          {"dtype", to_string(tensor.dtype)},
          {"category", to_string(tensor.category)},
          {"bytes", size(tensor).count}};
}

Json readers_json(const std::vector<Reader>& readers) {
  Json list = Json::array();
  for (const Reader& reader : readers)
    list.push_back(
        {{"op", reader.op}, {"kind", reader.operation}, {"operand", operand_text(reader.operand)}});
  return list;
}

Json lives_json(const std::vector<Life>& lives) {
  Json list = Json::array();
  for (const Life& life : lives)
    list.push_back({{"role", roles[static_cast<std::size_t>(life.role)].name},
                    {"bytes", life.size.count},
                    {"persistent", life.persistent},
                    {"begin_ns", life.begin.count()},
                    {"end_ns", life.end.count()}});
  return list;
}

Json facts_json(const TensorFacts& facts) {
  Json json = tensor_json(facts.tensor);
  json["storage"] = facts.storage;
  json["storage_bytes"] = facts.storage_size.count;
  json["producer"] = facts.producer;
  json["line"] = facts.line;
  json["read_by"] = readers_json(facts.readers);
  json["needed_by_backward_of"] = readers_json(facts.holders);
  json["saved"] = facts.is_saved;
  json["action"] = to_string(facts.action);
  json["reason"] = facts.reason;
  json["recovered_with"] = facts.recovery;
  json["lives"] = lives_json(facts.lives);
  return json;
}

Json op_row_json(const OpFacts& facts) {
  const OpaqueRow& row = *facts.row;
  Json gradients = Json::array();
  for (int i = 0; row.gradients >> i != 0; ++i)
    if ((row.gradients >> i & 1) != 0) gradients.push_back(operand_text(i));
  return {{"operation", row.operation},
          {"gradients", std::move(gradients)},
          {"runs_once", row.runs_once},
          {"forward_workspace_bytes", row.forward.workspace.count},
          {"backward_workspace_bytes", row.backward.workspace.count},
          {"time_is_guessed", facts.is_time_guessed}};
}

Json facts_json(const OpFacts& facts) {
  Json operands = Json::array(), runs = Json::array();
  for (const OperandFacts& operand : facts.operands) {
    operands.push_back({{"operand", operand_text(operand.operand)}});
    operands.back().update(tensor_json(operand.tensor));
    operands.back()["held_for_backward"] = operand.is_held;
  }
  for (const RunFacts& run : facts.runs)
    runs.push_back({{"task", to_string(run.task)},
                    {"stream", index(run.stream)},
                    {"begin_ns", run.begin.count()},
                    {"end_ns", run.end.count()},
                    {"alone_ns", run.cost.time.count()},
                    {"kernels", run.cost.kernels},
                    {"flops", run.cost.flops},
                    {"moved_bytes", run.cost.bytes}});
  Json json = {{"name", facts.name}, {"kind", to_string(facts.kind)},   {"block", facts.block},
               {"line", facts.line}, {"operands", std::move(operands)}, {"runs", std::move(runs)}};
  if (facts.row) json["row"] = op_row_json(facts);
  return json;
}

}  // namespace

std::string item_json(const Explanation& explanation, const ItemFacts& facts) {
  Json json = inputs_json("tidemark-explain-1", explanation.comparison);
  json["strategy"] = explanation.report().strategy;
  json["op"] = facts.op ? facts_json(*facts.op) : Json();
  json["tensor"] = facts.tensor ? facts_json(*facts.tensor) : Json();
  return document_text(json);
}

}  // namespace tidemark::cli
