// What a search shows is what simulating every layout would have shown.
#include "analysis/layouts/layout_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "analysis/layouts/incumbents.h"
#include "base/error.h"
#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"
#include "traces/models/config_reader.h"

namespace tidemark::layout_search_test {
namespace {

LayoutRequest small_request(std::int64_t gpus, std::int64_t global_batch) {
  LayoutRequest request;
  request.scenario.model = small_llama(4);
  request.scenario.step.precision = Precision::Bf16;
  request.scenario.step.master_weights = true;
  request.scenario.device = device_of(find_cluster("dgx-h100"));
  request.scenario.strategies = {parse_strategy("vanilla"), parse_strategy("checkpoint")};
  request.gpus = gpus;
  request.global_batch = global_batch;
  return request;
}

Model gpt_of_further_tokens(std::int64_t depth) {
  const std::string config = fmt::format(
      R"({{"model_type": "megatron-gpt", "num_layers": {}, "hidden_size": 64, "vocab_size": 256,
          "num_attention_heads": 4, "ffn_hidden_size": 96, "max_position_embeddings": 16,
          "position_embedding_type": "rope", "mtp_num_layers": 1}})",
      depth);
  return small_model("small-gpt", read_model_config(config, "config.json").config);
}

std::int64_t sum_of(const LayoutCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{});
}

std::int64_t cut_by(const LayoutCounts& counts, LayoutRule rule) {
  return counts[static_cast<std::size_t>(rule)];
}

// Everything that may be laid out, simulated.
std::vector<FoundLayout> all_that_fit(const LayoutRequest& request) {
  std::vector<FoundLayout> all;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts) {
    if (!sharing_defect(step_in(request, layout)).empty()) continue;
    try {
      const Report report = report_in(request, layout);
      if (!report.applies || !report.fits) continue;
      FoundLayout& found = all.emplace_back();
      found.layout = layout;
      found.key = key_of(request, layout);
      found.numbers.step = report.step;
      found.numbers.allocated = report.allocated_peak;
    } catch (const InputError&) {
    }
  }
  return all;
}

std::vector<std::string> keys_of(const std::vector<FoundLayout>& found) {
  std::vector<std::string> keys;
  for (const FoundLayout& one : found) keys.push_back((one.is_on_front ? "*" : "") + one.key);
  return keys;
}

TEST(LayoutSpace, DealsOutGpusAndSamples) {
  const LayoutRequest request = small_request(8, 16);
  const LayoutSpace space = enumerate_layouts(request);
  std::set<std::string> keys;
  for (const MeshLayout& layout : space.layouts) {
    EXPECT_EQ(layout.mesh.gpus(), 8);
    EXPECT_EQ(layout.batch * layout.micro_batches * layout.mesh[Axis::Data], 16);
    keys.insert(key_of(request, layout));
  }
  EXPECT_EQ(keys.size(), space.layouts.size());
  EXPECT_EQ(sum_of(space.cut) + static_cast<std::int64_t>(space.layouts.size()), space.all);
}

TEST(LayoutSpace, HasTheContextRanksThatAreAskedFor) {
  LayoutRequest request = small_request(8, 16);
  request.scenario.step.mesh[Axis::Context] = 2;
  const LayoutSpace space = enumerate_layouts(request);
  ASSERT_FALSE(space.layouts.empty());
  for (const MeshLayout& layout : space.layouts) {
    EXPECT_EQ(layout.mesh[Axis::Context], 2);
    EXPECT_EQ(layout.mesh.gpus(), 8);
  }
  request.scenario.step.mesh[Axis::Context] = 3;
  EXPECT_THROW(enumerate_layouts(request), UsageError);
}

