/* A CUDA runtime, cuBLAS and driver for a machine without a GPU: one device of a chosen compute
 * capability, whose memory is address space of the host and whose kernels do nothing. Preloaded, it
 * lets PyTorch run a training step on real CUDA tensors in its real caching allocator; only the
 * numbers in the tensors mean nothing. What is not written here answers 0 ("success"): stand_in.py
 * makes those answers from the list of what PyTorch's libraries import.
 *
 * Built for one CUDA major version, against the headers of the nvidia-cuda-runtime wheel. */
#include <driver_types.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))

/* Kernels that would have run: launches and calls of cuBLAS. */
API long stand_in_launches;

static int capability(void) {
  const char* text = getenv("STAND_IN_SM");
  return text ? atoi(text) : 80;
}
/* Streaming multiprocessors: of the A100, H100 and the smaller ones that people rent. */
static int multiprocessors(void) {
  const char* text = getenv("STAND_IN_MULTIPROCESSORS");
  if (text) return atoi(text);
  switch (capability()) {
    case 75: return 40;
    case 86: return 84;
    case 89: return 128;
    case 90: return 132;
    default: return 108;
  }
}

/* What the device that is asked about has, which is told alone: a step of any size runs. */
static size_t memory(void) {
  const char* text = getenv("STAND_IN_MEMORY");
  return text ? strtoull(text, 0, 10) : (size_t)1 << 40;
}
static const char* name(void) {
  const char* text = getenv("STAND_IN_NAME");
  return text ? text : "stand-in";
}

/* The device. Zeros would be divided by: reductions and CUB compute with these figures. */
static const struct { enum cudaDeviceAttr key; int value; } attributes[] = {
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 166912},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 167936}};

API cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr key, int device) {
  (void)device;
  *value = 0;
  if (key == cudaDevAttrComputeCapabilityMajor) *value = capability() / 10;
  if (key == cudaDevAttrComputeCapabilityMinor) *value = capability() % 10;
  if (key == cudaDevAttrMultiProcessorCount) *value = multiprocessors();
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i)
    if (attributes[i].key == key) *value = attributes[i].value;
  return cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int device) {
  (void)device;
  memset(p, 0, sizeof *p);
  strncpy(p->name, name(), sizeof p->name - 1);
  p->major = capability() / 10, p->minor = capability() % 10;
  p->multiProcessorCount = multiprocessors();
  p->warpSize = 32, p->maxThreadsPerBlock = 1024, p->maxThreadsPerMultiProcessor = 2048;
  p->totalGlobalMem = memory();
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 166912, p->sharedMemPerMultiprocessor = 167936;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 40 << 20;
  p->maxGridSize[0] = 2147483647, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp* p, int device) {
  return cudaGetDeviceProperties(p, device);
}
API cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
API cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
API cudaError_t cudaDriverGetVersion(int* v) { return *v = STAND_IN_VERSION, cudaSuccess; }
API cudaError_t cudaRuntimeGetVersion(int* v) { return *v = STAND_IN_VERSION, cudaSuccess; }
API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  (void)device;
  strncpy(text, "0000:00:00.0", (size_t)size);
  return cudaSuccess;
}
API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* function) {
  (void)function;
  memset(a, 0, sizeof *a);
  a->ptxVersion = a->binaryVersion = capability();
  a->maxThreadsPerBlock = 1024, a->numRegs = 32, a->maxDynamicSharedSizeBytes = 49152;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                              int threads, size_t memory) {
  (void)function, (void)threads, (void)memory;
  return *blocks = 2, cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, size_t memory, unsigned flags) {
  (void)flags;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, memory);
}

/* Memory: pages that nothing touches cost nothing, so a step of any size runs on a small machine. */
/* Each time behind the last: of free blocks of one size PyTorch's allocator takes the lowest. */
static cudaError_t address_space(void** p, size_t bytes) {
  static const size_t granularity = (size_t)2 << 20;
  static char* next = (char*)((size_t)1 << 44);
  *p = mmap(next, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*p == MAP_FAILED) return cudaErrorMemoryAllocation;
  next = (char*)*p + (bytes + granularity - 1) / granularity * granularity;
  return cudaSuccess;
}
API cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
  (void)flags;
  return address_space(p, bytes);
}

