// The fastest layouts that fit, and those that need less than any faster one.
#pragma once

#include <functional>
#include <map>

#include "analysis/layouts/layout_bounds.h"

namespace tidemark {

/// What a report says of a layout; of the rank that needs most, and the time of all.
struct LayoutNumbers {
  Bytes allocated, at_rest, reserved, capacity, short_by;
  bool fits = false;
  std::int64_t stage = 0;  ///< whose memory it is
  Nanoseconds step{}, exposed{}, bubble{};
  double samples_per_second = 0, throughput = 0;
  std::string throughput_unit = "samples";
  double mfu = 0;

  bool operator==(const LayoutNumbers&) const = default;
};

struct FoundLayout {
  MeshLayout layout;
  std::string key;
  LayoutNumbers numbers;
  bool is_on_front = false;  ///< no other that fits is as fast and smaller

  bool operator==(const FoundLayout&) const = default;
};

/// Faster first; of equal times the smaller one, then by key.
bool is_before(const FoundLayout& a, const FoundLayout& b);

struct LayoutSearch {
  LayoutRequest request;
  std::vector<FoundLayout> found;  ///< the fastest, then the rest of the front; in order of time
  LayoutCounts cut{};              ///< by rule; with `found` they are all layouts
  std::int64_t all = 0, simulated = 0;
  std::string tensor_refusal;  ///< what the first mesh that the model does not divide by said
  std::map<std::string, std::int64_t> undivided;  ///< layouts by what their ranks do not share
  std::string strategy_refusal;                   ///< … the first strategy that does not apply
  std::string refusal;  ///< … the first layout that was refused, or the nearest one
  std::string throughput_unit = "samples";
  /// Where nothing fits: the layout that needs least by its bound, simulated, and the most of it.
  std::optional<FoundLayout> nearest = {};
  std::string nearest_peak;  ///< "forward of blocks.3.mlp.fc1"; "" where the search was stopped
  BytesByCategory nearest_bytes{};
  /// Where the global batch is dealt out to nobody: the nearest that some layout deals out.
  std::optional<std::int64_t> nearest_global_batch = {};
  bool is_stopped = false;
};

struct LayoutWatch {
  std::function<void(std::size_t done, std::size_t left)> tell = {};
  std::function<bool()> is_stopped = {};
  /// Numbers that were simulated before, or null.
  std::function<const LayoutNumbers*(const std::string& key)> known = {};
  /// Told of each layout that was simulated now, whether it fits or not.
  std::function<void(const FoundLayout& made)> keep = {};
};

/// Legal layouts in order of their bound in time; what can be neither among the fastest nor on the
/// front is not simulated. The result does not depend on the order, nor on the number of cores.
LayoutSearch search_layouts(const LayoutRequest& request, const LayoutWatch& watch = {});

/// The full simulation of one layout, as compare() makes it. InputError if it is refused.
Report report_in(const LayoutRequest& request, const MeshLayout& layout);

/// The `top` fastest that fit and the front, in order, marked; `others` is how many fit beside.
std::vector<FoundLayout> best_of(std::vector<FoundLayout> all, std::size_t top,
                                 std::int64_t& others);

}  // namespace tidemark