// Five blocks: two stages get three and two, four get two, one, one and one; chunks none.
TEST(LayoutSpace, HasStagesOfUnequalNumbersWhereNoneAreEqual) {
  LayoutRequest request = small_request(4, 16);
  request.scenario.model = small_llama(5);
  request.schedules = {parse_schedule("1f1b"), parse_schedule("interleaved:v=2")};
  std::set<std::string> schedules;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts) {
    if (layout.mesh[Axis::Pipeline] == 1) {
      EXPECT_EQ(layout.uneven, 0);
      continue;
    }
    schedules.insert(to_text(*step_in(request, layout).schedule));
    EXPECT_THAT(key_of(request, layout),
                testing::HasSubstr(" " + to_text(*step_in(request, layout).schedule) + " "));
  }
  EXPECT_THAT(schedules, testing::ElementsAre("1f1b:blocks=2-1-1-1", "1f1b:blocks=3-2"));
  for (const FoundLayout& found : search_layouts(request).found)
    EXPECT_EQ(report_in(request, found.layout).step, found.numbers.step);
}

// Of 16 blocks and one of a further token beside those of the last stage two stages get eight each,
// or nine and seven; four get four each, or 4, 5, 5 and 2.
TEST(LayoutSpace, GivesTheStageOfFurtherTokensFewerBlocks) {
  LayoutRequest request = small_request(4, 16);
  request.scenario.model = gpt_of_further_tokens(16);
  request.scenario.step.framework = "megatron";
  request.shardings = {parse_sharding("megatron")};
  request.schedules = {parse_schedule("1f1b"), parse_schedule("interleaved:v=2")};
  std::set<std::string> schedules;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts)
    if (layout.mesh[Axis::Pipeline] > 1)
      schedules.insert(to_text(*step_in(request, layout).schedule));
  EXPECT_THAT(schedules, testing::ElementsAre("1f1b", "1f1b:blocks=4-5-5-2", "1f1b:blocks=9-7",
                                              "interleaved:v=2"));
  std::int64_t others = 0;
  const auto expected = best_of(all_that_fit(request), request.top, others);
  EXPECT_EQ(keys_of(search_layouts(request).found), keys_of(expected));
}

// Four blocks: eight stages get none each, four stages of two chunks neither.
TEST(LayoutSpace, CountsWhatRulesCut) {
  LayoutRequest request = small_request(8, 16);
  request.shardings = {parse_sharding("ddp")};
  request.schedules = {parse_schedule("1f1b"), parse_schedule("interleaved:v=2")};
  request.scenario.strategies.resize(1);
  request.micro_batch = 1;
  const LayoutSpace space = enumerate_layouts(request);
  // Ten meshes of three axes, each with and without --sp and with two schedules; but four have
  // tp=1, in which --sp is nothing (two schedules each), and four have pp=1, in which schedules are
  // alike: of tp=1 once, of the others with and without --sp.
  EXPECT_EQ(space.all, 10 * 2 * 2 - (4 * 2 + 1 + 3 * 2));
  // pp=8 with either schedule; pp=4 with chunks: tp=1 once, tp=2 with and without --sp.
  EXPECT_EQ(cut_by(space.cut, LayoutRule::Blocks), 2 + 1 + 2);
  EXPECT_EQ(cut_by(space.cut, LayoutRule::Batch), 0);
}

// Four blocks dealt out to two stages: neither four stages, nor other sums.
TEST(LayoutSpace, BlocksDealtOutByHandAreForOneNumberOfStages) {
  LayoutRequest request = small_request(4, 16);
  request.schedules = {parse_schedule("1f1b:blocks=1-3")};
  for (const MeshLayout& layout : enumerate_layouts(request).layouts)
    EXPECT_LE(layout.mesh[Axis::Pipeline], 2);
  EXPECT_GT(cut_by(enumerate_layouts(request).cut, LayoutRule::Blocks), 0);
  const LayoutSearch search = search_layouts(request);
  EXPECT_TRUE(std::ranges::any_of(search.found,
                                  [](const FoundLayout& found) {
                                    return found.layout.mesh[Axis::Pipeline] == 2;
                                  }) ||
              cut_by(search.cut, LayoutRule::Bound) + cut_by(search.cut, LayoutRule::Slower) > 0);
  request.schedules = {parse_schedule("1f1b:blocks=6-6")};
  for (const MeshLayout& layout : enumerate_layouts(request).layouts)
    EXPECT_EQ(layout.mesh[Axis::Pipeline], 1);
}

