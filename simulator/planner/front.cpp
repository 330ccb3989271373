// Staircases are merged, never sorted: sorting takes ten times as long.
#include "simulator/planner/front.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"

namespace tidemark {

// Of equal room and time the one of less error stays, or the first choice.
inline bool Front::is_before(const Step& a, const Step& b) {
  if (a.room != b.room) return a.room < b.room;
  if (a.time != b.time) return a.time < b.time;
  return a.error != b.error ? a.error < b.error : a.choice < b.choice;
}

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
    std::vector<Growing> growing(grids_[j].size());
    for (const std::uint32_t p : most_taken_first(choices, j))
      for (std::size_t c = 0; c + 1 < cells_[j + choices[j][p].span].size(); ++c)
        add_shifted(choices[j][p], p, j, c, growing);
    std::vector<Staircase> cells;
    for (Growing& cell : growing) cells.push_back(std::move(cell).whole());
    join_cells(j, std::move(cells));
  }
}

// What takes longer than another choice that is no worse in any term, or as long and comes later,
// is in no staircase.
std::vector<std::uint32_t> Front::unbeaten(const std::vector<Choice>& choices) {
  std::vector<std::uint32_t> left;
  for (std::uint32_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    const auto beats = [&](std::uint32_t k) {
      const Choice& other = choices[k];
      return other.span == choice.span && other.kept <= choice.kept && other.need <= choice.need &&
             other.error <= choice.error &&
             (other.time < choice.time || (other.time == choice.time && k < i));
    };
    bool is_beaten = false;
    for (std::uint32_t k = 0; k < choices.size() && !is_beaten; ++k) is_beaten = k != i && beats(k);
    if (!is_beaten) left.push_back(i);
  }
  return left;
}

// Blocks that are alike have the same choices, and take the same ones most often: what is merged
// first leaves little of the others.
std::vector<std::uint32_t> Front::most_taken_first(const std::vector<std::vector<Choice>>& choices,
                                                   std::size_t stage) const {
  std::vector<std::uint32_t> order = unbeaten(choices[stage]);
  if (stage + 1 == choices.size() || choices[stage + 1].size() != choices[stage].size())
    return order;
  std::vector<std::size_t> taken(choices[stage].size());
  for (const Step& step : steps_[stage + 1]) ++taken[step.choice];
  std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t p) { return taken[p]; });
  return order;
}

// Few steps are not worth a copy of all others.
void Front::Growing::add(Staircase more) {
  constexpr std::size_t worth = 4;
  recent_ = recent_.empty() ? std::move(more) : merged(recent_, more);
  if (worth * recent_.size() < most_.size()) return;
  most_ = most_.empty() ? std::move(recent_) : merged(most_, recent_);
  recent_.clear();
}

Front::Staircase Front::Growing::whole() && {
  return recent_.empty() ? std::move(most_) : merged(most_, recent_);
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
Front::Shifted::Shifted(const Choice& choice, std::uint32_t number, std::span<const Step> behind,
                        std::uint32_t first)
    : choice_(choice), number_(number) {
  const auto own = std::ranges::upper_bound(behind, choice.need - choice.kept, {}, &Step::room);
  const auto begin = own == behind.begin() ? own : own - 1;
  needs_more_ = begin != own;
  first_ = first + static_cast<std::uint32_t>(begin - behind.begin());
  behind_ = {begin, behind.end()};
}

namespace {

// The first of a range for which `is_beyond`, which holds from some element on. It is mostly near.
template <typename Iterator, typename IsBeyond>
Iterator first_near(Iterator begin, Iterator end, IsBeyond is_beyond) {
  std::ptrdiff_t reach = 1;
  while (reach < end - begin && !is_beyond(begin[reach - 1])) begin += reach, reach *= 2;
  const auto is_before = [&](const auto& each) { return !is_beyond(each); };
  return std::partition_point(begin, begin + std::min(reach, end - begin), is_before);
}

}  // namespace

// What needs no less room than one of `best` and takes no less time is beaten by it: the next step
// that might not be is the first that takes less.
Front::Staircase Front::Shifted::unbeaten_by(std::span<const Step> best) const {
  Staircase left;
  auto after = best.begin();
  for (std::size_t i = 0; i < behind_.size();) {
    const std::int64_t needed = room(i), taken = time(i);
    after = first_near(after, best.end(), [&](const Step& s) { return s.room > needed; });
    if (after == best.begin() || after[-1].time > taken || is_before((*this)[i], after[-1])) {
      left.push_back((*this)[i++]);
      continue;
    }
    const std::int64_t less = after[-1].time - choice_.time;
    const auto next = first_near(behind_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                 behind_.end(), [&](const Step& s) { return s.time < less; });
    i = static_cast<std::size_t>(next - behind_.begin());
  }
  return left;
}

// Steps of one cell may come to lie in two. In each, what the choice itself needs joins them anew.
void Front::add_shifted(const Choice& choice, std::uint32_t number, std::size_t stage,
                        std::size_t cell, std::vector<Growing>& cells) const {
  const std::size_t behind = stage + choice.span;
  const std::uint32_t begin = cells_[behind][cell], end = cells_[behind][cell + 1];
  const std::span<const Step> steps = std::span(steps_[behind]).subspan(begin, end - begin);
  // All of them have one sum of errors, or any is allowed.
  if (cells.size() == 1) {
    if (steps.empty() || choice.error + steps.front().error > bound_.most) return;
    const Shifted shifted(choice, number, steps, begin);
    if (Staircase left = shifted.unbeaten_by(cells.front().most()); !left.empty())
      cells.front().add(std::move(left));
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
  for (auto& [target, piece] : pieces) cells[target].add(std::move(piece));
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

Front::Staircase Front::merged(std::span<const Step> a, std::span<const Step> b) {
  Staircase steps;
  steps.reserve(a.size() + b.size());
  for (std::size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    const bool takes_a = k == b.size() || (i < a.size() && !is_before(b[k], a[i]));
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
