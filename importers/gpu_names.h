// What runs on a GPU, as people read it.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark::importers {

/// "void f<int>(int*)", mangled or not → "f<int>": the parameters follow from the rest, mostly. Of
/// mangled names that may stand for megabytes only the beginning: "cutlass::device_kernel<…>".
std::string kernel_name(const std::string& name);

/// `kind` as CUPTI numbers copies, which Nsight Systems does, too.
std::string copy_name(std::int64_t kind, bool is_pageable);

/// What was asked of the driver, by its kind.
inline constexpr const char* driver_memory_name = "(from the driver)";
inline constexpr const char* pool_memory_name = "(from a pool of the driver)";
inline constexpr const char* managed_memory_name = "(managed memory)";
inline constexpr const char* static_memory_name = "(variables of modules)";

}  // namespace tidemark::importers
