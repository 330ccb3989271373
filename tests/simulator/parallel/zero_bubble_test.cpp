// Zero-bubble schedules: their order is played by a walker of its own, in integers, and has the
// bubbles and the activations of the papers; stages keep what gradients of weights will read, and
// make each gradient once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "simulator/cost/cost_model.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/pipeline_clock.h"
#include "simulator/parallel/pipeline_order.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"

namespace tidemark::zero_bubble_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> all_schedules = {"zb-h1", "zb-h2", "zb-v"};

std::string text_of(const std::vector<StageAction>& actions, bool has_chunks) {
  std::string text;
  for (const StageAction& action : actions) {
    text += fmt::format("{}{}", "FBW"[static_cast<std::size_t>(action.work)], action.micro_batch);
    if (has_chunks) text += static_cast<char>('a' + action.chunk);
    text += ' ';
  }
  return text;
}

// Figures 2 and 3 of arXiv 2401.10241 have four stages and eight micro-batches; the last stage puts
// three gradients of weights off, or six. ZB-V is what ScheduleZBVZeroBubble of torch prints.
TEST(ZeroBubbleActions, AreThoseOfThePapers) {
  const auto actions = [](const char* schedule, std::int64_t stage, std::int64_t micro_batches) {
    return text_of(actions_of(parse_schedule(schedule), 4, stage, micro_batches), false);
  };
  EXPECT_EQ(actions("zb-h1", 0, 5), "F0 F1 F2 F3 B0 W0 F4 B1 W1 B2 W2 B3 W3 B4 W4 ");
  EXPECT_EQ(actions("zb-h1", 3, 5), "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 W2 W3 W4 ");
  EXPECT_EQ(actions("zb-h2", 0, 8),
            "F0 F1 F2 F3 F4 F5 F6 B0 W0 F7 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7 ");
  EXPECT_EQ(text_of(actions_of(parse_schedule("zb-v"), 2, 0, 3), true),
            "F0a F1a F2a F0b B0b W0b F1b B1b W1b B0a W0a F2b B2b W2b B1a W1a B2a W2a ");
  EXPECT_EQ(text_of(actions_of(parse_schedule("zb-v"), 2, 1, 3), true),
            "F0a F0b F1a F1b B0b W0b F2a B0a W0a F2b B1b W1b B1a B2b B2a W1a W2b W2a ");
}

struct Times {
  std::int64_t forward, backward, weights;
  std::int64_t of(StageWork work) const {
    return work == StageWork::Forward ? forward : work == StageWork::Backward ? backward : weights;
  }
};

// What a job does, found by looking every integer moment at who can begin something.
struct Walk {
  std::int64_t longest = 0;  // from a stage's first action to its last
  std::int64_t end = 0;
  std::vector<std::int64_t> in_flight;  // by stage: chunks that have begun and lack their weights
};

class Walker {
 public:
  Walker(const std::string& schedule, std::int64_t stages, std::int64_t micro_batches, Times times)
      : schedule_(parse_schedule(schedule)), stages_(stages), times_(times) {
    for (std::int64_t s = 0; s < stages; ++s)
      lists_.push_back(actions_of(schedule_, stages, s, micro_batches));
  }

  Walk run() {
    Walk walk;
    const auto count = static_cast<std::size_t>(stages_);
    std::vector<std::size_t> next(count);
    std::vector<std::int64_t> free(count), begin(count, -1), flying(count);
    walk.in_flight.resize(count);
    constexpr std::int64_t patience = 100'000;
    for (std::int64_t now = 0; now < patience; ++now) {
      bool all_done = true;
      for (std::size_t s = 0; s < count; ++s) {
        if (next[s] == lists_[s].size()) continue;
        all_done = false;
        const StageAction& action = lists_[s][next[s]];
        if (free[s] > now || !is_ready(s, action, now)) continue;
        ++next[s];
        if (begin[s] < 0) begin[s] = now;
        free[s] = now + times_.of(action.work);
        done_[{action.work, chunk_of(s, action.chunk), action.micro_batch}] = free[s];
        if (action.work == StageWork::Forward) ++flying[s];
        walk.in_flight[s] = std::max(walk.in_flight[s], flying[s]);
        if (action.work == StageWork::Weights) --flying[s];
        walk.longest = std::max(walk.longest, free[s] - begin[s]);
        walk.end = std::max(walk.end, free[s]);
      }
      if (all_done) return walk;
    }
    ADD_FAILURE() << "stages wait for each other";
    return walk;
  }

