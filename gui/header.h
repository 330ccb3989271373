// What a step takes, in the words of the row above everything, and what it was asked with.
#pragma once

#include <string>
#include <vector>

#include "gui/opened.h"
#include "gui/what_if.h"

namespace tidemark::gui {

/// A number with what it means. In a narrow window the last ones are left out.
struct Gauge {
  std::string name, value;
  std::string change = {};   ///< "+22.4 GiB", where something was changed
  bool is_more = false;      ///< of the change
  bool is_too_much = false;  ///< more than there is
  std::string meaning;
  std::string widest = {};  ///< of value and change: what is beside must not move with them
};

/// Of a prediction its report; null for files. `before`: the report before the last change, or
/// null.
std::vector<Gauge> gauges_of(const Opened& opened, const Report* report, const Report* before);

/// Something that is not the default.
struct Chip {
  std::string key;  ///< of the step's field, or "strategy", "device", "budget", "allocator"
  std::string text;
};

/// What is asked.
std::vector<Chip> chips_of(const WhatIf& what_if);
/// What a recording is of: enough to tell it from others.
std::vector<Chip> chips_of(const Recording& recording);

}  // namespace tidemark::gui