TEST(LayoutSpace, OneStageHasNoSchedule) {
  LayoutRequest request = small_request(2, 2);
  request.scenario.step.schedule = parse_schedule("gpipe");
  EXPECT_FALSE(step_in(request, MeshLayout()).schedule);
}

TEST(LayoutSpace, TensorParallelRanksShareANode) {
  LayoutRequest request = small_request(16, 16);
  for (const MeshLayout& layout : enumerate_layouts(request).layouts)
    EXPECT_LE(layout.mesh[Axis::Tensor], 8);
  EXPECT_GT(cut_by(enumerate_layouts(request).cut, LayoutRule::Node), 0);
}

TEST(LayoutSearch, ShowsWhatSimulatingAllWouldShow) {
  for (const auto& [top, context] : {std::pair(1U, 1), std::pair(5U, 1), std::pair(5U, 2)}) {
    LayoutRequest request = small_request(8, 8);
    request.top = top;
    request.scenario.step.mesh[Axis::Context] = context;
    std::int64_t others = 0;
    const auto expected = best_of(all_that_fit(request), top, others);
    const LayoutSearch search = search_layouts(request);
    EXPECT_EQ(keys_of(search.found), keys_of(expected));
    EXPECT_EQ(sum_of(search.cut) + static_cast<std::int64_t>(search.found.size()), search.all);
    EXPECT_EQ(cut_by(search.cut, LayoutRule::Slower) + cut_by(search.cut, LayoutRule::Bound),
              others);
  }
}

// Of eight experts, what divides them and the replicas; only Megatron-LM's buffers know of them.
TEST(LayoutSearch, TriesAllRanksThatCanShareExperts) {
  LayoutRequest request = small_request(4, 4);
  request.scenario.model = small_mixture();
  request.scenario.step.framework = "megatron";
  request.shardings = {parse_sharding("ddp"), parse_sharding("megatron")};
  std::set<std::int64_t> tried;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts)
    tried.insert(layout.mesh.experts);
  EXPECT_EQ(tried, (std::set<std::int64_t>{1, 2, 4}));
  std::int64_t others = 0;
  const auto expected = best_of(all_that_fit(request), request.top, others);
  const LayoutSearch search = search_layouts(request);
  EXPECT_EQ(keys_of(search.found), keys_of(expected));
}

// Whole experts are shared among tensor-parallel ranks, too; where there is one, nothing changes.
TEST(LayoutSearch, TriesWholeExpertsOfAllRanksOfAStage) {
  LayoutRequest request = small_request(4, 4);
  request.scenario.model = small_mixture();
  request.scenario.step.framework = "megatron";
  request.scenario.step.sequence_parallel = true;
  request.scenario.step.mesh.expert_tensor = 1;
  request.shardings = {parse_sharding("megatron")};
  std::set<std::pair<std::int64_t, std::int64_t>> tried;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts) {
    EXPECT_EQ(layout.mesh.expert_tensor, layout.mesh[Axis::Tensor] > 1 ? 1 : 0);
    if (layout.mesh[Axis::Pipeline] == 1)
      tried.insert({layout.mesh[Axis::Tensor], layout.mesh.experts});
  }
  EXPECT_EQ(tried, (std::set<std::pair<std::int64_t, std::int64_t>>{
                       {1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 2}, {4, 4}}));
  std::int64_t others = 0;
  const auto expected = best_of(all_that_fit(request), request.top, others);
  EXPECT_EQ(keys_of(search_layouts(request).found), keys_of(expected));
}

