// The part of NVTX's injection interface that is used, as numbers and plain structs; a test
// compares them with NVIDIA's header where there is one. What programs say through it are named
// ranges.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::recorder::nvtx {

inline constexpr std::uint32_t callbacks_table = 1;      // NVTX_ETID_CALLBACKS
inline constexpr int module_core = 1, module_core2 = 5;  // NVTX_CB_MODULE_…
enum CoreCallback : std::uint32_t {                      // NVTX_CBID_CORE_…
  core_range_start_ex = 4,
  core_range_start_a = 5,
  core_range_end = 7,
  core_range_push_ex = 8,
  core_range_push_a = 9,
  core_range_pop = 11,
};
enum Core2Callback : std::uint32_t {  // NVTX_CBID_CORE2_…
  core2_domain_range_start_ex = 2,
  core2_domain_range_end = 3,
  core2_domain_range_push_ex = 4,
  core2_domain_range_pop = 5,
  core2_domain_register_string_a = 10,
};

inline constexpr std::int32_t message_ascii = 1, message_registered = 3;

struct EventAttributes {  // nvtxEventAttributes_v2
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};

using AnyFunction = void (*)();

struct Callbacks {  // NvtxExportTableCallbacks
  std::size_t size;
  int (*get_module_function_table)(int module, AnyFunction*** table, unsigned int* size);
};
using GetExportTable = const void* (*)(std::uint32_t table);

/// Puts our functions into the tables of one of the program's modules. False where it has none.
bool attach(GetExportTable get_export_table);

}  // namespace tidemark::recorder::nvtx
