// Checks step, loss and blocks itself, and runs the checks of tensors and of ops.
#include "traces/trace_check.h"

#include "base/quoted.h"
#include "traces/step_fields.h"

namespace tidemark {
namespace {

bool is_countable(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim < 1 || dim > largest_size / 8 / count) return false;
    count *= dim;
  }
  return true;
}

void check_step(const StepOptions& step, Defects& defects) {
  for (const StepField& field : step_fields())
    if (const std::string defect = field.defect(step); !defect.empty())
      defects.add(fmt::format("/step/{}", field.key), "{}", defect);
}

void check_loss(const Trace& trace, const TraceFacts& facts, Defects& defects) {
  if (!exists(trace, trace.loss))
    return defects.add("/loss", "{}", missing_tensor(trace, trace.loss));
  const Tensor& loss = trace[trace.loss];
  if (facts.producer[index(trace.loss)] == TraceFacts::nobody)
    defects.add("/loss", "no op makes {}; need an output", quoted(loss.name));
  if (loss.shape.rank() != 0 || !is_floating(loss.dtype))
    defects.add("/loss", "{} is {} {}; need a floating-point scalar", quoted(loss.name),
                to_string(loss.dtype), to_text(loss.shape));
}

// Blocks of one stack may become one reversible stack: each is fed by the one before, and their
// inputs are equal in shape.
void check_stack(const Trace& trace, const TraceFacts& facts, std::size_t i, Defects& defects) {
  const Block &block = trace.blocks[i], &before = trace.blocks[i - 1];
  if (block.stack < 0 || block.stack != before.stack) return;
  if (!exists(trace, block.input) || !exists(trace, before.input)) return;
  const Tensor &input = trace[block.input], &earlier = trace[before.input];
  const std::uint32_t producer = facts.producer[index(block.input)];
  if (producer == TraceFacts::nobody || facts.owner[producer] != static_cast<std::int32_t>(i) - 1)
    defects.add(pointer_to("blocks", i, "/input"),
                "{} is not made by block {}; need that in a stack", quoted(input.name),
                quoted(before.name));
  if (input.shape != earlier.shape)
    defects.add(pointer_to("blocks", i, "/input"), "{} is {}; need {} as before, in a stack",
                quoted(input.name), to_text(input.shape), to_text(earlier.shape));
}

void check_blocks(const Trace& trace, const TraceFacts& facts, Defects& defects) {
  UniqueNames names("blocks", trace.blocks.size());
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    names.check(i, block.name, defects);
    if (!follows_in_order(trace, i))
      defects.add(pointer_to("blocks", i, ""),
                  "{} holds ops [{}, {}) of {}; need at least one, all behind the block before",
                  quoted(block.name), index(block.begin), index(block.end), trace.ops.size());
    if (const auto defect = read_defect(trace, facts, block.input, index(block.begin));
        !defect.empty())
      defects.add(pointer_to("blocks", i, "/input"), "{}", defect);
    if (block.stack < -1)
      defects.add(pointer_to("blocks", i, "/stack"), "found {}; need -1 or a number from 0",
                  block.stack);
    if (block.segment < -1)
      defects.add(pointer_to("blocks", i, "/segment"), "found {}; need -1 or a number from 0",
                  block.segment);
    if (i > 0 && trace.blocks[i - 1].is_further && !block.is_further)
      defects.add(pointer_to("blocks", i, "/is_further"),
                  "{} predicts a further token; need that of all blocks behind it",
                  quoted(trace.blocks[i - 1].name));
    if (i > 0 && facts.blocks_are_in_order) check_stack(trace, facts, i, defects);
  }
}

}  // namespace

std::string pointer_to(std::string_view list, std::size_t i, std::string_view field) {
  return fmt::format("/{}/{}{}", list, i, field);
}

