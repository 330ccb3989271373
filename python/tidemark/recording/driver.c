/* A CUDA driver with one device and a primary context, for PyTorch's checks that it is there. */
#define API __attribute__((visibility("default")))
API int cuInit(unsigned flags) { return (void)flags, 0; }
API int cuDeviceGetCount(int* count) { return *count = 1, 0; }
API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return (void)device, *flags = 0, *active = 1, 0;
}
API int cuGetErrorString(int error, const char** text) { return (void)error, *text = "none", 0; }
API int cuCtxGetCurrent(void** context) { return *context = (void*)4096, 0; }
/* NVRTC 13 looks for a table of the driver that nobody has written down; without one it compiles. */
API int cuGetExportTable(const void** table, const void* id) {
  return (void)id, *table = 0, 500;  /* CUDA_ERROR_NOT_FOUND */
}
/* What loads kernels that are compiled while the program runs. */
#define ANSWER(name) API int name(void) { return 0; }
ANSWER(cuDevicePrimaryCtxRetain) ANSWER(cuCtxSetCurrent) ANSWER(cuModuleLoadData)
ANSWER(cuModuleLoadDataEx) ANSWER(cuModuleUnload) ANSWER(cuModuleGetFunction)
ANSWER(cuLaunchKernel) ANSWER(cuLaunchKernelEx) ANSWER(cuLaunchCooperativeKernel)
ANSWER(cuFuncGetAttribute) ANSWER(cuFuncSetAttribute) ANSWER(cuLinkCreate)
ANSWER(cuLinkAddData) ANSWER(cuLinkComplete) ANSWER(cuStreamWriteValue32)
ANSWER(cuTensorMapEncodeTiled) ANSWER(cuOccupancyMaxActiveBlocksPerMultiprocessor)
