// Lists each group's count, kind, operand, shape, dtype and bytes.
#include "cli/reports/saved_listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/item_facts.h"
#include "cli/reports/listing.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {

std::string print_saved_groups(const Trace& trace, Format format, const Style& style) {
  const Plan vanilla = keep_everything(trace);
  const Derived derived = derive(trace, vanilla);
  const std::vector<SavedGroup> groups = saved_groups(trace, derived.needs);
  Listing listing{{{"count", "count", Align::Right},
                   {"kind", "kind"},
                   {"operand", "operand"},
                   {"shape", "shape"},
                   {"dtype", "dtype"},
                   {"storage_bytes", "bytes each", Align::Right},
                   {"sum_bytes", "bytes together", Align::Right}},
                  {}};
  for (const SavedGroup& group : groups)
    listing.rows.push_back({{group.count},
                            {group.op},
                            {operand_text(group.operand)},
                            {to_text(group.shape)},
                            {std::string(to_string(group.dtype))},
                            {group.storage.count},
                            {group.count * group.storage.count}});
  std::string text = print(listing, format, style);
  if (format != Format::Table) return text;
  const SavedBytes saved = saved_bytes(trace, vanilla, derived);
  return text + fmt::format(
                    "\nTogether {} B when a tensor counts once per kind of op, {} B when each "
                    "storage counts once.\nParameters are not counted.\n",
                    saved.per_op.count, saved.unique.count);
}

}  // namespace tidemark::cli
