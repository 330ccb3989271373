// A chunk's points are the choices of one more front, whose stages are the chunks.
#include "simulator/planner/chunk_fronts.h"

#include <algorithm>

namespace tidemark {
namespace {

std::vector<std::vector<Choice>> of_chunk(const std::vector<std::vector<Choice>>& all,
                                          const ChunkOfChain& chunk,
                                          std::optional<std::int64_t> slack) {
  std::vector<std::vector<Choice>> own(all.begin() + static_cast<std::ptrdiff_t>(chunk.begin),
                                       all.begin() + static_cast<std::ptrdiff_t>(chunk.end));
  if (!slack) return own;
  for (std::size_t s = 0; s < own.size(); ++s)
    for (Choice& choice : own[s])
      if (s + choice.span == own.size()) choice.need = std::max(choice.need, choice.kept + *slack);
  return own;
}

std::vector<std::size_t> evenly(std::size_t size, std::size_t most) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < std::min(size, most); ++i)
    some.push_back(size <= most ? i : i * (size - 1) / (most - 1));
  return some;
}

}  // namespace

ChunkFronts::ChunkFronts(const std::vector<std::vector<Choice>>& choices,
                         std::vector<ChunkOfChain> chunks, std::optional<std::int64_t> slack,
                         const ErrorBound& bound)
    : chunks_(std::move(chunks)) {
  for (const ChunkOfChain& chunk : chunks_)
    fronts_.emplace_back(of_chunk(choices, chunk, slack), bound);
  if (chunks_.size() == 1) return;
  std::vector<std::vector<Choice>> by_chunk;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    points_.push_back(evenly(fronts_[c].size(), most_points));
    std::vector<Choice>& points = by_chunk.emplace_back();
    for (const std::size_t point : points_.back()) {
      std::int64_t kept = 0;
      for (const Front::Picked& picked : choices_at(c, point))
        kept += choices[picked.stage][picked.choice].kept;
      points.push_back({.kept = chunks_[c].times * kept, .time = fronts_[c][point].time});
    }
  }
  whole_.emplace(by_chunk);
}

std::vector<Front::Picked> ChunkFronts::choices_at(std::size_t chunk, std::size_t point) const {
  std::vector<Front::Picked> picked = fronts_[chunk].choices_at(point);
  for (Front::Picked& each : picked) each.stage += static_cast<std::uint32_t>(chunks_[chunk].begin);
  return picked;
}

std::vector<Front::Picked> ChunkFronts::choices_at(std::size_t point) const {
  if (!whole_) return choices_at(0, point);
  std::vector<Front::Picked> picked;
  for (const Front::Picked& of_chunk : whole_->choices_at(point))
    for (const Front::Picked& each :
         choices_at(of_chunk.stage, points_[of_chunk.stage][of_chunk.choice]))
      picked.push_back(each);
  return picked;
}

std::vector<std::int64_t> ChunkFronts::slacks(
    const std::vector<std::vector<Choice>>& choices) const {
  std::vector<std::int64_t> all;
  for (std::size_t c = 0; c < fronts_.size(); ++c)
    for (std::size_t point = 0; point < fronts_[c].size(); ++point) {
      std::int64_t slack = fronts_[c][point].room;
      for (const Front::Picked& picked : choices_at(c, point))
        slack -= choices[picked.stage][picked.choice].kept;
      all.push_back(slack);
    }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace tidemark