void UniqueNames::check(std::size_t i, std::string_view name, Defects& defects) {
  const std::uint32_t first = names_.add(name);
  if (name.empty()) return defects.add(pointer_to(list_, i, "/name"), "found ''; need a name");
  if (first != i)
    defects.add(pointer_to(list_, i, "/name"), "{} is the name of {}, too; need another",
                quoted(name), pointer_to(list_, first, ""));
}

TraceFacts::TraceFacts(const Trace& trace)
    : producer(trace.tensors.size(), nobody),
      is_countable(trace.tensors.size()),
      owner(trace.ops.size(), -1) {
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    is_countable[i] = tidemark::is_countable(trace.tensors[i].shape);
  for (std::size_t i = trace.ops.size(); i-- > 0;) {  // backwards, so that the first op stays
    if (!has_operands(trace, trace.ops[i])) continue;
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (exists(trace, output)) producer[index(output)] = static_cast<std::uint32_t>(i);
  }
  for (std::size_t b = 0; b < trace.blocks.size() && blocks_are_in_order; ++b) {
    blocks_are_in_order = follows_in_order(trace, b);
    if (!blocks_are_in_order) break;
    for (std::size_t i = index(trace.blocks[b].begin); i < index(trace.blocks[b].end); ++i)
      owner[i] = static_cast<std::int32_t>(b);
  }
}

bool exists(const Trace& trace, TensorId id) { return index(id) < trace.tensors.size(); }

bool has_operands(const Trace& trace, const Op& op) {
  return std::size_t{op.first_operand} + op.inputs + op.outputs <= trace.operands.size();
}

bool has_attributes(const Trace& trace, const Op& op) {
  return std::size_t{op.first_attribute} + op.attributes <= trace.attributes.size();
}

bool follows_in_order(const Trace& trace, std::size_t i) {
  const Block& block = trace.blocks[i];
  const std::size_t earliest = i == 0 ? 0 : index(trace.blocks[i - 1].end);
  return index(block.begin) >= earliest && index(block.begin) < index(block.end) &&
         index(block.end) <= trace.ops.size();
}

std::string missing_tensor(const Trace& trace, TensorId id) {
  return fmt::format("found tensor number {}; need one below {}", index(id), trace.tensors.size());
}

std::string read_defect(const Trace& trace, const TraceFacts& facts, TensorId id, std::size_t op) {
  if (!exists(trace, id)) return missing_tensor(trace, id);
  const Tensor& tensor = trace[id];
  const std::uint32_t producer = facts.producer[index(id)];
  if (producer != TraceFacts::nobody)
    return producer < op ? std::string()
                         : fmt::format("{} is read before /ops/{} makes it; need it earlier",
                                       quoted(tensor.name), producer);
  const Category category = tensor.category;  // a workspace that the framework keeps, too
  if (category == Category::Parameter || category == Category::Input ||
      category == Category::Workspace)
    return {};
  return fmt::format("no op makes {}; need an earlier output, a parameter or an input",
                     quoted(tensor.name));
}

// Every micro-batch is planned op by op.
std::string micro_batches_defect(const Trace& trace) {
  constexpr std::int64_t most_runs = 10'000'000;
  const auto ops = static_cast<std::int64_t>(trace.ops.size());
  const std::int64_t batches = trace.step.accumulate.count;
  if (batches <= 1 || batches > MicroBatches::most || ops <= most_runs / batches) return {};
  return fmt::format("found {} micro-batches of {} ops; need at most {} runs in all", batches, ops,
                     most_runs);
}

std::vector<std::string> check(const Trace& trace) {
  const TraceFacts facts(trace);
  Defects defects;
  check_step(trace.step, defects);
  if (const std::string defect = micro_batches_defect(trace); !defect.empty())
    defects.add("/step/accumulate", "{}", defect);
  check_loss(trace, facts, defects);
  check_blocks(trace, facts, defects);
  check_tensors(trace, facts, defects);
  check_ops(trace, facts, defects);
  check_opaque_rows(trace, defects);
  check_lines(trace, defects);
  if (trace.calls) check_recorded_calls(*trace.calls, defects);
  return defects.take();
}

}  // namespace tidemark
