// Codes per storage, as the clean schedule has them, or per saved operand, as Mesa's public code.
#include "simulator/graph/coded_values.h"

#include <utility>

namespace tidemark {

CodedValues::CodedValues(const Trace& trace, const Plan& plan, const Needs& needs,
                         const Recovery& recovery, GraphBuilder& graph, PresentValues& values)
    : trace_(trace),
      plan_(plan),
      needs_(needs),
      recovery_(recovery),
      graph_(graph),
      values_(values),
      coded_(trace.tensors.size()) {
  if (plan.quirks.codes_per_use) number_uses();
}

void CodedValues::number_uses() {
  first_use_.reserve(needs_.saved.size());
  std::uint32_t next = 0;
  for (const Operands saved : needs_.saved) {
    first_use_.push_back(next);
    next += static_cast<std::uint32_t>(__builtin_popcount(saved));
  }
  coded_use_.resize(next);
}

void CodedValues::place_ranges() {
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t)
    if (const auto storage = static_cast<TensorId>(t);
        is_coded_after_forward(storage) && has_ranges(encoding_of(plan_, storage)))
      coded_[t].ranges = add_ranges(storage);
  for (std::size_t i = 0; i < first_use_.size(); ++i) {
    std::uint32_t use = first_use_[i];
    for_each_operand(trace_, trace_.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
      if (is_quantized(storage) && has_ranges(encoding_of(plan_, storage)))
        coded_use_[use].ranges = add_ranges(storage);
      ++use;
    });
  }
}

// Does the storage's value become codes that are nobody's own when its forward ends?
bool CodedValues::is_coded_after_forward(TensorId storage) const {
  const std::size_t s = index(storage);
  if (!is_quantized(storage) || trace_[storage].storage != storage) return false;
  const std::uint32_t own_codes = plan_.quirks.codes_per_use ? needs_.uses[s] : 0;
  return recovery_.uses[s] > own_codes && !is_made_again(needs_, recovery_, storage);
}

// Mesa's released code makes a pass of its own for them, and what is written over needs one, too.
void CodedValues::note_extremes(const Op& op, Operation& operation) {
  if (plan_.quirks.codes_per_use || !row_of(op.kind).notes_min_max) return;
  for (const TensorId output : trace_.outputs(op)) {
    if (needs_.overwritten_by[index(output)] != no_op || !is_coded_after_forward(output)) continue;
    Coded& coded = coded_[index(output)];
    if (coded.ranges == no_instance) continue;
    operation.write(next_ranges(coded.ranges));
    if (is_coded_in_passing(encoding_of(plan_, output)))
      operation.write(coded.codes = add_codes(output));
  }
}

void CodedValues::quantize_operands(std::size_t op) {
  if (!plan_.quirks.codes_per_use) return;
  std::uint32_t use = first_use_[op];
  for_each_operand(trace_, trace_.ops[op], needs_.saved[op], [&](TensorId storage, TensorId) {
    if (is_quantized(storage)) {
      quantize(storage, coded_use_[use]);
      values_.count_read(storage);
    }
    ++use;
  });
}

void CodedValues::read(TensorId storage, Operation& operation) const {
  read(coded_[index(storage)], operation);
}

void CodedValues::read(const Coded& coded, Operation& operation) {
  operation.read(coded.codes);
  if (coded.ranges != no_instance) operation.read(coded.ranges);
}

void CodedValues::release(TensorId storage) {
  const InstanceId codes = std::exchange(coded_[index(storage)].codes, no_instance);
  if (codes != no_instance) graph_.release(codes);
}

void CodedValues::release_use(std::uint32_t use) {
  graph_.release(std::exchange(coded_use_[use].codes, no_instance));
}

InstanceId CodedValues::add_ranges(TensorId storage) {
  return graph_.add({.size = size_of_ranges(encoding_of(plan_, storage), trace_[storage].shape),
                     .tensor = storage,
                     .role = Role::Ranges,
                     .persistent = true,
                     .encoding = plan_.decisions[index(storage)].encoding});
}

InstanceId CodedValues::add_codes(TensorId storage) {
  return graph_.add({.size = size_of_codes(encoding_of(plan_, storage), trace_[storage].shape),
                     .tensor = storage,
                     .role = Role::Codes,
                     .encoding = plan_.decisions[index(storage)].encoding});
}

// Ranges run: each quantization is over the one before, in this step or the last.
InstanceId CodedValues::next_ranges(InstanceId& ranges) {
  CHECK(ranges != no_instance);
  return ranges = graph_.add_over(ranges);
}

void CodedValues::quantize(TensorId storage, Coded& coded) {
  operation_.clear();
  operation_.read(values_.of(storage));
  add_copy_by_group(storage);
  operation_.write(coded.codes = add_codes(storage));
  if (coded.ranges != no_instance) operation_.write(next_ranges(coded.ranges));
  graph_.append(Task::Quantize, Lane::Compute, needs_.producer[index(storage)], operation_);
}

void CodedValues::dequantize(const Coded& coded, TensorId storage, Lane lane) {
  operation_.clear();
  read(coded, operation_);
  add_copy_by_group(storage);
  operation_.write(values_.write(storage));
  graph_.append(Task::Dequantize, lane, needs_.producer[index(storage)], operation_);
}

// Mesa's published code makes room for the values in the order of their groups first.
void CodedValues::add_copy_by_group(TensorId storage) {
  if (!plan_.quirks.copies_by_group) return;
  operation_.write(graph_.add({.size = size(trace_[storage]),
                               .tensor = storage,
                               .role = Role::Temporary,
                               .category = Category::Temporary}));
}

}  // namespace tidemark
