// Example, three micro-batches of many, of which each gathers G beside what it computes:
//   compute    F1 B1 | F2 B2 | F3 B3 | update
//   gather   G1    G2     G3
// If the third does what the second does, so much later, a fourth would do it again, and what is
// behind it comes so much later, too. Where a round ends does not matter: it is where the last one
// ceases to be like the one before it, so that what is special about the last is behind all rounds.
// Tested by tests/analysis/many_batches_property_test.cpp.
#include "analysis/repeated_rounds.h"

#include <algorithm>
#include <span>

namespace tidemark {
namespace {

// By micro-batch: the step of the schedule that runs the first op of its forward.
std::vector<std::uint32_t> beginnings(const Schedule& schedule) {
  std::vector<std::uint32_t> all;
  OpId first = no_op;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Run* run = std::get_if<Run>(&schedule.steps[i]);
    if (!run || run->task != Task::Forward) continue;
    if (first == no_op) first = run->op;
    if (run->op == first) all.push_back(i);
  }
  return all;
}

/// Where the schedule begins the last of its rounds, and the one before it.
struct LastRounds {
  std::uint32_t before, last;
};

std::optional<LastRounds> last_rounds(const Schedule& schedule, std::int64_t each) {
  const std::vector<std::uint32_t> begins = beginnings(schedule);
  const auto size = static_cast<std::size_t>(each);
  if (begins.size() <= size) return std::nullopt;
  return LastRounds{begins[begins.size() - 1 - size], begins.back()};
}

/// Runs of a timeline that are the same as those before them, so much earlier.
struct RunsOfRound {
  std::size_t end, size;
  Nanoseconds time;
};

// The same again, so much later? And was the host there as early, at least?
bool is_same(const Schedule& schedule, const TimedRun& a, const TimedRun& b, Nanoseconds later) {
  const Run* x = std::get_if<Run>(&schedule.steps[a.step]);
  const Run* y = std::get_if<Run>(&schedule.steps[b.step]);
  return x && y && x->task == y->task && x->op == y->op && a.stream == b.stream &&
         a.begin + later == b.begin && a.end + later == b.end && b.issued <= a.issued + later;
}

// What is behind the round goes on as it would behind many if the host is then where it was a round
// before, or else has launched all of it already.
std::optional<RunsOfRound> repeated_runs(const Evaluation& made, const LastRounds& rounds) {
  const auto& runs = made.timeline.runs;
  const auto place = [&](std::uint32_t step) {
    return static_cast<std::size_t>(std::ranges::find(runs, step, &TimedRun::step) - runs.begin());
  };
  const std::size_t begin = place(rounds.last), before = place(rounds.before);
  if (begin == runs.size() || before >= begin) return std::nullopt;
  const std::size_t size = begin - before;
  const Nanoseconds time = runs[begin].begin - runs[before].begin;
  const auto is_repeated = [&](std::size_t i) {
    return is_same(made.schedule, runs[i - size], runs[i], time);
  };
  std::size_t end = begin;
  while (end < runs.size() && is_repeated(end)) ++end;
  if (end == runs.size() || end < 2 * size) return std::nullopt;
  for (std::size_t i = end - size; i < begin; ++i)
    if (!is_repeated(i)) return std::nullopt;
  const bool is_in_step = runs[end - 1].issued == runs[end - 1 - size].issued + time;
  if (!is_in_step && made.timeline.host > runs[end].begin) return std::nullopt;
  return RunsOfRound{end, size, time};
}

// As simulate() counts it; runs are in the order in which they begin.
void count_idle_and_overlap(Timeline& timeline) {
  Nanoseconds one{}, two{};  // until then one stream is busy, or two
  timeline.idle = timeline.overlap = {};
  for (const TimedRun& run : timeline.runs) {
    timeline.idle += std::max(Nanoseconds{}, run.begin - one);
    const Nanoseconds both = std::max(two, std::min(one, run.end));
    timeline.overlap += std::max(Nanoseconds{}, both - std::max(two, run.begin));
    one = std::max(one, run.end), two = both;
  }
  timeline.waits_for_host = timeline.idle;
}

// The same step without a round.
Timeline without(const Timeline& all, const RunsOfRound& round) {
  Timeline rest;
  rest.runs.reserve(all.runs.size() - round.size);
  const auto end = all.runs.begin() + static_cast<std::ptrdiff_t>(round.end);
  rest.runs.assign(all.runs.begin(), end - static_cast<std::ptrdiff_t>(round.size));
  for (TimedRun run : std::span(end, all.runs.end())) {
    run.begin -= round.time, run.end -= round.time;
    rest.runs.push_back(run);
  }
  rest.duration = all.duration - round.time;
  count_idle_and_overlap(rest);
  return rest;
}

// The calls between what is allocated first behind the beginnings of both.
allocator::LastRound calls_of_last(const Evaluation& made, const LastRounds& rounds,
                                   const allocator::AllocatorCalls& calls) {
  const auto place = [&](std::uint32_t step) {
    const auto& steps = made.schedule.steps;
    while (step < steps.size() && !std::holds_alternative<Allocate>(steps[step])) ++step;
    if (step == steps.size()) return calls.step.size();
    const auto slot = static_cast<std::uint32_t>(index(std::get<Allocate>(steps[step]).buffer));
    const auto call = std::ranges::find_if(calls.step, [&](const allocator::AllocatorCall& of) {
      return of.kind == allocator::AllocatorCall::Kind::Allocate && of.slot == slot;
    });
    return static_cast<std::size_t>(call - calls.step.begin());
  };
  const std::size_t begin = place(rounds.last);
  return {begin, begin - std::min(begin, place(rounds.before))};
}

// Where the last of two steps, which are a round apart, comes to after some rounds more.
StepTimes after_rounds(const StepTimes& before, const StepTimes& last, std::int64_t rounds) {
  const auto after = [rounds](Nanoseconds a, Nanoseconds b) { return b + (b - a) * rounds; };
  std::vector<ChunkTimes> chunks;
  for (std::size_t c = 0; c < last.chunks.size(); ++c) {
    const ChunkTimes &a = before.chunks[c], &b = last.chunks[c];
    chunks.push_back(
        {after(a.forward, b.forward), after(a.backward, b.backward), after(a.weights, b.weights)});
  }
  return {.duration = after(before.duration, last.duration),
          .waits_for_host = after(before.waits_for_host, last.waits_for_host),
          .overlap = after(before.overlap, last.overlap),
          .communication = {after(before.communication.alone, last.communication.alone),
                            after(before.communication.exposed, last.communication.exposed)},
          .chunks = std::move(chunks),
          .behind = after(before.behind, last.behind)};
}

}  // namespace

std::optional<RepeatedStep> repeated_step(const Evaluation& made, const StepTotals& totals,
                                          std::int64_t each, std::int64_t rounds) {
  const std::optional<LastRounds> last = last_rounds(made.schedule, each);
  if (!last) return std::nullopt;
  const auto runs = repeated_runs(made, *last);
  if (!runs) return std::nullopt;
  auto calls =
      allocator::repeated_calls(totals.calls, calls_of_last(made, *last, totals.calls), rounds);
  if (!calls) return std::nullopt;
  const StepTimes before =
      times_of(*made.planned.trace, made.schedule, without(made.timeline, *runs));
  return RepeatedStep{after_rounds(before, totals.times, rounds), *std::move(calls)};
}

}  // namespace tidemark