/* Of the device's memory: what is taken, and by whom. Addresses are not used again. */
static struct { void* at; size_t bytes; }* segments;
static size_t segment_count, taken;
API cudaError_t cudaMalloc(void** p, size_t bytes) {
  const cudaError_t error = address_space(p, bytes);
  if (error != cudaSuccess) return error;
  if ((segment_count & (segment_count - 1)) == 0)
    segments = realloc(segments, (segment_count ? 2 * segment_count : 1) * sizeof *segments);
  segments[segment_count].at = *p, segments[segment_count++].bytes = bytes;
  return taken += bytes, cudaSuccess;
}
API cudaError_t cudaFree(void* p) {
  for (size_t i = segment_count; i-- > 0;)
    if (segments[i].at == p) return taken -= segments[i].bytes, segments[i].bytes = 0, cudaSuccess;
  return cudaSuccess;
}
API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = memory();
  return *free = taken < *total ? *total - taken : 0, cudaSuccess;
}
/* Small copies are real: a model that looks at a mask or a flag sees what was put there. */
static void copy(void* to, const void* from, size_t bytes) {
  if (bytes <= (size_t)1 << 20) memcpy(to, from, bytes);
}
API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  return copy(to, from, bytes), cudaSuccess;
}
API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                cudaStream_t stream) {
  (void)kind, (void)stream;
  return copy(to, from, bytes), cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) {
  (void)p;
  memset(a, 0, sizeof *a);
  a->type = cudaMemoryTypeDevice;
  return cudaSuccess;
}

/* Streams, events and handles are numbers. */
static void* next_handle(void) {
  static size_t n = 16;
  return (void*)(n += 16);
}
API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  (void)flags, (void)priority;
  return *stream = (cudaStream_t)next_handle(), cudaSuccess;
}
API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  (void)stream;
  return *priority = 0, cudaSuccess;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  (void)stream;
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                            enum cudaStreamCaptureStatus* status, ...) {
  return cudaStreamIsCapturing(stream, status);
}
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  (void)flags;
  return *event = (cudaEvent_t)next_handle(), cudaSuccess;
}
API cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  (void)begin, (void)end;
  return *ms = 0, cudaSuccess;
}
API cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                        int* status);

API int cublasCreate_v2(void** handle) { return *handle = next_handle(), 0; }
API int cublasGetMathMode(void* handle, int* mode) { return (void)handle, *mode = 0, 0; }
API int cublasGetPointerMode_v2(void* handle, int* mode) { return (void)handle, *mode = 0, 0; }
API int cublasLtCreate(void** handle) { return *handle = next_handle(), 0; }
API int cublasLtMatmulDescCreate(void** p, int compute, int scale) {
  return (void)compute, (void)scale, *p = next_handle(), 0;
}
API int cublasLtMatmulPreferenceCreate(void** p) { return *p = next_handle(), 0; }
API int cublasLtMatrixLayoutCreate(void** p, int type, unsigned long rows, unsigned long columns,
                                   long stride) {
  return (void)type, (void)rows, (void)columns, (void)stride, *p = next_handle(), 0;
}
/* One algorithm fits: the result is a zeroed cublasLtMatmulHeuristicResult_t of 96 bytes. */
API int cublasLtMatmulAlgoGetHeuristic(void* handle, void* operation, void* a, void* b, void* c,
                                       void* d, void* preference, int asked, void* results,
                                       int* found) {
  (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)asked;
  memset(results, 0, 96);
  return *found = 1, 0;
}

API int cufftCreate(int* plan) { return *plan = 1, 0; }
API int cufftXtMakePlanMany(int plan, int rank, long long* n, long long* in, long long in_stride,
                            long long in_distance, int in_type, long long* out,
                            long long out_stride, long long out_distance, int out_type,
                            long long batch, size_t* workspace, int type) {
  (void)plan, (void)rank, (void)n, (void)in, (void)in_stride, (void)in_distance, (void)in_type;
  (void)out, (void)out_stride, (void)out_distance, (void)out_type, (void)batch, (void)type;
  return *workspace = 0, 0; /* what a plan takes, a GPU alone knows */
}
