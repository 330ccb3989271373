// What follows from a trace and a plan. It is derived once, and whoever needs it gets it passed.
#pragma once

#include "simulator/graph/recovery.h"
#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

struct Derived {
  Needs needs;
  Recovery recovery;
};

/// As check(trace, plan), given the trace's needs; adds the recovery of a plan without defects.
std::vector<std::string> check(const Trace& trace, const Plan& plan, Derived& derived);

/// The plan's sizes and regions must fit the trace.
Derived derive(const Trace& trace, const Plan& plan);

}  // namespace tidemark
