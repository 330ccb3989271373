// What `tidemark record` has loaded into a process: the driver loads the library that
// CUDA_INJECTION64_PATH names when CUDA starts, and NVTX's headers the one of NVTX_INJECTION64_PATH
// at the first range. Whatever comes first begins the recording; nothing that goes wrong stops the
// program.
#include "recorder/nvtx.h"
#include "recorder/run_recorder.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int InitializeInjection();
EXPORTED int InitializeInjection() {
  if (tidemark::recorder::start_run()) tidemark::recorder::record_gpu();
  return 1;
}

// For what runs in a recorded process of Python (python/recorded_process): its handler may take the
// time that it needs, but not for ever.
EXPORTED int tidemark_let_handler_answer(int signal);
EXPORTED int tidemark_let_handler_answer(int signal) {
  return tidemark::recorder::start_run() && tidemark::recorder::let_handler_answer(signal);
}

EXPORTED void tidemark_end_by_signal(int signal);
EXPORTED void tidemark_end_by_signal(int signal) { tidemark::recorder::end_by_signal(signal); }

EXPORTED int InitializeInjectionNvtx2(tidemark::recorder::nvtx::GetExportTable get_export_table);
EXPORTED int InitializeInjectionNvtx2(tidemark::recorder::nvtx::GetExportTable get_export_table) {
  return tidemark::recorder::start_run() && tidemark::recorder::nvtx::attach(get_export_table);
}
