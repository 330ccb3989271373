// Joins the CPU backend with its kernels; apart, so that tests of either need not link the other.
#include "kernels/cpu/cpu_backend.h"

namespace tidemark {

std::unique_ptr<Backend> make_cpu_backend() { return make_cpu_backend({.run = cpu::run}); }

}  // namespace tidemark
