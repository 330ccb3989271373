// What the program does with memory that it has freed.
#pragma once

namespace tidemark {

/// Keeps it for what is allocated next, instead of giving it back to the system and asking again:
/// one strategy after the other needs the same megabytes, and each page that comes back new costs
/// as much as computing what stands in it. Called once, before other threads start.
void keep_freed_memory();

}  // namespace tidemark
