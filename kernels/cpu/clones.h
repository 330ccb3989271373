// One loop, compiled for several instruction sets; the loader picks the best of the machine's.
#pragma once

// The build allows no fused multiply-add (-ffp-contract=off), so all clones give the same bits.
// Sanitizers cannot run the picking function that early.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TIDEMARK_CLONES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TIDEMARK_CLONES
#endif
#endif
#if !defined(TIDEMARK_CLONES)
#if defined(__x86_64__) && defined(__gnu_linux__)
#define TIDEMARK_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TIDEMARK_CLONES
#endif
#endif

/// For what a clone calls: it must become part of the clone.
#define TIDEMARK_INLINE __attribute__((always_inline)) inline
