// A recorded update, where ranks share what it was an update of.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// A recorded step whose optimizer has its states, and takes its temporaries, as the row of that
/// optimizer says, for tensors of any size: the recorded ones are of whole parameters. InputError
/// if the optimizer is none of those with a row, or kept something else.
Trace with_update_by_its_row(Trace recorded);

}  // namespace tidemark
