// The lanes of the classes of ranks that are not the one shown: what each does at the same time.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// In pixels; lower lanes cannot be told apart.
constexpr float lowest_lane = 3, between_lanes = 1, between_groups = 2;

// The lanes of each class, those with anything on them; or of each class the first, where it
// computes.
struct RankGroups {
  std::vector<TimelinePlaces::Lane> lanes;  // without their boxes
  float gap = between_groups;
  std::size_t without_room = 0;

  float height(float lane) const {
    std::size_t groups = 0;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      groups += i == 0 || lanes[i].stage != lanes[i - 1].stage;
    return static_cast<float>(lanes.size()) * (lane + between_lanes) +
           static_cast<float>(groups) * gap;
  }
};

// As many as fit at the least height.
RankGroups groups_within(const Ranks& ranks, bool has_all_streams, float room) {
  RankGroups groups;
  if (!has_all_streams) groups.gap = 0;
  std::vector<std::size_t> stages = tightest_first(ranks);
  std::erase(stages, ranks.shown);
  for (const std::size_t stage : stages) {
    const std::size_t before = groups.lanes.size();
    const Opened& step = *ranks.steps[stage];
    for (std::size_t stream = 0; stream < step.lanes().size(); ++stream)
      if (step.lanes()[stream].size() > 0 && (has_all_streams || groups.lanes.size() == before))
        groups.lanes.push_back({&step, stream, {}, stage});
    if (groups.without_room == 0 && groups.height(lowest_lane) <= room) continue;
    groups.lanes.resize(before);
    ++groups.without_room;
  }
  return groups;
}

}  // namespace

// Where not all streams of all classes have room, of each class the one that computes.
float place_rank_lanes(const Ranks& ranks, float top, float room, TimelinePlaces& places) {
  RankGroups groups = groups_within(ranks, true, room);
  if (groups.without_room > 0) groups = groups_within(ranks, false, room);
  places.ranks_without_room = groups.without_room;
  if (groups.lanes.empty()) return top;
  const float share =
      (room - groups.height(-between_lanes)) / static_cast<float>(groups.lanes.size());
  const float height = std::clamp(std::floor(share) - between_lanes, lowest_lane, 1.2F * places.em);
  float y = top;
  std::optional<std::size_t> stage;
  for (TimelinePlaces::Lane& lane : groups.lanes) {
    if (lane.stage != stage) y += groups.gap;
    stage = lane.stage;
    lane.box = {places.time.x0, y, places.time.x1, y + height};
    y += height + between_lanes;
    places.lanes.push_back(lane);
  }
  return y;
}

std::string line_of(const Ranks& ranks, std::size_t stage) {
  const Report& report = ranks.reports[stage];
  return fmt::format(
      "{}: {} allocated, {}, waits {:.1f} % of the time",
      to_text(RankClass{static_cast<std::int64_t>(stage)}), to_text(report.allocated_peak),
      report.fits ? "fits" : "does not fit",
      100 * static_cast<double>(report.bubble.count()) / static_cast<double>(report.step.count()));
}

// One for each class, beside the first of its lanes; where those are too low, beside all of them.
void draw_rank_labels(ImDrawList& list, const TimelinePlaces& places, const Ranks& ranks) {
  for (auto lane = places.lanes.begin(); lane != places.lanes.end();) {
    const auto next = std::find_if(lane, places.lanes.end(),
                                   [&](const auto& other) { return other.opened != lane->opened; });
    if (lane->stage) {
      const Box box{places.all.x0 + 2, lane->box.y0, lane->box.x0 - 6, std::prev(next)->box.y1};
      const Report& report = ranks.reports[*lane->stage];
      if (box.height() >= 0.8F * places.em)
        draw_text(list, box, fmt::format("pp{} {}", *lane->stage, to_text(report.allocated_peak)),
                  report.fits ? theme::faint : theme::alarm, Align::Right);
    }
    lane = next;
  }
}

}  // namespace tidemark::gui
