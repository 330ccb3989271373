// The figures of a device or a cluster as a list, each with its source.
#pragma once

#include <span>

#include "cli/reports/listing.h"
#include "simulator/cost/device.h"

namespace tidemark::cli {

/// Bytes, counts and nanoseconds are whole numbers.
FieldValue number_of(const Figure& figure);

/// Columns figure, value, unit, kind and source.
Listing figure_listing(std::span<const Figure> figures);

/// Of the column that says how a figure is known.
ListCell kind_cell(const FigureSource& source);

}  // namespace tidemark::cli
