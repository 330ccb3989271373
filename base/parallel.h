// The same work for many items, on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace tidemark {

/// At least one.
std::size_t core_count();

/// Calls `work(i)` once for each i in [0, count), on as many threads as there are cores, the
/// caller's among them; items are begun in order and the call returns when all are done. `work`
/// must not touch what another item writes. Called from within `work` it takes that one thread.
///
/// If items throw, no further ones are begun, and the caller gets the exception of the lowest item:
/// the one that a plain loop would have met first.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace tidemark
