// When forward values go: with their last reader, or with what names them.
#include "simulator/graph/last_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/trace_builder.h"

namespace tidemark::last_uses_test {
namespace {

// x ─{ block: gelu ─► fc }─► tail; x is read by the block's first op alone.
Trace one_block(const char* framework) {
  TraceBuilder b("toy", "toy", {.precision = Precision::Bf16, .framework = framework});
  const TensorId x = b.linear("x", b.input("data", {6, 32}, DType::BFloat16), 32);
  b.begin_block("block", x, 0);
  const TensorId y = b.linear("fc", b.gelu("gelu", x), 32);
  b.end_block();
  return b.finish(b.mean("loss", b.gelu("tail", y)));
}

std::vector<std::string> gone_after(const Trace& trace, const char* op) {
  const TensorsByOp ends = last_forward_uses(trace, derive_needs(trace));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (std::string_view(trace.ops[i].name) == op)
      for (const TensorId tensor : ends(i)) names.emplace_back(trace[tensor].name);
  return names;
}

TEST(LastUses, ABlocksInputGoesWhenTheBlockReturns) {
  const Trace trace = one_block("transformers-4.57");
  EXPECT_THAT(gone_after(trace, "gelu"), testing::IsEmpty());
  EXPECT_THAT(gone_after(trace, "fc"), testing::ElementsAre("x", "gelu"));
  EXPECT_THAT(gone_after(trace, "tail"), testing::ElementsAre("fc"));
}

TEST(LastUses, NobodyNamesItWhereTheRulesHaveNoVariables) {
  EXPECT_THAT(gone_after(one_block("paper"), "gelu"), testing::ElementsAre("x"));
}

}  // namespace
}  // namespace tidemark::last_uses_test
