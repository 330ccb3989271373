// Staircases are merged, never sorted: sorting takes ten times as long.
#include "simulator/planner/front.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark {

Front::Front(const std::vector<std::vector<Choice>>& choices)
    : steps_(choices.size() + 1), spans_(choices.size()) {
  steps_.back() = {{0, 0, 0, 0}};
  for (std::size_t j = choices.size(); j-- > 0;) {
    CHECK(!choices[j].empty());
    for (std::uint32_t p = 0; p < choices[j].size(); ++p) {
      const Choice& choice = choices[j][p];
      CHECK(choice.span > 0 && j + choice.span <= choices.size());
      spans_[j].push_back(choice.span);
      steps_[j] = merged(steps_[j], shifted(steps_[j + choice.span], choice, p));
    }
  }
}

// Steps that ask for less than the choice itself needs fall together; the fastest of them stays.
Front::Staircase Front::shifted(std::span<const Step> behind, const Choice& choice,
                                std::uint32_t number) {
  Staircase steps;
  steps.reserve(behind.size());
  for (std::uint32_t i = 0; i < behind.size(); ++i) {
    const Step step{std::max(choice.need, choice.kept + behind[i].room),
                    choice.time + behind[i].time, number, i};
    if (!steps.empty() && steps.back().room == step.room) steps.pop_back();
    steps.push_back(step);
  }
  return steps;
}

// Of two that are equal, a's.
Front::Staircase Front::merged(std::span<const Step> a, std::span<const Step> b) {
  Staircase steps;
  steps.reserve(a.size() + b.size());
  const auto is_before = [](const Step& x, const Step& y) {
    return x.room != y.room ? x.room < y.room : x.time <= y.time;
  };
  for (std::size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    const bool takes_a = k == b.size() || (i < a.size() && is_before(a[i], b[k]));
    const Step& next = takes_a ? a[i++] : b[k++];
    if (steps.empty() || next.time < steps.back().time) steps.push_back(next);
  }
  return steps;
}

std::optional<std::size_t> Front::within(std::int64_t room) const {
  const auto after = std::ranges::upper_bound(steps_.front(), room, {}, &Step::room);
  if (after == steps_.front().begin()) return std::nullopt;
  return static_cast<std::size_t>(after - steps_.front().begin()) - 1;
}

std::vector<Front::Picked> Front::choices_at(std::size_t point) const {
  std::vector<Picked> picked;
  for (std::uint32_t stage = 0; stage < spans_.size();) {
    const Step& step = steps_[stage][point];
    picked.push_back({stage, step.choice});
    stage += spans_[stage][step.choice];
    point = step.next;
  }
  return picked;
}

}  // namespace tidemark
