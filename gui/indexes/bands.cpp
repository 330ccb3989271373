// Gives each buffer a band, then walks the events once.
#include "gui/indexes/bands.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::gui {
namespace {

bool is_left_out(const Buffer& buffer, const CurveChoice& choice) {
  return choice.hidden[static_cast<std::size_t>(buffer.category)] ||
         (choice.hides_persistent && buffer.persistent);
}

}  // namespace

std::string CurveChoice::left_out() const {
  std::string text;
  const auto add = [&](std::string_view what) {
    text += fmt::format("{}without {}", text.empty() ? "" : ", ", what);
  };
  for (std::size_t c = 0; c < category_count; ++c)
    if (hidden[c]) add(to_string(static_cast<Category>(c)));
  if (hides_persistent) add("what is persistent");
  return text;
}

Bands::Bands(std::shared_ptr<const Opened> opened, const CurveChoice& choice, Range visible)
    : opened_(std::move(opened)), by_(choice.by) {
  switch (by_) {
    case CurveBy::Category:
      take_categories();
      if (choice.is_whole()) return;
      for (const Buffer& buffer : opened_->schedule().buffers)
        band_of_.push_back(static_cast<BandId>(buffer.category));
      break;
    case CurveBy::Module:
      take_modules();
      break;
    case CurveBy::Tensor:
      take_tensors(choice, visible);
      break;
  }
  leave_out(choice);
  walk(!choice.is_whole());
  band_of_ = {};
}

void Bands::take_categories() {
  for (std::size_t c = 0; c < category_count; ++c) {
    const auto category = static_cast<Category>(c);
    bands_.push_back({.name = std::string(to_string(category)), .category = category});
  }
}

// In the order of the trace: the first module is at the ground, as it is the first to be alive. Of
// many thousands, neighbours are one band.
void Bands::take_modules() {
  const auto& modules = opened_->modules().all;
  const std::size_t each = (modules.size() + most_modules - 1) / most_modules;
  for (std::size_t first = 0; first < modules.size(); first += each) {
    const std::size_t last = std::min(first + each, modules.size()) - 1;
    if (first < last) {
      bands_.push_back({.name = fmt::format("{} to {}", modules[first].name, modules[last].name)});
    } else {
      bands_.push_back({.name = modules[first].name});
      if (modules[first].block >= 0) bands_.back().block = modules[first].block;
    }
  }
  const std::size_t none = bands_.size();
  bands_.push_back({.name = "of no module"});
  for (std::size_t b = 0; b < opened_->schedule().buffers.size(); ++b) {
    const OpId home = opened_->home_of(static_cast<BufferId>(b));
    const std::size_t band = home == no_op ? none : opened_->modules().of_op[index(home)] / each;
    band_of_.push_back(static_cast<BandId>(band));
  }
}

// The largest that are alive in what is visible, in the order in which they come to life: what is
// freed first lies on top, as in a stack.
void Bands::take_tensors(const CurveChoice& choice, Range visible) {
  const StateId first = opened_->memory().at(visible.begin),
                last = opened_->memory().at(visible.end);
  const BufferIndex& buffers = opened_->buffers();
  std::vector<BufferId> chosen;
  for (const BufferId id : buffers.by_size()) {
    if (chosen.size() + 1 == most) break;
    const bool is_alive = buffers.first_state(id) <= last && buffers.last_state(id) > first;
    if (is_alive && !is_left_out(opened_->schedule()[id], choice)) chosen.push_back(id);
  }
  std::ranges::sort(chosen, {},
                    [&](BufferId id) { return std::pair(buffers.first_state(id), id); });
  const std::size_t all = opened_->schedule().buffers.size();
  band_of_.assign(all, static_cast<BandId>(chosen.size()));
  for (const BufferId id : chosen) {
    band_of_[index(id)] = static_cast<BandId>(bands_.size());
    bands_.push_back({.name = opened_->describe(id),
                      .category = opened_->schedule()[id].category,
                      .buffer = id});
  }
  bands_.push_back({.name = "smaller tensors"});
}

void Bands::leave_out(const CurveChoice& choice) {
  const auto& buffers = opened_->schedule().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (is_left_out(buffers[b], choice)) band_of_[b] = no_band;
}

void Bands::walk(bool needs_totals) {
  const auto& buffers = opened_->schedule().buffers;
  const auto& events = opened_->timeline().memory;
  std::vector<Bytes> now(bands_.size());
  Bytes sum;
  const auto change = [&](std::size_t buffer, Bytes by) {
    const BandId band = band_of_[buffer];
    if (band != no_band) now[band] += by, sum += by;
    return band;
  };
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].persistent) change(b, buffers[b].size);
  std::vector<std::int64_t> totals;
  totals.reserve(needs_totals ? events.size() + 1 : 0), band_of_event_.reserve(events.size());
  for (std::size_t state = 0; state <= events.size(); ++state) {
    if (state > 0) {
      const MemoryEvent& event = events[state - 1];
      const Bytes size = buffers[index(event.buffer)].size;
      band_of_event_.push_back(
          change(index(event.buffer), event.appears ? size : Bytes{-size.count}));
    }
    if (state % stride() == 0) samples_.insert(samples_.end(), now.begin(), now.end());
    if (needs_totals) totals.push_back(sum.count);
  }
  // Else the pyramid has them.
  if (needs_totals) totals_ = RangeMaximum(std::move(totals));
}

StateId Bands::highest_in(double begin, double end) const {
  if (totals_.size() == 0) return opened_->memory().highest_in(begin, end);
  const auto [first, last] = opened_->memory().states_in(begin, end);
  return totals_.largest_in(first, last);
}

std::span<const Bytes> BandBytes::at(StateId state) {
  const MemoryPyramid& memory = bands_.opened().memory();
  if (bands_.samples_.empty()) {
    const BytesByCategory bytes = memory.categories_of(state);
    std::ranges::copy(bytes, now_.begin());
    return now_;
  }
  const StateId sample = state / bands_.stride() * bands_.stride();
  if (!state_ || *state_ > state || *state_ < sample) {
    const std::size_t begin = sample / bands_.stride() * now_.size();
    std::copy_n(bands_.samples_.begin() + static_cast<std::ptrdiff_t>(begin), now_.size(),
                now_.begin());
    state_ = sample;
  }
  for (; *state_ < state; ++*state_)
    if (const auto band = bands_.band_of_event_[*state_]; band != Bands::no_band)
      now_[band] += memory.total_of(*state_ + 1) - memory.total_of(*state_);
  return now_;
}

}  // namespace tidemark::gui
