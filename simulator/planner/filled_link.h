// Plans that fill the link to the host: what the forward no longer reads leaves, first come, first
// served, and nobody ever waits for a copy.
//   forward    make a   make b   make c   …        each takes the link twice as long as its op
//   copies out          [    a    ][    b    ]     c would not have left by the end: it stays
//   backward   gradients of c   of b   of a
//   copies in   [    b    ][    a    ]             each as late as those behind it allow
#pragma once

#include "simulator/cost/device.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// The step's plan, which offloads nothing, with as many of these storages on the host as the link
/// carries beside the step, in all at most so many bytes: those that it keeps, have left when the
/// forward's last op begins and need not come back before the backward does. In a step of several
/// micro-batches, copies run as the first one's clock says.
Plan fill_link(const PlannedStep& step, const std::vector<TensorId>& may_leave,
               const Device& device, Bytes most);

}  // namespace tidemark
