// A program that seems to use a GPU: it loads the library of CUDA_INJECTION64_PATH as a driver does
// and the one of NVTX_INJECTION64_PATH as NVTX's headers do, and lets the fake CUPTI
// (TIDEMARK_CUPTI) have records. Its arguments are done one after the other:
//   cupti=VERSION refuse=RESULT dropped=N take-over    how the fake behaves
//   cuda nvtx                                          each loads its library
//   kernels=N copy allocate=BYTES free pool            records, one after another in time
//   range=NAME end                                     of NVTX
//   fork sleep wait-for=FILE signal=N limit=BYTES print=VARIABLE exit=N
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>

#include "recorder/nvtx.h"
#include "tests/fake_libraries/fake_cupti.h"

namespace {

namespace cupti = tidemark::profiler::cupti;
namespace nvtx = tidemark::recorder::nvtx;

constexpr std::uint64_t segment = 0x7f0000000000;

void* load(const char* variable) {
  const char* const file = std::getenv(variable);
  void* const handle = file == nullptr ? nullptr : dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (file != nullptr && handle == nullptr) std::fprintf(stderr, "fake_target: %s\n", dlerror());
  return handle;
}

template <typename F>
F find(void* handle, const char* name) {
  return handle == nullptr ? nullptr : reinterpret_cast<F>(dlsym(handle, name));
}

void* fake() {
  static void* const handle = load("TIDEMARK_CUPTI");
  return handle;
}
cupti::FakeBehaviour& behaviour() {
  static cupti::FakeBehaviour none;
  const auto of = find<cupti::BehaviourOf>(fake(), "fake_cupti_behaviour");
  return of == nullptr ? none : *of();
}

/// Now, and then a microsecond later each time.
std::uint64_t next_time() {
  static std::uint64_t time = behaviour().clock;
  return time += 1000;
}

void add(const cupti::RecordWriter& writer) {
  if (const auto add_records = find<cupti::AddRecords>(fake(), "fake_cupti_add"))
    add_records(writer.bytes.data(), writer.bytes.size());
}

void add_kernels(int count) {
  static std::uint32_t correlation = 0;
  for (int i = 0; i < count; ++i) {
    cupti::RecordWriter writer(behaviour().version);
    const std::uint64_t begin = next_time();
    ++correlation;
    writer.begin(cupti::kind_runtime)
        .set(cupti::api::start, begin - 600)
        .set(cupti::api::end, begin - 500)
        .set(cupti::api::thread, static_cast<std::uint32_t>(::syscall(SYS_gettid)))
        .set(cupti::api::correlation, correlation);
    writer.kernel(begin, begin + 400, correlation)
        .set(cupti::kernel::name, reinterpret_cast<std::uint64_t>("_Z4gemmIfEvPT_"))
        .set(cupti::kernel::stream, 7)
        .set(cupti::kernel::registers, std::uint16_t{64});
    add(writer);
  }
}

void add_copy() {
  cupti::RecordWriter writer(behaviour().version);
  const std::uint64_t begin = next_time();
  writer.begin(cupti::kind_memcpy)
      .set(cupti::memcpy_record::copy_kind, cupti::memcpy_record::to_device)
      .set(cupti::memcpy_record::source_kind, std::uint8_t{1})
      .set(cupti::memcpy_record::bytes, 4096)
      .set(cupti::memcpy_record::start, begin)
      .set(cupti::memcpy_record::end, begin + 300)
      .set(cupti::memcpy_record::stream, 9);
  writer.begin(cupti::kind_memset)
      .set(cupti::memset_record::bytes, 512)
      .set(cupti::memset_record::start, begin + 400)
      .set(cupti::memset_record::end, begin + 500)
      .set(cupti::memset_record::stream, 9);
  add(writer);
}

void add_memory(std::uint32_t operation, std::uint64_t bytes) {
  cupti::RecordWriter writer(behaviour().version);
  writer.begin(cupti::kind_memory)
      .set(cupti::memory::operation, operation)
      .set(cupti::memory::memory_kind, cupti::memory::device)
      .set(cupti::memory::address, segment)
      .set(cupti::memory::bytes, bytes)
      .set(cupti::memory::time, next_time());
  add(writer);
}

void add_pool() {
  cupti::RecordWriter writer(behaviour().version);
  writer.begin(cupti::kind_memory_pool)
      .set(cupti::memory_pool::operation, 1)
      .set(cupti::memory_pool::type, 1)
      .set(cupti::memory_pool::size, 1 << 25)
      .set(cupti::memory_pool::time, next_time());
  add(writer);
}

// What NVTX's headers keep in each module of a program: places, and pointers to them.
nvtx::AnyFunction functions[2][16];
nvtx::AnyFunction* places[2][16];

int get_table(int module, nvtx::AnyFunction*** table, unsigned int* size) {
  const int i = module == nvtx::module_core2;
  for (int place = 1; place < 16; ++place) places[i][place] = &functions[i][place];
  return *table = places[i], *size = 16, 1;
}
const nvtx::Callbacks callbacks{sizeof(nvtx::Callbacks), get_table};
const void* export_table(std::uint32_t table) {
  return table == nvtx::callbacks_table ? &callbacks : nullptr;
}

void load_nvtx() {
  using Initialize = int (*)(nvtx::GetExportTable);
  if (const auto start =
          find<Initialize>(load("NVTX_INJECTION64_PATH"), "InitializeInjectionNvtx2"))
    start(export_table);
}
void push(const std::string& name) {
  using Push = int (*)(const char*);
  if (functions[0][nvtx::core_range_push_a] != nullptr)
    reinterpret_cast<Push>(functions[0][nvtx::core_range_push_a])(name.c_str());
}
void pop() {
  using Pop = int (*)();
  if (functions[0][nvtx::core_range_pop] != nullptr)
    reinterpret_cast<Pop>(functions[0][nvtx::core_range_pop])();
}

void load_cuda() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  behaviour().clock = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                      static_cast<std::uint64_t>(time.tv_nsec);
  using Initialize = int (*)();
  if (const auto start = find<Initialize>(load("CUDA_INJECTION64_PATH"), "InitializeInjection"))
    start();
}

