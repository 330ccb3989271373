// Ranges are kept on a stack per thread until they end, then queued. Their names are kept once
// each.
#include "recorder/nvtx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "recorder/run_recorder.h"

namespace tidemark::recorder::nvtx {
namespace {

/// Programs may put the number of the step into a name.
constexpr std::size_t most_names = 1 << 14;
/// What never ends would fill the memory.
constexpr std::size_t most_open = 1 << 12;

struct OpenRange {
  const void* domain;
  const std::string* name;
  std::uint64_t begin;
};

/// Ranges of all threads that have a number instead of a place on a stack.
struct Started {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, OpenRange> ranges;
  std::uint64_t last = 0;
};

Started& started() {
  static Started* const all = new Started;  // never destroyed: threads may outlive main()
  return *all;
}

const std::string* kept_name(const char* text) {
  struct Names {
    std::mutex mutex;
    std::unordered_set<std::string> texts;
    std::string others = "(others)";
  };
  static Names* const names = new Names;
  const std::lock_guard lock(names->mutex);
  const std::string name = text == nullptr ? "(no name)" : text;
  const auto found = names->texts.find(name);
  if (found != names->texts.end()) return &*found;
  if (names->texts.size() >= most_names) return count_name_left(), &names->others;
  return &*names->texts.insert(name).first;
}

const std::string* name_of(const EventAttributes* attributes) {
  if (attributes == nullptr || attributes->message == nullptr) return kept_name(nullptr);
  if (attributes->message_type == message_ascii)
    return kept_name(static_cast<const char*>(attributes->message));
  if (attributes->message_type == message_registered)
    return static_cast<const std::string*>(attributes->message);
  return kept_name("(a name in wide characters)");
}

std::vector<OpenRange>& open_ranges() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

void close_range(const OpenRange& range) {
  static thread_local const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  add_range({range.begin, now(), range.name, thread});
}

int push(const void* domain, const std::string* name) {
  if (!is_recording()) return -1;
  record_launches();
  std::vector<OpenRange>& open = open_ranges();
  if (open.size() < most_open) open.push_back({domain, name, now()});
  return static_cast<int>(open.size()) - 1;
}

int pop(const void* domain) {
  std::vector<OpenRange>& open = open_ranges();
  for (std::size_t i = open.size(); i-- > 0;) {
    if (open[i].domain != domain) continue;
    if (is_recording()) close_range(open[i]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return static_cast<int>(i);
  }
  return -1;
}

std::uint64_t start(const void* domain, const std::string* name) {
  if (!is_recording()) return 0;
  record_launches();
  const std::lock_guard lock(started().mutex);
  const std::uint64_t id = ++started().last;
  if (started().ranges.size() < most_open)
    started().ranges.emplace(id, OpenRange{domain, name, now()});
  return id;
}

void end(std::uint64_t id) {
  const std::lock_guard lock(started().mutex);
  const auto found = started().ranges.find(id);
  if (found == started().ranges.end()) return;
  if (is_recording()) close_range(found->second);
  started().ranges.erase(found);
}

// What the program calls, with the signatures of NVTX.
std::uint64_t range_start_ex(const EventAttributes* a) { return start(nullptr, name_of(a)); }
std::uint64_t range_start_a(const char* text) { return start(nullptr, kept_name(text)); }
void range_end(std::uint64_t id) { end(id); }
int range_push_ex(const EventAttributes* a) { return push(nullptr, name_of(a)); }
int range_push_a(const char* text) { return push(nullptr, kept_name(text)); }
int range_pop() { return pop(nullptr); }
std::uint64_t domain_range_start_ex(const void* domain, const EventAttributes* a) {
  return start(domain, name_of(a));
}
void domain_range_end(const void*, std::uint64_t id) { end(id); }
int domain_range_push_ex(const void* domain, const EventAttributes* a) {
  return push(domain, name_of(a));
}
int domain_range_pop(const void* domain) { return pop(domain); }
const void* domain_register_string_a(const void*, const char* text) { return kept_name(text); }

/// Fills the places of one table.
class Table {
 public:
  Table(const Callbacks& callbacks, int module) {
    if (callbacks.get_module_function_table(module, &functions_, &size_) == 0) size_ = 0;
  }
  template <typename F>
  void put(std::uint32_t place, F function) {
    if (place < size_ && functions_[place] != nullptr)
      *functions_[place] = reinterpret_cast<AnyFunction>(function);
  }

 private:
  AnyFunction** functions_ = nullptr;
  unsigned int size_ = 0;
};

}  // namespace

bool attach(GetExportTable get_export_table) {
  const auto* const callbacks = static_cast<const Callbacks*>(get_export_table(callbacks_table));
  if (callbacks == nullptr || callbacks->get_module_function_table == nullptr) return false;
  Table core(*callbacks, module_core), core2(*callbacks, module_core2);
  core.put(core_range_start_ex, range_start_ex);
  core.put(core_range_start_a, range_start_a);
  core.put(core_range_end, range_end);
  core.put(core_range_push_ex, range_push_ex);
  core.put(core_range_push_a, range_push_a);
  core.put(core_range_pop, range_pop);
  core2.put(core2_domain_range_start_ex, domain_range_start_ex);
  core2.put(core2_domain_range_end, domain_range_end);
  core2.put(core2_domain_range_push_ex, domain_range_push_ex);
  core2.put(core2_domain_range_pop, domain_range_pop);
  core2.put(core2_domain_register_string_a, domain_register_string_a);
  return true;
}

}  // namespace tidemark::recorder::nvtx
