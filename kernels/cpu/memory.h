// Memory of the CPU backend, and how much of it there is.
#pragma once

#include <memory>
#include <optional>

#include "kernels/backend.h"

namespace tidemark::cpu {

/// All that the machine has, whoever uses it.
Bytes physical_memory();

/// What may be taken without swapping or being killed, and what says so: "MemAvailable of
/// /proc/meminfo". Unset where the system does not tell.
struct MemoryLimit {
  Bytes size;
  std::string source;
};
std::optional<MemoryLimit> available_memory();

/// Zero-filled pages that the system backs when they are first touched, so that a process is as
/// large as what it used. `taken` is raised by the size until the memory is freed. InputError if
/// the system refuses, with the limit that did it.
std::unique_ptr<Memory> map_memory(Bytes size, std::shared_ptr<Bytes> taken);

}  // namespace tidemark::cpu
