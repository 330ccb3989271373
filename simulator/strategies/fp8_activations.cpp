// Saved tensors in floats of eight bits, by COAT's granularity (arXiv 2410.19313, section 5): one
// scale for what products alone read, one for some neighbours each of all else, whose outliers
// would take the others' digits. COAT also computes the forward on such floats; here it is exact.
#include <fmt/format.h>

#include "simulator/needs.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

/// By tensor: is there an op beside products whose backward reads the storage?
std::vector<bool> read_beside_products(const Trace& trace, const Needs& needs) {
  std::vector<bool> is_read(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (is_product(row_of(trace.ops[i].kind).work)) continue;
    for_each_operand(trace, trace.ops[i], needs.saved[i],
                     [&](TensorId storage, TensorId) { is_read[index(storage)] = true; });
  }
  return is_read;
}

}  // namespace

Refusal keep_in_floats(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                       Plan& plan) {
  const std::vector<bool> may_be_coded = quantizable_storages(trace, needs);
  const std::vector<bool> has_groups = read_beside_products(trace, needs);
  const std::int64_t neighbours = arguments.number("group").value_or(float8_groups.front());
  bool any = false;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!may_be_coded[t] || plan.decisions[t].action != Action::Keep) continue;
    const Encoding encoding = has_groups[t] ? float8_encoding(trace.tensors[t].shape, neighbours)
                                            : float8_encoding_of_tensor();
    quantize(plan, static_cast<TensorId>(t), encoding,
             encoding.group == 0
                 ? std::string("kept in 8-bit floats, one scale for all")
                 : fmt::format("kept in 8-bit floats, a scale per {}", encoding.group));
    any = true;
  }
  return any ? Refusal() : "no op of this trace keeps a float tensor that may be kept in codes";
}

}  // namespace tidemark
