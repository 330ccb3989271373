// What other options of the step would make of a budget: each is planned for by itself.
#pragma once

#include "analysis/planning/planning.h"

namespace tidemark {

/// Where nothing keeps the budget: the levers that lower the smallest plan, those that keep it
/// first. Where the loss is what binds a plan that costs time: its levers that make it faster.
/// Planned for as the request is, in its class and form. What a lever changes by less than a
/// thousandth is not worth its name.
std::vector<Advice> advice_for(const Planning& planning, const PlanWatch& watch = {});

}  // namespace tidemark
