// What other budgets would cost a pipeline, each the same for all of its stages.
#pragma once

#include "analysis/planning/stage_searches.h"

namespace tidemark {

/// So many points as the request wants, at equal distances in memory; in each the stages' plans.
PlanFront front_of_stages(const StageSearches& searches, const Planning& planning,
                          const PlanWatch& watch);

}  // namespace tidemark
