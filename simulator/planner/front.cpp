// Staircases are merged, never sorted: sorting takes ten times as long.
#include "simulator/planner/front.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tidemark {

Front::Front(const std::vector<std::vector<Choice>>& choices, const ErrorBound& bound)
    : bound_(bound),
      steps_(choices.size() + 1),
      cells_(choices.size() + 1),
      grids_(choices.size() + 1, Grid{bound}),
      spans_(choices.size()) {
  CHECK(bound_.cells > 1 || bound_.most == ErrorBound{}.most);
  steps_.back() = {{}};
  cells_.back() = {0, 1};
  grids_.back() = {bound_, std::vector<std::int64_t>{0}};
  for (std::size_t j = choices.size(); j-- > 0;) {
    CHECK(!choices[j].empty());
    for (const Choice& choice : choices[j]) {
      CHECK(choice.span > 0 && j + choice.span <= choices.size() && choice.error >= 0);
      spans_[j].push_back(choice.span);
    }
    grids_[j] = grid_of(choices[j], j);
    is_exact_ = is_exact_ && (bound_.cells == 1 || grids_[j].sums);
    std::vector<Staircase> cells(grids_[j].size());
    for (std::uint32_t p = 0; p < choices[j].size(); ++p)
      for (std::size_t c = 0; c + 1 < cells_[j + choices[j][p].span].size(); ++c)
        add_shifted(choices[j][p], p, j, c, cells);
    join_cells(j, std::move(cells));
  }
}

// 0 has a cell of its own, for plans without errors are not to give way to others.
std::size_t Front::Grid::cell_of(std::int64_t error) const {
  if (sums) return static_cast<std::size_t>(std::ranges::lower_bound(*sums, error) - sums->begin());
  if (error == 0 || bound.cells == 1) return 0;
  const double share = static_cast<double>(error - 1) / static_cast<double>(bound.most);
  return 1 + static_cast<std::size_t>(share * static_cast<double>(bound.cells - 1));
}

// Each sum by itself, where they are few enough.
Front::Grid Front::grid_of(const std::vector<Choice>& choices, std::size_t stage) const {
  std::vector<std::int64_t> sums;
  for (const Choice& choice : choices) {
    const Grid& behind = grids_[stage + choice.span];
    if (bound_.cells == 1 || !behind.sums) return {bound_};
    for (const std::int64_t sum : *behind.sums)
      if (sum + choice.error <= bound_.most) sums.push_back(sum + choice.error);
  }
  std::ranges::sort(sums);
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  if (sums.size() > bound_.cells) return {bound_};
  return {bound_, std::move(sums)};
}

// Steps that ask for less than the choice itself needs fall together; the fastest of them stays.
Front::Staircase Front::shifted(const Choice& choice, std::uint32_t number,
                                std::span<const Step> behind, std::uint32_t first) {
  const auto own = std::ranges::upper_bound(behind, choice.need - choice.kept, {}, &Step::room);
  const auto begin = own == behind.begin() ? own : own - 1;
  Staircase steps(static_cast<std::size_t>(behind.end() - begin));
  const auto skipped = static_cast<std::uint32_t>(begin - behind.begin());
  for (std::uint32_t i = 0; i < steps.size(); ++i)
    steps[i] = {choice.kept + begin[i].room, choice.time + begin[i].time,
                choice.error + begin[i].error, number, first + skipped + i};
  if (begin != own) steps.front().room = choice.need;
  return steps;
}

// Steps of one cell may come to lie in two. In each, what the choice itself needs joins them anew.
void Front::add_shifted(const Choice& choice, std::uint32_t number, std::size_t stage,
                        std::size_t cell, std::vector<Staircase>& cells) const {
  const std::size_t behind = stage + choice.span;
  const std::uint32_t begin = cells_[behind][cell], end = cells_[behind][cell + 1];
  const std::span<const Step> steps = std::span(steps_[behind]).subspan(begin, end - begin);
  const auto add = [&](std::size_t target, Staircase piece) {
    cells[target] = cells[target].empty() ? std::move(piece) : merged(cells[target], piece);
  };
  // All of them have one sum of errors, or any is allowed.
  if (cells.size() == 1) {
    if (!steps.empty() && choice.error + steps.front().error <= bound_.most)
      add(0, shifted(choice, number, steps, begin));
    return;
  }
  std::vector<std::pair<std::size_t, Staircase>> pieces;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& last = steps[i];
    const Step step{std::max(choice.need, choice.kept + last.room), choice.time + last.time,
                    choice.error + last.error, number, begin + i};
    if (step.error > bound_.most) continue;
    const std::size_t target = grids_[stage].cell_of(step.error);
    auto piece = std::ranges::find(pieces, target, [](const auto& each) { return each.first; });
    if (piece == pieces.end()) {
      pieces.push_back({target, {}});
      piece = pieces.end() - 1;
      piece->second.reserve(steps.size() - i);
    }
    Staircase& found = piece->second;
    if (!found.empty() && found.back().room == step.room) found.pop_back();
    found.push_back(step);
  }
  for (auto& [target, piece] : pieces) add(target, std::move(piece));
}

// What a plan of less error beats in room and time is left out.
void Front::join_cells(std::size_t stage, std::vector<Staircase> cells) {
  if (cells.size() == 1) {
    cells_[stage] = {0, static_cast<std::uint32_t>(cells.front().size())};
    steps_[stage] = std::move(cells.front());
    return;
  }
  Staircase best, all;
  cells_[stage] = {0};
  for (std::size_t c = 0; c < cells.size(); ++c) {
    Staircase unbeaten;
    std::size_t b = 0;
    for (const Step& step : cells[c]) {
      while (b < best.size() && best[b].room <= step.room) ++b;
      if (b == 0 || step.time < best[b - 1].time) unbeaten.push_back(step);
    }
    best = merged(best, unbeaten);
    thin(stage, c, unbeaten);
    all.insert(all.end(), unbeaten.begin(), unbeaten.end());
    cells_[stage].push_back(static_cast<std::uint32_t>(all.size()));
  }
  const bool is_first = stage == 0;
  if (is_first) cells_[stage] = {0, static_cast<std::uint32_t>(best.size())};
  steps_[stage] = std::move(is_first ? best : all);
}

// The first and the last stay.
void Front::thin(std::size_t stage, std::size_t cell, Staircase& steps) const {
  if (grids_[stage].sums || cell == 0 || steps.size() <= bound_.steps) return;
  const std::int64_t range = steps.front().time - steps.back().time;
  const std::int64_t least = range / static_cast<std::int64_t>(bound_.steps) + 1;
  Staircase left = {steps.front()};
  for (const Step& step : steps)
    if (step.time <= left.back().time - least) left.push_back(step);
  if (left.back().time != steps.back().time) left.push_back(steps.back());
  steps = std::move(left);
}

// Of equal room and time the one of less error; of two that are equal in all, a's.
Front::Staircase Front::merged(std::span<const Step> a, std::span<const Step> b) {
  Staircase steps;
  steps.reserve(a.size() + b.size());
  const auto is_before = [](const Step& x, const Step& y) {
    if (x.room != y.room) return x.room < y.room;
    return x.time != y.time ? x.time < y.time : x.error <= y.error;
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