 private:
  using Key = std::tuple<StageWork, std::int64_t, std::int64_t>;

  std::int64_t chunk_of(std::size_t stage, std::int64_t chunk) const {
    const auto s = static_cast<std::int64_t>(stage);
    if (schedule_.chunks == 1) return s;
    return chunk == 0 ? s : 2 * stages_ - 1 - s;  // down the V and up again
  }

  bool is_ready(std::size_t s, const StageAction& action, std::int64_t now) const {
    const std::int64_t chunk = chunk_of(s, action.chunk), last = stages_ * schedule_.chunks - 1;
    const auto is_done = [&](StageWork work, std::int64_t of) {
      const auto found = done_.find({work, of, action.micro_batch});
      return found != done_.end() && found->second <= now;
    };
    if (action.work == StageWork::Weights) return is_done(StageWork::Backward, chunk);
    if (action.work == StageWork::Forward)
      return chunk == 0 || is_done(StageWork::Forward, chunk - 1);
    return is_done(StageWork::Forward, chunk) &&
           (chunk == last || is_done(StageWork::Backward, chunk + 1));
  }

  const PipelineSchedule schedule_;
  const std::int64_t stages_;
  const Times times_;
  std::vector<std::vector<StageAction>> lists_;
  std::map<Key, std::int64_t> done_;
};

constexpr std::array all_times = {Times{2, 2, 2}, Times{3, 4, 2}, Times{2, 3, 1}, Times{5, 5, 4}};

std::vector<ChunkTimes> equal_chunks(std::int64_t count, const Times& times) {
  return std::vector<ChunkTimes>(
      static_cast<std::size_t>(count),
      {Nanoseconds{times.forward}, Nanoseconds{times.backward}, Nanoseconds{times.weights}});
}

// Each stage does all of its work once, gradients of weights behind those of inputs.
TEST(ZeroBubbleActions, DoEverythingOnceAndInOrder) {
  for (const std::string& text : all_schedules)
    for (const std::int64_t p : {2, 3, 4, 7})
      for (const std::int64_t m : {1, 2, 5, 13, 20})
        for (std::int64_t s = 0; s < p; ++s) {
          const PipelineSchedule schedule = parse_schedule(text);
          std::map<std::pair<StageWork, std::int64_t>, std::int64_t> next;
          for (const StageAction& a : actions_of(schedule, p, s, m)) {
            EXPECT_EQ((next[{a.work, a.chunk}]++), a.micro_batch) << text << p << m << s;
            EXPECT_LE((next[{StageWork::Weights, a.chunk}]),
                      (next[{StageWork::Backward, a.chunk}]));
          }
          for (const StageWork work : {StageWork::Forward, StageWork::Backward, StageWork::Weights})
            for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
              EXPECT_EQ((next[{work, chunk}]), m) << text << p << m << s;
        }
}

// 1F1B waits (p − 1)(F + B + W). Of equal stages H1 and H2 wait one and two W less for each stage
// that follows; ZB-V not at all where F = B = W, and else p − 1 times what B is longer than W.
TEST(ZeroBubbleClock, HasTheBubblesOfThePapers) {
  for (const std::int64_t p : {2, 3, 4, 6})
    for (const std::int64_t m : {2 * p, 2 * p + 3, 4 * p})
      for (const Times& t : all_times) {
        const std::int64_t busy = m * (t.forward + t.backward + t.weights);
        const auto bubble = [&](const char* text) {
          const PipelineSchedule schedule = parse_schedule(text);
          const auto chunks = equal_chunks(p * schedule.chunks, t);
          return run_pipeline(schedule, chunks, m).total.count() - busy * schedule.chunks;
        };
        EXPECT_EQ(bubble("zb-h1"), (p - 1) * (t.forward + t.backward - t.weights)) << p << ' ' << m;
        EXPECT_EQ(bubble("zb-h2"), (p - 1) * (t.forward + t.backward - 2 * t.weights))
            << p << ' ' << m;
        EXPECT_EQ(bubble("zb-v"), 2 * (p - 1) * (t.backward - t.weights)) << p << ' ' << m;
        auto whole = equal_chunks(p, {t.forward, t.backward + t.weights, 0});
        EXPECT_EQ(run_pipeline({}, whole, m).total.count() - busy,
                  (p - 1) * (t.forward + t.backward + t.weights));
      }
}

