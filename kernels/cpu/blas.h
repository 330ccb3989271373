// OpenBLAS's matrix product, loaded when it is first needed. As the library is loaded it starts
// threads that each take 128 MiB of address space, which commands that multiply nothing should not
// pay, nor wait for where the address space is limited.
#pragma once

#include <cblas.h>

namespace tidemark::cpu {

using Sgemm = decltype(&cblas_sgemm);

/// InputError if the library is not there. It runs on the calling thread: every stream is a thread
/// already, and two streams were measured at twice the rate of one.
Sgemm sgemm();

}  // namespace tidemark::cpu