// A search makes totals only; what compare() shows is the same.
TEST(LayoutSearch, HasTheNumbersOfTheWholeReport) {
  const LayoutSearch search = search_layouts(small_request(8, 16));
  ASSERT_FALSE(search.found.empty());
  for (const FoundLayout& found : search.found) {
    const Report report = report_in(search.request, found.layout);
    const LayoutNumbers& numbers = found.numbers;
    EXPECT_EQ(numbers.allocated, report.allocated_peak) << found.key;
    EXPECT_EQ(numbers.at_rest, report.allocated_at_rest) << found.key;
    EXPECT_EQ(numbers.reserved, report.reserved_peak) << found.key;
    EXPECT_EQ(numbers.stage, report.rank.value_or(RankClass()).stage) << found.key;
    EXPECT_EQ(numbers.step, report.step) << found.key;
    EXPECT_EQ(numbers.exposed, report.communication.exposed) << found.key;
    EXPECT_EQ(numbers.bubble, report.bubble) << found.key;
    EXPECT_EQ(numbers.throughput, report.throughput) << found.key;
    EXPECT_EQ(numbers.mfu, report.mfu) << found.key;
  }
}

TEST(LayoutSearch, EachOfTheFrontNeedsLessThanAllThatAreFaster) {
  const LayoutSearch search = search_layouts(small_request(4, 8));
  std::optional<Bytes> least;
  for (const FoundLayout& found : search.found) {
    EXPECT_EQ(found.is_on_front, !least || found.numbers.allocated < *least) << found.key;
    if (found.is_on_front) least = found.numbers.allocated;
  }
}

TEST(LayoutSearch, NamesTheNearestWhereNothingFits) {
  LayoutRequest request = small_request(2, 2);
  request.scenario.budget = Bytes{1000};
  const LayoutSearch search = search_layouts(request);
  EXPECT_TRUE(search.found.empty());
  EXPECT_GT(cut_by(search.cut, LayoutRule::Memory), 0);
  ASSERT_TRUE(search.nearest);
  EXPECT_FALSE(search.nearest->numbers.fits);
  EXPECT_EQ(search.nearest->numbers.short_by, search.nearest->numbers.allocated - Bytes{1000});
  EXPECT_FALSE(search.nearest_peak.empty());
}

// Two GPUs with micro-batches of three samples take multiples of six.
TEST(LayoutSearch, NamesTheNearestGlobalBatchWhereNoneIsDealtOut) {
  LayoutRequest request = small_request(2, 2);
  request.micro_batch = 3;
  for (const auto& [asked, nearest] :
       std::array{std::pair{1, 6}, std::pair{8, 6}, std::pair{10, 12}, std::pair{11, 12}}) {
    request.global_batch = asked;
    EXPECT_EQ(search_layouts(request).nearest_global_batch, nearest) << asked;
  }
  request.global_batch = 12;
  EXPECT_FALSE(search_layouts(request).nearest_global_batch);
}

// The first waves ask for times alone.
TEST(LayoutSearch, StopsBetweenWaves) {
  int kept = 0;
  const LayoutSearch search =
      search_layouts(small_request(8, 8), {.tell = {},
                                           .is_stopped = [&] { return kept > 0; },
                                           .known = {},
                                           .keep = [&](const auto&) { ++kept; }});
  EXPECT_TRUE(search.is_stopped);
  EXPECT_GT(search.simulated, 0);
  EXPECT_GT(cut_by(search.cut, LayoutRule::Unasked), 0);
  EXPECT_FALSE(search.found.empty());
}

// So all that are faster are known before its memory, which takes the longest, is asked for.
TEST(LayoutSearch, AsksForMemoryInTheOrderOfTime) {
  std::vector<Nanoseconds> asked;
  const LayoutWatch watch = {
      .tell = {}, .is_stopped = {}, .known = {}, .keep = [&](const auto& made) {
        asked.push_back(made.numbers.step);
      }};
  const LayoutSearch search = search_layouts(small_request(8, 16), watch);
  EXPECT_GE(asked.size(), search.found.size());
  EXPECT_TRUE(std::ranges::is_sorted(asked));
}

