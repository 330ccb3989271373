// A comparison made by hand, with numbers that are easy to print: two strategies and a refusal.
#pragma once

#include <string>
#include <utility>

#include "analysis/comparison.h"

namespace tidemark {

/// A row of `mebibytes` allocated, a fifth more reserved, in so many milliseconds.
inline Report small_row(std::string strategy, std::int64_t mebibytes, std::int64_t milliseconds) {
  using namespace literals;
  Report row;
  row.strategy = std::move(strategy);
  row.allocated_peak = {mebibytes << 20};
  row.reserved_peak = {(mebibytes << 20) / 5 * 6};
  row.planned = row.allocated_peak - 1_MiB;
  row.live_peak = row.allocated_peak - 2_MiB;
  row.step = Nanoseconds{milliseconds * 1'000'000};
  row.throughput_unit = "images";
  row.throughput = 4'000.0 / static_cast<double>(milliseconds);  // of a batch of 4
  row.fits = true;
  return row;
}

/// Vanilla, which is 8 MiB short, checkpoint in half of the memory, and a strategy that is refused.
inline Comparison small_comparison() {
  using namespace literals;
  Comparison made;
  made.scenario.model.title = "ViT";
  made.scenario.model.name = "vit";
  made.scenario.step.batch = 4;
  made.scenario.device.name = "gpu";
  made.scenario.device.title = "GPU";
  made.scenario.device.capacity = 34_MiB;
  made.budget.capacity = 32_MiB;
  made.parameters = 86'000'000;
  made.tokens = 197;
  Report vanilla = small_row("vanilla", 40, 20);
  vanilla.memory_ratio = vanilla.time_ratio = 1;
  vanilla.mfu = 0.5;
  vanilla.fits = false;
  vanilla.short_by = 8_MiB;
  Report checkpoint = small_row("checkpoint", 20, 25);
  checkpoint.memory_ratio = 0.5;
  checkpoint.time_ratio = 1.25;
  checkpoint.mfu = 0.4;
  checkpoint.recovery.alone = Nanoseconds{5'000'000};
  Report refused;
  refused.strategy = "reversible:a";
  refused.applies = false;
  refused.reason = "reversible: no coupled blocks";
  made.rows = {vanilla, checkpoint, refused};
  made.conclusion = conclude(made.rows, made.scenario.device, made.budget.capacity);
  return made;
}

}  // namespace tidemark
