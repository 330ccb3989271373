// Words numbers and choices; what each number means is said once, here.
#include "gui/header.h"

#include <fmt/format.h>

#include "gui/facts.h"
#include "simulator/cost/usual_device.h"
#include "traces/step_fields.h"

namespace tidemark::gui {
namespace {

constexpr const char* reserved_means =
    "What PyTorch's allocator holds from the device at most, with the gaps between its blocks. "
    "This has to fit.";
constexpr const char* allocated_means =
    "What PyTorch's allocator hands out at most: tensors, rounded up to its grain, and the scratch "
    "of kernels (max_memory_allocated).";
constexpr const char* live_means =
    "Bytes of the tensors that are there at the peak, without rounding.";
constexpr const char* no_memory_means =
    "Whoever recorded this did not record memory: torch.profiler does with profile_memory=True, "
    "nsys with --cuda-memory-usage=true.";
constexpr const char* arena_means =
    "The smallest single block found in which every tensor of the step has a fixed place.";
constexpr const char* step_means = "From the first kernel to the end of the optimizer's last.";
constexpr const char* samples_means = "Samples of all ranks in a second.";

Gauge gauge(std::string name, std::string value, const char* meaning) {
  return {std::move(name), std::move(value), {}, false, false, meaning};
}

Gauge reserved_gauge(const Report& report, const Report* before) {
  const Bytes now = report.reserved_peak;
  // Of a pipeline the numbers are those of one class of ranks.
  const std::string name = report.rank ? "reserved on " + to_text(*report.rank) : "reserved";
  Gauge made = gauge(name, to_text(now), reserved_means);
  if (before && before->reserved_peak != now) {
    made.value = fmt::format("{} → {}", to_text(before->reserved_peak), to_text(now));
    made.change = change_text(before->reserved_peak, now);
    made.is_more = now > before->reserved_peak;
  }
  made.value += " of " + to_text(report.capacity);
  made.is_too_much = !report.fits;
  made.widest = "00.0 GiB → 00.0 GiB of 00.0 GiB  +00.0 GiB";
  return made;
}

Gauge step_gauge(const Report& report, const Report* before) {
  const Nanoseconds now = report.step;
  Gauge made = gauge("step", to_text(now), step_means);
  made.widest = "000 ms → 000 ms  +00.0 %";
  if (!before || before->step == now || before->step.count() == 0) return made;
  made.value = fmt::format("{} → {}", to_text(before->step), to_text(now));
  made.change =
      change_text(static_cast<double>(now.count()) / static_cast<double>(before->step.count()));
  made.is_more = now > before->step;
  return made;
}

std::vector<Gauge> gauges_of(const Opened& opened) {
  const Recording& recording = opened.recording;
  std::vector<Gauge> gauges = {
      has_memory(recording)
          ? gauge("live", to_text(opened.memory().total_of(opened.peak())), live_means)
          : gauge("live", "unknown", no_memory_means)};
  if (recording.capacity.count > 0) gauges.front().value += " of " + to_text(recording.capacity);
  if (recording.planned.count > 0)
    gauges.push_back(gauge("arena", to_text(recording.planned), arena_means));
  gauges.push_back(gauge("step", to_text(recording.timeline.duration), step_means));
  return gauges;
}

std::vector<Chip> chips_of(const StepOptions& step) {
  std::vector<Chip> chips;
  for (const StepField& field : step_fields())
    if (is_stated(field, step))
      if (const auto value = field.value(step))
        chips.push_back({std::string(field.key), in_words(field, *value)});
  return chips;
}

}  // namespace

std::vector<Gauge> gauges_of(const Opened& opened, const Report* report, const Report* before) {
  if (!report) return gauges_of(opened);
  return {reserved_gauge(*report, before),
          step_gauge(*report, before),
          gauge("allocated", to_text(report->allocated_peak), allocated_means),
          gauge("live", to_text(report->live_peak), live_means),
          gauge("arena", to_text(report->planned), arena_means),
          gauge("samples/s", fmt::format("{:.1f}", report->samples_per_second), samples_means)};
}

std::vector<Chip> chips_of(const WhatIf& what_if) {
  std::vector<Chip> chips;
  if (!what_if.scenario.trace) chips = chips_of(what_if.scenario.step);
  const std::string& strategy = what_if.strategies.front().text;
  if (what_if.planned || strategy != reference_strategy().name)
    chips.push_back({"strategy", strategy});
  if (what_if.scenario.device.name != usual_device)
    chips.push_back({"device", what_if.scenario.device.name});
  if (what_if.scenario.budget)
    chips.push_back({"budget", "budget " + to_text(*what_if.scenario.budget)});
  if (!what_if.allocator.empty()) chips.push_back({"allocator", what_if.allocator});
  return chips;
}

std::vector<Chip> chips_of(const Recording& recording) {
  std::vector<Chip> chips = {{"", recording.trace->model}};
  const StepOptions& step = recording.trace->step;
  for (Chip& chip : chips_of(step))  // a profile does not say its batch
    if (chip.key != "batch" || step.batch > 0) chips.push_back({"", std::move(chip.text)});
  for (const std::string& text : {recording.strategy, recording.device})
    if (!text.empty()) chips.push_back({"", text});
  return chips;
}

}  // namespace tidemark::gui
