// Asks for the kernel of every pass, op and formula, and of both kinds of codes.
#include "tests/emulation/leading_call.h"

#include <unordered_map>

#include "kernels/cpu/workspace.h"
#include "traces/formula.h"

namespace tidemark {
namespace {

std::unordered_map<CpuKernel, LeadingCall> leading_calls() {
  std::unordered_map<CpuKernel, LeadingCall> found;
  Call call;
  const auto look = [&](OpKind kind, Formula formula) {
    call.kind = kind, call.formula = formula;
    if (const CpuKernel kernel = cpu::kernel_of(call))
      found.try_emplace(kernel, LeadingCall{call.pass, kind, formula});
  };
  for (const DType codes : {DType::UInt8, DType::Float8})
    for (const auto& pass : passes) {
      call.pass = pass.value;
      call.inputs = call.outputs = {absent({}, codes)};
      for (const OpRow& op : op_rows) look(op.value, Formula::None);
      for (const auto& formula : formulas) look(OpKind::Opaque, formula.value);
    }
  return found;
}

}  // namespace

const LeadingCall* leading_call(CpuKernel kernel) {
  static const auto calls = leading_calls();
  const auto found = calls.find(kernel);
  return found == calls.end() ? nullptr : &found->second;
}

}  // namespace tidemark