TEST(ZeroBubbleClock, IsThatOfAWalkFromMomentToMoment) {
  for (const std::string& text : all_schedules)
    for (const std::int64_t p : {2, 3, 5})
      for (const std::int64_t m : {1, 2, 4, 9, 12})
        for (const Times& t : all_times) {
          const PipelineSchedule schedule = parse_schedule(text);
          const Walk walk = Walker(text, p, m, t).run();
          const auto times = run_pipeline(schedule, equal_chunks(p * schedule.chunks, t), m);
          EXPECT_EQ(times.total.count(), walk.longest) << text << ' ' << p << ' ' << m;
          EXPECT_EQ(times.end.count(), walk.end) << text << ' ' << p << ' ' << m;
        }
}

// H1 keeps what the first stage of 1F1B keeps, p micro-batches; H2 2p − 1; ZB-V 2p chunks of half a
// stage. So does each of their stages.
TEST(ZeroBubbleActions, KeepAsMuchAsThePapersSay) {
  for (const std::int64_t p : {2, 3, 4, 8})
    for (const std::int64_t m : {2 * p, 3 * p + 1})
      for (const std::string& text : all_schedules) {
        const std::int64_t most = text == "zb-h1" ? p : text == "zb-h2" ? 2 * p - 1 : 2 * p;
        EXPECT_THAT(Walker(text, p, m, {2, 2, 2}).run().in_flight, testing::Each(most)) << text;
      }
}

StepOptions of_stage(std::int64_t stages, std::int64_t micro_batches, std::string_view schedule,
                     std::int64_t stage) {
  StepOptions options{.batch = 2, .accumulate = {micro_batches}, .precision = Precision::Bf16};
  options.mesh[Axis::Pipeline] = stages;
  options.rank = RankClass{stage};
  options.schedule = parse_schedule(schedule);
  return options;
}

