// Which runs of a schedule are of what ranks exchange, and so of no stage.
#pragma once

#include "simulator/schedule.h"

namespace tidemark {

/// Is the run on a lane of exchanges, or between tensors and their buffers? No plan of stages
/// changes any of them.
inline bool is_of_exchange(const Run& run) {
  return run.stream != StreamId::Compute || run.task == Task::Pack || is_collective(run.task);
}

}  // namespace tidemark
