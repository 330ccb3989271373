// Makes every case of tests/emulation run on the GPU too: this program is those tests, with what
// follows. One set of shapes, layouts and dtypes serves both machines.
#include <cstdlib>

#include "base/error.h"
#include "kernels/cuda_plugin.h"
#include "tests/emulation/leading_call.h"
#include "tests/gpu/gpu.h"

namespace tidemark {
namespace {

struct Gpu {
  std::unique_ptr<Backend> backend;
  std::string why_not;
};

Gpu find_gpu() {
  try {
    if (plugin_of_tests().empty()) throw NoDevice("built without a CUDA toolkit");
    if (!has_nvidia_driver()) throw NoDevice("no NVIDIA driver is installed (libcuda.so.1)");
    return {load_cuda_backend(plugin_of_tests()), ""};
  } catch (const InputError& error) {
    return {nullptr, error.what()};
  }
}

const Gpu& found_gpu() {
  static const Gpu gpu = find_gpu();
  return gpu;
}

/// The arrays of a case in memory of the GPU, and calls on the host's arrays moved there.
class Moved {
 public:
  Moved(Backend& backend, std::vector<TestArray>& arrays) : backend_(backend), arrays_(arrays) {
    for (const TestArray& array : arrays) {
      const Bytes size{static_cast<std::int64_t>(array.bytes().size())};
      memory_.push_back(backend.allocate(size, MemoryKind::Device));
      backend.upload(memory_.back()->data(), array.bytes().data(), size);
    }
  }

  Call move(Call call) const {
    for (auto* list : {&call.inputs, &call.outputs, &call.d_outputs, &call.d_inputs})
      for (Array& array : *list) {
        array.data = moved(array.data);
        array.groups.first = moved(array.groups.first);
        array.groups.ranges = moved(array.groups.ranges);
        array.groups.codes = moved(array.groups.codes);
      }
    call.quantizer.ranges = moved(call.quantizer.ranges);
    return call;
  }
  /// Back to where they came from.
  void fetch() {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      auto* const to = const_cast<std::byte*>(arrays_[i].bytes().data());
      backend_.download(to, memory_[i]->data(), memory_[i]->size());
    }
  }

 private:
  template <typename T>
  T* moved(T* elements) const {
    const auto* const host = reinterpret_cast<const std::byte*>(elements);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const std::vector<std::byte>& bytes = arrays_[i].bytes();
      if (host >= bytes.data() && host < bytes.data() + bytes.size())
        return reinterpret_cast<T*>(memory_[i]->data() + (host - bytes.data()));
    }
    return nullptr;  // absent
  }

  Backend& backend_;
  std::vector<TestArray>& arrays_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

std::vector<TestArray> run_on_gpu(const TwinCase& test, const LeadingCall& name) {
  std::vector<TestArray> arrays = test.memory;
  Moved moved(*gpu(), arrays);
  Call call = moved.move(test.bind(arrays));
  call.pass = name.pass, call.kind = name.kind;
  if (call.formula == Formula{}) call.formula = name.formula;  // one kernel may have several
  gpu()->begin_step(1, 0, test.state);
  gpu()->run(0, 0, call);
  gpu()->finish();
  moved.fetch();
  return arrays;
}

/// Products in another order, and the GPU's own exp and erf: some roundings more than the
/// emulation, which shares the CPU's library, is allowed.
constexpr double gpu_slack = 4;

void expect_gpu_twin(const TwinCase& test, CpuKernel on_cpu, const std::vector<TestArray>& wanted) {
  const LeadingCall& name = *leading_call(on_cpu);  // expect_twins() has asked for it
  std::vector<TestArray> got = run_on_gpu(test, name);
  const std::vector<TestArray> again = run_on_gpu(test, name);
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect_like(test, i, got[i], wanted[i], gpu_slack, "on the GPU");
    EXPECT_TRUE(got[i].is_intact()) << "on the GPU: array " << i << ": written beside its elements";
    EXPECT_EQ(got[i].bytes(), again[i].bytes()) << "array " << i << " differs from run to run";
  }
}

/// Without a GPU every test of this program is skipped, with the reason, before it begins. (A
/// global environment that skips would leave them green.)
class OnlyWithGpu : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { TIDEMARK_NEEDS_GPU(); }
};

const bool is_set = [] {
  device_check = expect_gpu_twin;
  testing::UnitTest::GetInstance()->listeners().Append(new OnlyWithGpu);
  return true;
}();

}  // namespace

Backend* gpu() { return found_gpu().backend.get(); }
const std::string& why_no_gpu() { return found_gpu().why_not; }

std::string plugin_of_tests() {
  if (const char* const chosen = std::getenv("TIDEMARK_CUDA_PLUGIN")) return chosen;
#if defined(TIDEMARK_CUDA_PLUGIN_FILE)
  return TIDEMARK_CUDA_PLUGIN_FILE;
#else
  return "";
#endif
}

}  // namespace tidemark