TEST(ZeroBubbleStages, WithEveryStrategyAreSound) {
  for (const Model& model : {small_gpt2(4), small_llama(4), small_bert(4)})
    for (const char* strategy : all_strategies)
      for (const std::string& schedule : all_schedules)
        for (const std::int64_t stage : {0, 1}) {
          StepOptions options = of_stage(2, 4, schedule, stage);
          options.mesh[Axis::Data] = 2;
          options.mesh[Axis::Tensor] = 2;
          options.sequence_parallel = stage == 1;
          expect_sound_ranks(model, options, strategy);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(ZeroBubbleStages, OfOneMicroBatchAndOfManyAreSound) {
  for (const std::string& schedule : all_schedules)
    for (const std::int64_t micro_batches : {1, 2, 3, 9})
      for (std::int64_t stage = 0; stage < 3; ++stage)
        for (const char* shard : {"ddp", "megatron", "megatron:overlap"}) {
          StepOptions options = of_stage(3, micro_batches, schedule, stage);
          options.mesh[Axis::Data] = 2;
          options.shard = parse_sharding(shard);
          expect_sound_ranks(small_gpt2(6), options, "vanilla");
          if (testing::Test::HasFatalFailure()) return;
        }
}

// The last stage's chunks are joined, however many blocks they have.
TEST(ZeroBubbleStages, MayHaveAsManyBlocksAsIsSaid) {
  for (const char* blocks : {"1-3-0-0", "0-2-2-0", "1-0-2-1", "2-0-0-2"})
    for (const std::int64_t stage : {0, 1}) {
      const StepOptions options = of_stage(2, 3, fmt::format("zb-v:blocks={}", blocks), stage);
      expect_sound_ranks(small_llama(4), options, "vanilla");
      const std::int64_t own = parameters_of(build_rank_trace(small_llama(4), options));
      EXPECT_GE(own, 0) << blocks;
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Without stages there is nothing that a schedule could order.
TEST(ZeroBubbleStages, OfOneChangeNothing) {
  for (const std::string& schedule : all_schedules) {
    StepOptions alone{.batch = 2, .accumulate = {3}};
    const Schedule plain = lower(planned(build_rank_trace(small_llama(2), alone), "vanilla"));
    alone.schedule = parse_schedule(schedule);
    const Schedule same = lower(planned(build_rank_trace(small_llama(2), alone), "vanilla"));
    EXPECT_EQ(plain.steps.size(), same.steps.size());
    EXPECT_EQ(plain.buffers, same.buffers);
  }
}

// The halves' matrix products are those of the whole: a stage does the same work in another order.
TEST(ZeroBubbleStages, MultiplyAsMuchAsOthersDo) {
  const auto flops = [](const char* schedule) {
    const Trace trace = build_rank_trace(small_llama(4), of_stage(2, 3, schedule, 1));
    const Needs needs = derive_needs(trace);
    const Device device = device_of(find_cluster("dgx-h100"));
    const CostModel costs(trace, needs, device);
    const Schedule made = lower(planned(trace, "vanilla"));
    double sum = 0;
    for (const auto& run : runs_of(made)) sum += costs.of(made, run).flops;
    return sum;
  };
  EXPECT_GT(flops("1f1b"), 0);
  EXPECT_EQ(flops("zb-h1"), flops("1f1b"));
  EXPECT_EQ(flops("zb-h2"), flops("1f1b"));
}

// Live bytes when each micro-batch's backward begins.
std::vector<std::int64_t> live_at_seeds(const Schedule& schedule) {
  std::vector<std::int64_t> found;
  std::int64_t live = 0;
  for (const Step& step : schedule.steps) {
    if (const auto* made = std::get_if<Allocate>(&step)) live += schedule[made->buffer].size.count;
    if (const auto* gone = std::get_if<Free>(&step)) live -= schedule[gone->buffer].size.count;
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (run && run->task == Task::Seed) found.push_back(live);
  }
  return found;
}

// The second of three stages of H1 runs F0 F1 B0 F2 B1 W0: at the second seed as much is in flight
// as at the first, and beside it what W0 will read. By the paper (its table 1) that is 32·sbh per
// layer of 16 bits, of linears: inputs 2 + 2 + 2 + 8, gradients of outputs 6 + 2 + 8 + 2. Norms,
// which it leaves out, read their inputs and gradients, 8·sbh, and two fp32 numbers per token each.
TEST(ZeroBubbleStages, KeepWhatGradientsOfWeightsRead) {
  const StepOptions options = of_stage(3, 4, "zb-h1", 1);
  const Trace trace = build_rank_trace(formula_gpt(3), options);
  const std::vector<std::int64_t> live = live_at_seeds(lower(planned(trace, "vanilla")));
  ASSERT_EQ(live.size(), 4u);
  constexpr std::int64_t tokens = 2 * 32, h = 64;
  constexpr std::int64_t link = 4;  // its gradient, from the first backward on
  EXPECT_EQ(live[1] - live[0], tokens * (32 * h + 8 * h + 2 * 2 * 4) + link);
}

TEST(ZeroBubbleStages, RefuseWhatCannotBePutOff) {
  StepOptions options = of_stage(2, 1, "zb-h1", 0);
  options.update_in_backward = true;
  EXPECT_THAT(pipeline_defect(options, Plan()), HasSubstr("updates inside its backward"));
  options.update_in_backward = false;
  EXPECT_EQ(pipeline_defect(options, Plan()), "");
  Plan plan;
  plan.overlap = true;
  EXPECT_THAT(pipeline_defect(options, plan), HasSubstr("recovery beside gradients"));
}

TEST(ZeroBubbleStages, HaveTheModelAmongThem) {
  for (const std::string& schedule : all_schedules) {
    std::int64_t together = 0;
    for (std::int64_t stage = 0; stage < 2; ++stage)
      together += parameters_of(build_rank_trace(small_llama(4), of_stage(2, 2, schedule, stage)));
    EXPECT_EQ(together, parameters_of(build_trace(small_llama(4), {}))) << schedule;
  }
}

// Nobody reads the gradient of the number that stands for what comes before a stage.
bool adds_up_a_link(const Trace& trace, const Schedule& schedule, const Run& run) {
  return run.task == Task::Accumulate &&
         trace[schedule[schedule.writes(run)[0]].tensor].name == "receive.link";
}

// The judge is judged: no run of a stage may be left out.
TEST(ZeroBubbleStages, WithoutOneOfTheirRunsAreNoticed) {
  for (const std::string& text : all_schedules) {
    const Trace trace = build_rank_trace(small_llama(4), of_stage(2, 3, text, 1));
    const Schedule sound = lower(planned(trace, "vanilla"));
    ASSERT_THAT(validate(trace, sound), IsEmpty());
    for (std::size_t i = 0; i < sound.steps.size(); ++i) {
      const auto* run = std::get_if<tidemark::Run>(&sound.steps[i]);
      if (!run || adds_up_a_link(trace, sound, *run)) continue;
      Schedule damaged = sound;
      damaged.steps.erase(damaged.steps.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(validate(trace, damaged).empty()) << text << i;
    }
  }
}

}  // namespace
}  // namespace tidemark::zero_bubble_test
