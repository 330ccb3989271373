// Runs a text script of allocations through the caching-allocator model. Example:
//   cap 20971520       bytes of the device (80 GiB if absent)
//   conf max_split_size_mb:64     what PYTORCH_CUDA_ALLOC_CONF would say
//   frac 0.9           per-process memory fraction; these three come first, each at most once
//   a 1 5242880 0      allocate: id, bytes, stream
//   r 1 4096           record_stream: id, stream
//   f 1                free: id
//   e 4096             all work queued on the stream so far is complete: stream
//   c                  empty_cache
// Blank lines and lines that begin with # mean nothing.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::allocator {

/// One line per operation: its letter, the address (hexadecimal; 0 for all but a successful `a`),
/// all counters after it, and OOM if the request failed:
///   a 7f0000000000 al=5242880 ac=5242880 rs=20971520 rq=5242880 sg=1 ab=1 is=1 isb=15728640 rt=0 …
/// Throws InputError "file:line: what is wrong; what would be right".
std::string run_allocator_script(std::string_view text, std::string_view file_name);

}  // namespace tidemark::allocator
