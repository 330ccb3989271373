// The memory of a step cut into bands that are stacked: categories, modules or single tensors, with
// or without what somebody does not want to see. States are those of the recording's pyramid.
#pragma once

#include "gui/curve_choice.h"
#include "gui/opened.h"

namespace tidemark::gui {

/// One layer of the stack.
struct Band {
  std::string name;  ///< "activation", "blocks.3", "blocks.3.mlp.fc1"
  std::optional<Category> category = {};
  std::optional<std::int32_t> block = {};
  std::optional<BufferId> buffer = {};
};

class Bands {
 public:
  /// More than these are joined: neighbouring modules, and tensors that are small.
  static constexpr std::size_t most = 512, most_modules = 128;

  /// Tensors of their own are the largest that live in `visible`.
  Bands(std::shared_ptr<const Opened> opened, const CurveChoice& choice, Range visible);

  const Opened& opened() const { return *opened_; }
  CurveBy by() const { return by_; }
  std::span<const Band> all() const { return bands_; }  ///< from the ground up

  /// Of what is not left out.
  Bytes total_of(StateId state) const {
    return totals_.size() > 0 ? Bytes{totals_[state]} : opened_->memory().total_of(state);
  }
  /// Likewise the first state of most bytes that lasts into, or begins in, [begin, end).
  StateId highest_in(double begin, double end) const;
  StateId highest() const {
    return totals_.size() > 0 ? totals_.largest_in(0, totals_.size()) : opened_->peak();
  }

 private:
  friend class BandBytes;
  using BandId = std::uint16_t;
  static constexpr BandId no_band = 0xffff;

  void take_categories();
  void take_modules();
  void take_tensors(const CurveChoice& choice, Range visible);
  void leave_out(const CurveChoice& choice);
  void walk(bool needs_totals);
  std::size_t stride() const { return std::max<std::size_t>(64, bands_.size()); }

  std::shared_ptr<const Opened> opened_;
  CurveBy by_;
  std::vector<Band> bands_;
  // What follows is empty for categories that are all there: the pyramid knows them.
  std::vector<BandId> band_of_;  ///< by buffer; while bands are made
  std::vector<BandId> band_of_event_;
  std::vector<Bytes> samples_;  ///< of every `stride()`-th state, band by band
  RangeMaximum totals_;         ///< by state; empty if nothing is left out
};

/// The bytes of all bands at one state after the other: cheapest in the order of time.
class BandBytes {
 public:
  explicit BandBytes(const Bands& bands) : bands_(bands), now_(bands.all().size()) {}
  std::span<const Bytes> at(StateId state);

 private:
  const Bands& bands_;
  std::vector<Bytes> now_;
  std::optional<StateId> state_ = {};
};

}  // namespace tidemark::gui