// However many cores time something meanwhile: simulated is what those that take no longer than its
// bound do not cut.
TEST(LayoutSearch, CountsWhatOneCoreWouldSimulate) {
  LayoutRequest request = small_request(8, 16);
  request.top = 1000;
  const std::vector<FoundLayout> all = search_layouts(request).found;
  request.top = 3;
  std::int64_t expected = 0;
  for (const MeshLayout& layout : enumerate_layouts(request).layouts) {
    const LayoutParts parts = parts_of(request, layout);
    if (!parts.refusal.empty() || !parts.tensor_refusal.empty() ||
        !sharing_defect(step_in(request, layout)).empty())
      continue;
    const LayoutBounds bounds = bounds_of(request, layout, parts);
    Incumbents before(request.top);
    for (const FoundLayout& found : all)
      if (found.numbers.step <= bounds.step) before.add(found.numbers);
    expected += before.cuts(bounds) ? 0 : 1;
  }
  const LayoutSearch search = search_layouts(request);
  EXPECT_EQ(search.simulated, expected);
  EXPECT_GT(cut_by(search.cut, LayoutRule::Bound), 0);
}

// What was found by a search that was stopped, or by parts, changes nothing, counts included.
TEST(LayoutSearch, ShowsTheSameWhateverIsKnownBefore) {
  const LayoutRequest request = small_request(8, 16);
  std::map<std::string, LayoutNumbers> all, some;
  for (const FoundLayout& found : search_layouts(request).found) all[found.key] = found.numbers;
  for (const auto& [key, numbers] : all)
    if (some.size() * 2 < all.size()) some[key] = numbers;
  const LayoutSearch alone = search_layouts(request);
  for (const auto* before : {&all, &some}) {
    const auto known = [&](const std::string& key) {
      const auto found = before->find(key);
      return found == before->end() ? nullptr : &found->second;
    };
    const LayoutSearch search =
        search_layouts(request, {.tell = {}, .is_stopped = {}, .known = known, .keep = {}});
    EXPECT_EQ(search.found, alone.found);
    EXPECT_EQ(search.cut, alone.cut);
    EXPECT_EQ(search.simulated, alone.simulated);
  }
}

// Nothing was looked at, so nothing is said to be too large.
TEST(LayoutSearch, KnowsNoNearestWhereItWasStopped) {
  const LayoutSearch search =
      search_layouts(small_request(4, 8), {.tell = {}, .is_stopped = [] { return true; }});
  EXPECT_TRUE(search.is_stopped);
  EXPECT_TRUE(search.found.empty());
  EXPECT_TRUE(search.nearest_peak.empty());
}

// Three key heads do not divide by two.
TEST(LayoutSearch, SaysWhyAModelIsNotCut) {
  LayoutRequest request = small_request(2, 2);
  auto& config = std::get<DecoderConfig>(request.scenario.model.config);
  config.heads = config.key_heads = 1;
  const LayoutSearch search = search_layouts(request);
  EXPECT_GT(cut_by(search.cut, LayoutRule::Tensor), 0);
  EXPECT_FALSE(search.tensor_refusal.empty());
}

// No number of tensor-parallel ranks shares Liger's kernels: that is no matter of heads.
TEST(LayoutSearch, CountsWhatNoRanksShareByItself) {
  LayoutRequest request = small_request(2, 2);
  request.scenario.step.liger = true;
  const LayoutSearch search = search_layouts(request);
  EXPECT_EQ(cut_by(search.cut, LayoutRule::Tensor), 0);
  EXPECT_EQ(search.tensor_refusal, "");
  ASSERT_EQ(search.undivided.size(), 1u);
  EXPECT_EQ(search.undivided.begin()->first,
            "--mesh: tp: Liger's kernels are not shared by tp ranks (leave --liger out)");
  EXPECT_EQ(search.undivided.begin()->second, cut_by(search.cut, LayoutRule::Undivided));
}

// Fused attention keeps no map that a selective checkpoint could recompute.
TEST(LayoutSearch, SaysWhyNoStrategyApplies) {
  LayoutRequest request = small_request(2, 2);
  request.scenario.strategies = {parse_strategy("checkpoint:selective")};
  const LayoutSearch search = search_layouts(request);
  EXPECT_TRUE(search.found.empty());
  EXPECT_FALSE(search.nearest);
  EXPECT_GT(cut_by(search.cut, LayoutRule::Strategy), 0);
  EXPECT_NE(search.strategy_refusal.find("attention"), std::string::npos)
      << search.strategy_refusal;
}

}  // namespace
}  // namespace tidemark::layout_search_test
