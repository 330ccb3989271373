// What files of devices and clusters have in common: figures with their sources, and plain names.
#pragma once

#include "base/json_reader.h"
#include "simulator/cost/device.h"

namespace tidemark {

/// Text that may be printed on a terminal as it is, up to 1000 characters. Throws InputError.
std::string plain_text(const JsonView& view);
/// Up to 64 of a-z, 0-9 and '-'. Throws InputError.
std::string plain_name(const JsonView& view);
/// The "kind" and "source" beside a figure's value. Throws InputError.
FigureSource read_source(const JsonView& figure);

/// A string of JSON.
std::string json_quoted(const std::string& text);
/// "2.04e12" rather than 2040000000000, because people read these files; exact in either form.
std::string number_text(double number);
/// {"value": …, "kind": …, "source": …}
std::string sourced(const std::string& value, const FigureSource& source);
/// As people read it: "312 TFLOP/s".
std::string display_text(double number, std::string_view unit);

}  // namespace tidemark
