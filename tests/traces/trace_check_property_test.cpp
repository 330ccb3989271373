// Random damage: check() must survive whatever a trace holds, and what it accepts must read back
// from its file.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/traces/small_trace.h"
#include "traces/trace_json.h"

namespace tidemark::trace_check_property_test {
namespace {

class Damager {
 public:
  explicit Damager(std::uint64_t seed) : random_(seed) {}

 private:
  template <typename Items>
  auto& any(Items& items) {
    return items[below(std::size(items))];
  }
  void one_of(std::initializer_list<std::function<void()>> choices) {
    choices.begin()[below(choices.size())]();
  }
  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }

  /// Mostly in range, sometimes just outside, sometimes far away.
  std::uint32_t number(std::size_t range) {
    const std::uint32_t dice = below(8);
    if (dice == 0) return static_cast<std::uint32_t>(random_());
    return dice == 1 ? static_cast<std::uint32_t>(range) : below(range);
  }
  std::uint16_t count() { return static_cast<std::uint16_t>(number(20)); }
  std::int64_t dim() {
    constexpr std::int64_t dims[] = {-1, 0, 1, 2, 3, 4, 12, largest_size, std::int64_t{1} << 40};
    return any(dims);
  }

  void damage(Tensor& tensor, const Trace& t) {
    one_of({[&] {
              tensor.shape = Shape{dim(), dim()};
            },
            [&] { tensor.dtype = any(dtypes).value; },
            [&] { tensor.category = any(categories).value; },
            [&] { tensor.trainable = !tensor.trainable; },
            [&] { tensor.storage = TensorId{number(t.tensors.size())}; },
            [&] { tensor.held_until = OpId{number(t.ops.size())}; }});
  }
  void damage(Op& op, const Trace& t) {
    one_of({[&] { op.kind = any(op_rows).value; }, [&] { op.inputs = count(); },
            [&] { op.outputs = count(); }, [&] { op.attributes = count(); },
            [&] { op.first_operand = number(t.operands.size()); },
            [&] { op.block = static_cast<std::int32_t>(number(t.blocks.size() + 1)) - 1; },
            [&] { op.part = any(part_names).value; }, [&] { op.residual = !op.residual; },
            [&] { op.also_keeps = number(1u << 20); }, [&] { op.rng_key = number(10); },
            [&] { op.opaque = OpaqueId{number(t.opaque_rows.size() + 1)}; },
            [&] { op.line = LineId{static_cast<std::uint16_t>(number(t.lines.size() + 1))}; }});
  }
  void damage(OpaqueRow& row) {
    one_of({[&] { row.operation.clear(); }, [&] { row.gradients = number(4); },
            [&] { row.handed_on = number(4); }, [&] { row.saved = number(1u << 20); },
            [&] { row.written_over = number(4); }, [&] { row.quantized = number(1u << 20); },
            [&] { row.runs_once = !row.runs_once; }, [&] { row.math = any(dtypes).value; },
            [&] { row.forward.workspace = {dim()}; }, [&] { row.backward.flops = dim(); },
            [&] { row.backward.moved = Bytes{dim()}; },
            [&] { row.forward.kernels = static_cast<int>(number(10)); }});
  }
  void damage(Block& block, const Trace& t) {
    one_of({[&] { block.begin = OpId{number(t.ops.size())}; },
            [&] { block.end = OpId{number(t.ops.size() + 1)}; },
            [&] { block.input = TensorId{number(t.tensors.size())}; },
            [&] { block.stack = static_cast<std::int32_t>(number(3)) - 1; }});
  }

  std::mt19937_64 random_;

 public:
  void damage(Trace& t) {
    one_of({[&] { damage(any(t.tensors), t); }, [&] { damage(any(t.opaque_rows)); },
            [&] { damage(any(t.ops), t); }, [&] { damage(any(t.blocks), t); },
            [&] { any(t.operands) = TensorId{number(t.tensors.size())}; },
            [&] { any(t.attributes).key = any(attribute_keys).value; },
            [&] { t.loss = TensorId{number(t.tensors.size())}; }});
  }
};

/// Two of its linears are of no known kind.
Trace trace_with_opaque_ops() {
  Trace trace = small_trace();
  for (Op* op : {&trace.ops[4], &trace.ops[10]}) {
    op->kind = OpKind::Opaque;
    op->opaque = static_cast<OpaqueId>(trace.opaque_rows.size());
    trace.opaque_rows.push_back({.operation = "aten::addmm", .gradients = 7, .saved = 3});
  }
  return trace;
}

TEST(AnyDamage, IsFoundOrHarmless) {
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Damager damager(seed);
    Trace trace = trace_with_opaque_ops();
    for (std::uint64_t i = 0; i <= seed % 4; ++i) damager.damage(trace);
    const std::vector<std::string> defects = check(trace);
    for (const std::string& defect : defects) ASSERT_EQ(defect.front(), '/') << seed;
    if (!defects.empty()) continue;
    ++accepted;
    const std::string text = write_trace(trace);
    ASSERT_EQ(read_trace(text, "t.json"), trace) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(accepted, 100);  // otherwise nothing was tested but refusal
}

}  // namespace
}  // namespace tidemark::trace_check_property_test
