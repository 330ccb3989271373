// Memory from mmap, and the limits of the machine.
#include "kernels/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace tidemark::cpu {
namespace {

class Mapping final : public Memory {
 public:
  Mapping(std::byte* data, Bytes size, std::shared_ptr<Bytes> taken)
      : data_(data), size_(size), taken_(std::move(taken)) {
    *taken_ += size_;
  }
  ~Mapping() override {
    munmap(data_, static_cast<std::size_t>(size_.count));
    *taken_ -= size_;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const override { return data_; }
  Bytes size() const override { return size_; }

 private:
  std::byte* data_;
  Bytes size_;
  std::shared_ptr<Bytes> taken_;  ///< shared: the memory may outlive its backend
};

std::optional<MemoryLimit> of_meminfo() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kib = 0;
  for (std::string rest; file >> key >> kib; std::getline(file, rest)) {
    if (key == "MemAvailable:") {
      return MemoryLimit{Bytes{kib * 1024}, "MemAvailable of /proc/meminfo"};
    }
  }
  return {};
}

/// The limit of the control group that this process is in, such as a container's; version 2.
std::optional<MemoryLimit> of_control_group() {
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    if (!line.starts_with("0::")) continue;
    std::string path = "/sys/fs/cgroup" + line.substr(3);
    if (!path.ends_with('/')) path += '/';
    path += "memory.max";
    std::int64_t bytes = 0;  // reading fails for the word "max": no limit
    if (std::ifstream(path) >> bytes) return MemoryLimit{Bytes{bytes}, path};
  }
  return {};
}

/// A sentence about the limit of the process's address space, if it has one.
std::string address_space_note() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; the process may address {} (ulimit -v)",
                     to_text(Bytes{static_cast<std::int64_t>(limit.rlim_cur)}));
}

}  // namespace

Bytes physical_memory() { return {std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE)}; }

std::optional<MemoryLimit> available_memory() {
  const std::optional<MemoryLimit> machine = of_meminfo(), group = of_control_group();
  if (!machine || (group && group->size < machine->size)) return group;
  return machine;
}

std::unique_ptr<Memory> map_memory(Bytes size, std::shared_ptr<Bytes> taken) {
  // At least one page: mmap refuses an empty mapping.
  const Bytes mapped = std::max(size, Bytes{1});
  // Not reserved: whether it fits is decided by available_memory(), not by the overcommit setting.
  void* data = mmap(nullptr, static_cast<std::size_t>(mapped.count), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw InputError(fmt::format("cannot allocate {} of memory: {}{}", to_text(size),
                                 std::strerror(errno), address_space_note()));
  }
  return std::make_unique<Mapping>(static_cast<std::byte*>(data), mapped, std::move(taken));
}

}  // namespace tidemark::cpu