void limit_files(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void fork_and_wait() {
  const pid_t child = ::fork();
  if (child == 0) push("of a child"), pop(), std::exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
}

void wait_for(const char* file) {
  while (::access(file, F_OK) != 0) ::usleep(2000);
}

using Action = std::function<void(const std::string& value)>;
const std::map<std::string, Action>& actions() {
  const auto number = [](const std::string& text) { return std::atoi(text.c_str()); };
  static const std::map<std::string, Action> table = {
      {"cupti", [=](auto& v) { behaviour().version = static_cast<std::uint32_t>(number(v)); }},
      {"refuse", [=](auto& v) { behaviour().enable_result = number(v); }},
      {"dropped", [=](auto& v) { behaviour().dropped = static_cast<std::size_t>(number(v)); }},
      {"take-over", [](auto&) { find<cupti::TakeOver>(fake(), "fake_cupti_take_over")(); }},
      {"cuda", [](auto&) { load_cuda(); }},
      {"nvtx", [](auto&) { load_nvtx(); }},
      {"kernels", [=](auto& v) { add_kernels(number(v)); }},
      {"copy", [](auto&) { add_copy(); }},
      {"allocate", [=](auto& v) { add_memory(1, static_cast<std::uint64_t>(number(v))); }},
      {"free", [](auto&) { add_memory(2, 0); }},
      {"pool", [](auto&) { add_pool(); }},
      {"range", [](auto& v) { push(v); }},
      {"end", [](auto&) { pop(); }},
      {"fork", [](auto&) { fork_and_wait(); }},
      {"sleep", [](auto&) { ::sleep(600); }},
      {"wait-for", [](auto& v) { wait_for(v.c_str()); }},
      {"touch", [](auto& v) { std::fclose(std::fopen(v.c_str(), "w")); }},
      {"signal", [=](auto& v) { std::raise(number(v)); }},
      {"crash", [](auto&) { *static_cast<volatile int*>(nullptr) = 1; }},
      {"limit", [=](auto& v) { limit_files(static_cast<rlim_t>(number(v))); }},
      {"print", [](auto& v) { std::puts(std::getenv(v.c_str()) ? std::getenv(v.c_str()) : "-"); }},
      {"_exit", [=](auto& v) { ::_exit(number(v)); }},
      {"exit", [=](auto& v) { std::exit(number(v)); }}};
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const auto action = actions().find(argument.substr(0, equals));
    if (action == actions().end()) return std::fprintf(stderr, "unknown: %s\n", argv[i]), 99;
    action->second(equals < argument.size() ? argument.substr(equals + 1) : "");
  }
  return 0;
}
