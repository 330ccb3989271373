// Meshes: read, written, checked, and fitted to a number of GPUs.
#include "traces/mesh.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/error.h"
#include "traces/sharding.h"

namespace tidemark::mesh_test {
namespace {

template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Mesh, IsReadInAnyOrderAndWrittenInItsOwn) {
  const Mesh mesh = parse_mesh("tp=2,dp=4,ep=4");
  EXPECT_EQ(mesh[Axis::Tensor], 2);
  EXPECT_EQ(mesh[Axis::Data], 4);
  EXPECT_EQ(mesh.experts, 4);
  EXPECT_EQ(to_text(mesh), "dp=4,tp=2,ep=4");
  EXPECT_EQ(parse_mesh(to_text(mesh)), mesh);
  EXPECT_EQ(to_text(Mesh()), "1");
  EXPECT_EQ(parse_mesh("1"), Mesh());
}

// As many ranks as tp cut an expert unless etp says that fewer do.
TEST(Mesh, SaysHowManyRanksCutAnExpert) {
  const Mesh whole = parse_mesh("etp=1,tp=2,dp=4,ep=8");
  EXPECT_EQ(whole.ranks_of_expert(), 1);
  EXPECT_EQ(to_text(whole), "dp=4,tp=2,ep=8,etp=1");
  EXPECT_EQ(parse_mesh(to_text(whole)), whole);
  const Mesh half = parse_mesh("dp=4,tp=4,ep=8,etp=2");
  EXPECT_EQ(half.ranks_of_expert(), 2);
  EXPECT_EQ(to_text(half), "dp=4,tp=4,ep=8,etp=2");
  EXPECT_EQ(parse_mesh("dp=4,tp=2,ep=4,etp=2"), parse_mesh("dp=4,tp=2,ep=4"));
  EXPECT_EQ(parse_mesh("dp=4,tp=2,ep=4").ranks_of_expert(), 2);
  EXPECT_EQ(to_text(parse_mesh("etp=1")), "etp=1");
}

TEST(Mesh, ExpertsAreSharedAmongReplicasOrAllRanksOfAStage) {
  const Mesh cut = parse_mesh("pp=2,dp=4,cp=3,tp=2,ep=4");
  EXPECT_EQ(cut.expert_ranks(), 4 * 3);
  const Mesh whole = parse_mesh("pp=2,dp=4,cp=3,tp=2,ep=8,etp=1");
  EXPECT_EQ(whole.expert_ranks(), 4 * 3 * 2);
  EXPECT_EQ(parse_mesh("pp=2,dp=4,cp=3,tp=4,ep=8,etp=2").expert_ranks(), 4 * 3 * 2);
}

TEST(Mesh, GpusAreTheProductAndStridesThatOfInnerAxes) {
  const Mesh mesh = parse_mesh("pp=2,dp=3,cp=4,tp=5,ep=6");
  EXPECT_EQ(mesh.gpus(), 2 * 3 * 4 * 5);  // experts lie among dp · cp
  EXPECT_EQ(mesh.stride(Axis::Tensor), 1);
  EXPECT_EQ(mesh.stride(Axis::Data), 4 * 5);
  EXPECT_EQ(mesh.stride(Axis::Pipeline), 3 * 4 * 5);
}

TEST(Mesh, MistakesAreToldWithWhatIsLegal) {
  const auto error = [](std::string_view text) { return error_of([=] { parse_mesh(text); }); };
  EXPECT_EQ(error("dq=2"),
            "mesh: unknown axis 'dq' (did you mean 'dp'? known: pp, dp, cp, tp, ep, etp)");
  EXPECT_EQ(error("dp"), "mesh: 'dp' is no axis with its size (as in dp=4,tp=2)");
  EXPECT_EQ(error("dp=0"), "mesh: dp: '0' is not a whole number from 1 to 1048576");
  EXPECT_EQ(error("dp=2,dp=2"), "mesh: dp is named twice (give it once)");
  EXPECT_EQ(error("dp=1048576,tp=2"), "mesh: more than 1048576 GPUs");
  EXPECT_EQ(error("dp=8,ep=3"),
            "mesh: ep=3 does not divide the 8 ranks of dp · cp (nearest: ep=2)");
  EXPECT_EQ(error("dp=4,tp=2,ep=3,etp=1"),
            "mesh: ep=3 does not divide the 8 ranks of dp · cp · tp (nearest: ep=2)");
  EXPECT_EQ(error("dp=4,tp=4,ep=3,etp=2"),
            "mesh: ep=3 does not divide the 8 ranks of dp · cp · tp / etp (nearest: ep=2)");
  EXPECT_EQ(error("dp=4,tp=4,ep=2,etp=3"),
            "mesh: etp=3 does not divide the 4 ranks of tp (nearest: etp=2)");
  EXPECT_EQ(error("dp=4,tp=4,etp=2"),
            "mesh: etp=2 is of experts that ranks share (give ep=2 or more, or leave etp=2 out)");
  EXPECT_EQ(error("dp=4,tp=2,etp=1"),
            "mesh: etp=1 is of experts that ranks share (give ep=2 or more, or leave etp=1 out)");
  EXPECT_NE(error(""), "");
}

TEST(Mesh, IsFittedToTheGpus) {
  EXPECT_EQ(to_text(fitted({}, 8, false)), "dp=8");
  EXPECT_EQ(fitted(parse_mesh("dp=4,tp=2"), 8, true), parse_mesh("dp=4,tp=2"));
  EXPECT_EQ(error_of([] { fitted(parse_mesh("dp=3,tp=2"), 8, true); }),
            "--mesh dp=3,tp=2 is of 6 GPUs, and --gpus says 8 (nearest: --mesh dp=4,tp=2)");
}

// 12 GPUs and tp=5: of the divisors of 12, 4 and 6 are as near, and the smaller is taken.
TEST(Mesh, TheNearestMeshKeepsInnerAxesFirst) {
  EXPECT_EQ(error_of([] { fitted(parse_mesh("dp=2,tp=5"), 12, true); }),
            "--mesh dp=2,tp=5 is of 10 GPUs, and --gpus says 12 (nearest: --mesh dp=3,tp=4)");
}

TEST(Mesh, TheNearestMeshHasExpertsThatItsRanksCanCut) {
  EXPECT_EQ(error_of([] { fitted(parse_mesh("dp=6,tp=6,ep=3,etp=3"), 12, true); }),
            "--mesh dp=6,tp=6,ep=3,etp=3 is of 36 GPUs, and --gpus says 12 (nearest: --mesh "
            "dp=2,tp=6,ep=2,etp=3)");
}

TEST(Sharding, IsReadAndWrittenWithItsOptions) {
  for (const char* text :
       {"ddp", "fsdp2", "ddp:bucket-view", "ddp:bucket-view,bucket-mb=50", "fsdp2:no-reshard",
        "megatron", "megatron:whole-states,overlap,narrow-gradients", "megatron:no-fusion",
        "megatron:instances=2", "fsdp2:no-reshard,shard=8", "fsdp1", "fsdp1:no-reshard", "zero1",
        "zero2:overlap", "zero1:reduce-bucket=1000", "zero3",
        "zero3:no-overlap,prefetch=0,max-live=1,reuse=2,persistence=3"})
    EXPECT_EQ(to_text(parse_sharding(text)), text);
  EXPECT_FALSE(parse_sharding("fsdp2:no-reshard").reshards);
  EXPECT_TRUE(parse_sharding("zero3").overlaps);
}

TEST(Sharding, CountsMayBeWrittenAsDeepSpeedsAre) {
  EXPECT_EQ(parse_sharding("zero2:reduce-bucket=5e7").reduce_bucket, 50'000'000);
  EXPECT_EQ(to_text(parse_sharding("zero2:reduce-bucket=5e8")), "zero2");
  for (const char* text : {"5e", "5e-1", "e8", "1e99", "-5"})
    EXPECT_NE(error_of([=] {
                parse_sharding(fmt::format("zero2:reduce-bucket={}", text));
              }).find("is not a whole number from 1 to 1000000000000"),
              std::string::npos)
        << text;
}

TEST(Sharding, MistakesAreTold) {
  const auto error = [](std::string_view text) { return error_of([=] { parse_sharding(text); }); };
  EXPECT_EQ(error("fsdp"),
            "unknown sharding 'fsdp' (did you mean 'fsdp2'? known: ddp, fsdp2, megatron, zero1, "
            "zero2, zero3, fsdp1)");
  EXPECT_EQ(error("fsdp2:bucket-view"),
            "shard: no option 'bucket-view' (fsdp2 has no-reshard and shard=N)");
  EXPECT_EQ(error("ddp:bucket-mb=0"),
            "shard: bucket-mb: '0' is not a whole number from 1 to 1048576");
  EXPECT_EQ(error("megatron:instances=0"),
            "shard: instances: '0' is not a whole number from 1 to 1048576");
}

TEST(PipelineSchedule, IsReadAndWrittenWithItsOptions) {
  for (const char* text : {"1f1b", "gpipe", "interleaved:v=3", "1f1b:blocks=2-4-4-2",
                           "interleaved:v=2,blocks=0-1-1-0", "zb-h1", "zb-h2:blocks=3-1", "zb-v"})
    EXPECT_EQ(to_text(parse_schedule(text)), text);
  EXPECT_EQ(parse_schedule("interleaved").chunks, 2);
  EXPECT_EQ(parse_schedule("zb-v").chunks, 2);
}

TEST(PipelineSchedule, MistakesAreTold) {
  const auto error = [](std::string_view text) { return error_of([=] { parse_schedule(text); }); };
  EXPECT_EQ(error("interleaved:v=1"), "schedule: v= '1' is not a whole number from 2 to 1024");
  EXPECT_EQ(error("1f1b:v=2"),
            "schedule: no option 'v=2' (blocks=2-4-4-2 says how many blocks stages have, "
            "interleaved:v=2 how many chunks, and group=6 how many micro-batches go through one "
            "before the next)");
  EXPECT_EQ(error("gpipe:blocks=2-x"),
            "schedule: blocks= 'x' is not a whole number from 0 to 1024");
}

TEST(UnevenStages, HaveTheirDifferenceAtTheEnds) {
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(uneven_stages(61, 8), Counts({7, 8, 8, 8, 8, 8, 8, 6}));
  EXPECT_EQ(uneven_stages(5, 2), Counts({3, 2}));
  EXPECT_EQ(uneven_stages(7, 3), Counts({2, 3, 2}));
  EXPECT_EQ(uneven_stages(5, 4), Counts({2, 1, 1, 1}));  // neither end may be empty
  EXPECT_EQ(uneven_stages(43, 16), Counts());  // 3 for each between leave one, 2 leave fifteen
  EXPECT_EQ(uneven_stages(12, 4), Counts());
  EXPECT_EQ(uneven_stages(3, 4), Counts());
  EXPECT_EQ(uneven_stages(3, 1), Counts());
}

TEST(UnevenStages, AreAllBlocksAndNearlyAlike) {
  int found = 0;
  for (std::int64_t blocks = 1; blocks <= 130; ++blocks)
    for (std::int64_t stages = 1; stages <= 40; ++stages) {
      const std::vector<std::int64_t> counts = uneven_stages(blocks, stages);
      if (counts.empty()) continue;
      ++found;
      SCOPED_TRACE(testing::Message() << blocks << " blocks, " << stages << " stages");
      ASSERT_EQ(std::ssize(counts), stages);
      EXPECT_NE(blocks % stages, 0);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{}), blocks);
      EXPECT_EQ(std::set(counts.begin() + 1, counts.end() - 1).size(), stages > 2 ? 1u : 0u);
      EXPECT_GE(counts.back(), 1);
      EXPECT_LE(counts.back(), counts.front());
      EXPECT_LE(counts.front() - counts.back(), 1);
      if (stages > 2) {
        EXPECT_LE(counts.front(), counts[1] + 1);
      }
    }
  EXPECT_GT(found, 1000);
}

}  // namespace
}  // namespace tidemark::mesh_test
