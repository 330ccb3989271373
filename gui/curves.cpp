// Keeps one set of bands per recording and makes another when it is asked for.
#include "gui/curves.h"

#include <algorithm>

namespace tidemark::gui {
namespace {

template <typename T>
bool is_under_way(const std::future<T>& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

bool is_quick(const Opened& opened, const CurveChoice& choice) {
  const bool is_known = choice.by == CurveBy::Category && choice.is_whole();
  return is_known || opened.timeline().memory.size() <= Curves::most_at_once;
}

}  // namespace

Curves::Entry& Curves::entry_of(const Shown& opened) {
  const auto found = std::ranges::find(entries_, opened, &Entry::opened);
  if (found != entries_.end()) return *found;
  entries_.push_back({.opened = opened});
  return entries_.back();
}

std::shared_ptr<const Bands> Curves::of(const Shown& opened, const CurveChoice& choice,
                                        Range visible) {
  Entry& entry = entry_of(opened);
  entry.is_used = true;
  const bool is_chosen_by_range =
      choice.by == CurveBy::Tensor && opened->schedule().buffers.size() >= Bands::most;
  const Wanted wanted{choice, is_chosen_by_range ? visible : Range{0, opened->end()}};
  if (entry.coming.valid() && !is_under_way(entry.coming)) entry.bands = entry.coming.get();
  if (entry.wanted == wanted || entry.coming.valid()) return entry.bands;
  entry.wanted = wanted;
  const auto make = [opened, wanted] {
    return std::make_shared<const Bands>(opened, wanted.choice, wanted.visible);
  };
  if (is_quick(*opened, choice)) return entry.bands = make();
  if (!entry.bands) entry.bands = std::make_shared<const Bands>(opened, CurveChoice{}, visible);
  entry.coming = std::async(std::launch::async, make);
  return entry.bands;
}

void Curves::begin_frame() {
  // What still comes is let come: its thread holds the recording.
  std::erase_if(entries_,
                [](const Entry& entry) { return !entry.is_used && !is_under_way(entry.coming); });
  for (Entry& entry : entries_) entry.is_used = false;
}

bool Curves::is_catching_up() const {
  return std::ranges::any_of(entries_,
                             [](const Entry& entry) { return is_under_way(entry.coming); });
}

void Curves::wait() const {
  for (const Entry& entry : entries_)
    if (entry.coming.valid()) entry.coming.wait();
}

}  // namespace tidemark::gui
