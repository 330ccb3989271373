// The table of row fields: key, meaning and how to read it off a report; values as CSV cells.
#include "cli/reports/comparison_fields.h"

#include <fmt/format.h>

#include <array>

namespace tidemark::cli {
namespace {

template <typename T>
FieldValue or_nothing(const std::optional<T>& value) {
  return value ? FieldValue(*value) : FieldValue();
}

using R = const Report&;
using V = FieldValue;

constexpr std::array fields = {
    RowField{"strategy", "as named on the command line", [](R r) -> V { return r.strategy; }, true},
    RowField{"applies", "false where the strategy cannot do anything for the model",
             [](R r) -> V { return r.applies; }, true},
    RowField{"reason", "why not", [](R r) -> V { return r.reason; }, true},
    RowField{"caution", "what changes beside memory and time", [](R r) -> V { return r.caution; },
             true},
    RowField{"rank", "of several pipeline stages the one that needs most, or that was named",
             [](R r) -> V { return r.rank ? V(tidemark::to_text(*r.rank)) : V(); }},
    RowField{"live_peak_bytes", "most bytes of present tensors",
             [](R r) -> V { return r.live_peak.count; }},
    RowField{"planned_bytes", "one arena with a fixed offset for each tensor",
             [](R r) -> V { return r.planned.count; }},
    RowField{"allocated_peak_bytes", "what PyTorch's caching allocator would report as allocated",
             [](R r) -> V { return r.allocated_peak.count; }},
    RowField{"allocated_at_rest_bytes",
             "the same when the update is done, before it frees gradients and temporaries",
             [](R r) -> V { return r.allocated_at_rest.count; }},
    RowField{"reserved_peak_bytes", "what it would hold from the device",
             [](R r) -> V { return r.reserved_peak.count; }},
    RowField{"allocator_retries", "requests that had the whole cache released first",
             [](R r) -> V { return r.allocator_retries; }},
    RowField{"saved_per_op_bytes", "saved activations, each op's own counted",
             [](R r) -> V { return r.saved.per_op.count; }},
    RowField{"saved_unique_bytes", "saved activations, each storage counted once",
             [](R r) -> V { return r.saved.unique.count; }},
    RowField{"pinned_host_bytes", "host memory that copies of offloaded tensors take at once",
             [](R r) -> V { return r.pinned.count; }},
    RowField{"step_ns", "one training step", [](R r) -> V { return r.step.count(); }},
    RowField{"samples_per_s", "samples trained per second",
             [](R r) -> V { return r.samples_per_second; }},
    RowField{"throughput_per_s", "the same in tokens or images",
             [](R r) -> V { return r.throughput; }},
    RowField{"throughput_unit", "tokens, images, or samples where it is neither",
             [](R r) -> V { return std::string(r.throughput_unit); }},
    RowField{"mfu",
             "model FLOPs utilization: FLOP of the network's matrix products, forward and backward "
             "without recomputation, over the step's time and the device's nominal rate",
             [](R r) -> V { return r.mfu; }},
    RowField{"recompute_ns", "of all ops that run again or are inverted, in the step on one stream",
             [](R r) -> V { return r.recovery.alone.count(); }},
    RowField{"hidden_recompute_ns", "how much shorter the step is than on one stream",
             [](R r) -> V { return r.recovery.hidden.count(); }},
    RowField{"communication_ns", "collectives among the ranks of the mesh",
             [](R r) -> V { return r.communication.alone.count(); }},
    RowField{"exposed_communication_ns", "of these, while nothing computes",
             [](R r) -> V { return r.communication.exposed.count(); }},
    RowField{"bubble_ns", "while the rank waits for other pipeline stages",
             [](R r) -> V { return r.bubble.count(); }},
    RowField{"overlap_ns", "time with two streams busy",
             [](R r) -> V { return r.overlap.count(); }},
    RowField{"launch_bound", "the device waits for the host for more than 10 % of the step",
             [](R r) -> V { return r.launch_bound; }},
    RowField{"fits", "nothing runs out of memory", [](R r) -> V { return r.fits; }},
    RowField{"short_by_bytes", "allocated peak above what there is room for",
             [](R r) -> V { return r.short_by.count; }},
    RowField{"fits_expandable", "kept out by fragmentation: does it fit with expandable segments?",
             [](R r) { return or_nothing(r.fits_expandable); }},
    RowField{"largest_batch", "up to which every batch fits (with --max-batch)",
             [](R r) -> V { return r.batches ? V(r.batches->every) : V(); }},
    RowField{"largest_batch_at_all", "that fits, though some below it do not",
             [](R r) -> V { return r.batches ? V(r.batches->largest) : V(); }},
    RowField{"batches_cut_short", "more batches were in question than are tried",
             [](R r) -> V { return r.batches ? V(r.batches->cut_short) : V(); }},
    RowField{"largest_batch_expandable",
             "up to which every batch fits with expandable segments, where that may differ",
             [](R r) -> V { return r.expandable_batches ? V(r.expandable_batches->every) : V(); }},
    RowField{"memory_ratio", "allocated peak over vanilla's",
             [](R r) { return or_nothing(r.memory_ratio); }},
    RowField{"time_ratio", "time of the step over vanilla's",
             [](R r) { return or_nothing(r.time_ratio); }},
    RowField{"saved_ratio", "units per op of the middle block over vanilla's",
             [](R r) { return or_nothing(r.saved_ratio); }},
    RowField{"peak_at", "the run during which the live bytes peak",
             [](R r) -> V { return r.peak_at; }},
};

}  // namespace

std::string field_text(const FieldValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

std::span<const RowField> row_fields() { return fields; }

FieldValue value_of(const RowField& field, const Report& row) {
  return row.applies || field.always ? field.of(row) : FieldValue();
}

}  // namespace tidemark::cli
