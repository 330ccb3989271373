// Regions of a plan, in order: how strategies add theirs.
#pragma once

#include "simulator/plan.h"

namespace tidemark {

/// Regions inside of the new one have nothing left to recover on their own.
void add_region(Plan& plan, Region region);

/// Neighbours are of one chain.
void number_chains(Plan& plan);

}  // namespace tidemark
