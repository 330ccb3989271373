// One row per figure.
#include "cli/reports/figure_listing.h"

namespace tidemark::cli {

FieldValue number_of(const Figure& figure) {
  const auto whole = static_cast<std::int64_t>(figure.number);
  if (static_cast<double>(whole) == figure.number) return whole;
  return figure.number;
}

ListCell kind_cell(const FigureSource& source) {
  return {std::string(figure_kind_names[static_cast<std::size_t>(source.kind)])};
}

Listing figure_listing(std::span<const Figure> figures) {
  Listing listing{{{"figure", "figure"},
                   {"value", "value", Align::Right},
                   {"unit", "unit"},
                   {"kind", "known by"},
                   {"source", "source", Align::Wrapped}},
                  {}};
  for (const Figure& figure : figures)
    listing.rows.push_back({{figure.key},
                            {number_of(figure), figure.text},
                            {figure.unit, ""},
                            kind_cell(figure.source),
                            {figure.source.text}});
  return listing;
}

}  // namespace tidemark::cli
