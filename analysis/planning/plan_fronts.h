// What other budgets would cost, in each class of plans that the request allows.
#pragma once

#include "analysis/planning/plan_searches.h"

namespace tidemark {

/// `searches`: of the request's own class, whose front is the last. The first is that of exact
/// plans, so that what more freedom buys can be seen; none is given twice.
std::vector<PlanFront> fronts_of(const PlanSearches& searches, const Planning& planning,
                                 const PlanWatch& watch);

/// Behind those that are there, if it is faster; of what needs as much or more, instead.
void add_point(FrontPoint point, PlanFront& front);

/// Budgets, and each front's fastest point within it, by front; nothing where it has none.
struct FrontRow {
  Bytes budget;
  std::vector<const FrontPoint*> points;
};
/// The smallest budget first. Rows in which no front is faster than in the one before are left out;
/// of more than `most` (at least 2) so many stay, from end to end.
std::vector<FrontRow> rows_of(const std::vector<PlanFront>& fronts, std::size_t most);

}  // namespace tidemark
