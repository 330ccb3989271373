// Names outlive what they were made of, and every copy of their trace keeps them.
#include "traces/name_pool.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/small_models.h"
#include "traces/presets.h"

namespace tidemark::name_pool_test {
namespace {

std::string long_text(std::size_t i) { return "blocks." + std::to_string(i) + ".attention.query"; }

TEST(NamePool, CopiesWhatItIsGiven) {
  NamePool pool;
  std::string text = "blocks.0";
  const Name name = pool.add(text);
  text = "others.9";
  EXPECT_EQ(name, "blocks.0");
  EXPECT_EQ(pool.add(""), "");
}

// Blocks grow from 1 KiB; 10,000 names of 26 bytes are in many.
TEST(NamePool, MovesNoNameWhenItGrows) {
  NamePool pool;
  std::vector<Name> names;
  for (std::size_t i = 0; i < 10'000; ++i) names.push_back(pool.add(long_text(i)));
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], long_text(i));
}

TEST(NamePool, TakesANameThatIsLargerThanItsBlocks) {
  NamePool pool;
  const std::string text(std::size_t{3} << 20, 'x');
  const Name before = pool.add("before"), large = pool.add(text), behind = pool.add("behind");
  EXPECT_EQ(before, "before");
  EXPECT_EQ(large, text);
  EXPECT_EQ(behind, "behind");
}

// Both go on in blocks of their own: what one adds is not written over by the other.
TEST(NamePool, IsNotWrittenOverByItsCopy) {
  NamePool pool;
  const Name first = pool.add("first");
  NamePool copy = pool;
  const Name of_pool = pool.add("of the pool"), of_copy = copy.add("of the copy");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(of_pool, "of the pool");
  EXPECT_EQ(of_copy, "of the copy");
}

TEST(NamePool, IsNotWrittenOverByWhatItWasMovedFrom) {
  NamePool pool;
  pool.add("first");
  NamePool moved = std::move(pool);
  const Name of_moved = moved.add("moved");
  const Name of_old = pool.add("anew!");  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_EQ(of_moved, "moved");
  EXPECT_EQ(of_old, "anew!");
}

// Under the address sanitizer this reads freed memory if a pool does not share.
TEST(NamePool, KeepsTheNamesOfAnotherAlive) {
  NamePool pool;
  Name name;
  {
    NamePool other;
    name = other.add(long_text(7));
    pool.share(other);
  }
  for (std::size_t i = 0; i < 100; ++i) NamePool().add(long_text(i));
  EXPECT_EQ(name, long_text(7));
}

TEST(NamePool, GivesAnOpAndItsResultOneName) {
  const Trace trace = build_trace(small_gpt2(), {.batch = 1});
  std::size_t shared = 0;
  for (const Op& op : trace.ops) {
    const Tensor& result = trace[trace.outputs(op)[0]];
    if (result.name == op.name) shared += result.name.data() == op.name.data() ? 1u : 0u;
  }
  EXPECT_GT(shared, trace.ops.size() / 2);
}

TEST(NamePool, LeavesATraceEqualToItsCopyWhateverBecomesOfIt) {
  const Model model = small_gpt2();
  std::optional<Trace> trace = build_trace(model, {.batch = 1});
  const Trace copy = *trace;
  trace.reset();
  EXPECT_EQ(copy, build_trace(model, {.batch = 1}));
}

}  // namespace
}  // namespace tidemark::name_pool_test
