// The model against the naive allocator: any settings, any calls, the same answers.
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "simulator/allocator/allocator_settings.h"
#include "simulator/allocator/caching_allocator.h"
#include "tests/simulator/allocator/naive_allocator.h"

namespace tidemark::allocator::caching_allocator_property_test {
namespace {

constexpr std::int64_t mib = 1 << 20;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {  // both included
    const auto width = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(engine_() % width);
  }
  bool percent(std::int64_t chance) { return between(1, 100) <= chance; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, static_cast<std::int64_t>(choices.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

AllocatorSettings random_settings(Random& random) {
  AllocatorSettings settings;
  if (random.percent(50)) settings.max_split_size = {random.pick({21, 22, 32, 33, 64}) * mib};
  if (random.percent(40)) settings.max_non_split_rounding = {random.pick({21, 25, 40}) * mib};
  if (random.percent(40))
    for (std::int64_t& divisions : settings.roundup_divisions)
      divisions = random.pick({0, 1, 2, 4, 8, 64});
  settings.expandable_segments = random.percent(35);
  if (random.percent(40)) settings.garbage_collection_threshold = random.pick({0.1, 0.5, 0.8});
  return settings;
}

// Small ones, ones at the boundaries of the rules, and large ones.
std::int64_t random_size(Random& random) {
  const std::int64_t kind = random.between(0, 3);
  if (kind == 0) return random.between(1, 8192);
  if (kind == 1) return random.between(1, 4 * mib);
  if (kind == 2) return random.between(mib, 48 * mib);
  return random.pick({mib / 2, mib, 2 * mib, 10 * mib, 20 * mib, 21 * mib, 22 * mib, 32 * mib,
                      42 * mib, 64 * mib}) +
         random.pick({-513, -512, -1, 0, 1, 511, 512});
}

struct Allocation {
  BlockHandle block;
  std::int64_t address;
};

// Two allocators under the same random calls.
class Pair {
 public:
  explicit Pair(std::uint64_t seed)
      : random_(seed),
        settings_(random_settings(random_)),
        capacity_(random_.pick({24 * mib, 100 * mib, 256 * mib + 12345, 1024 * mib})),
        fraction_(random_.percent(50) ? std::optional(random_.pick({0.5, 0.9, 1.0}))
                                      : std::nullopt),
        free_chance_(random_.between(25, 55)),
        use_chance_(random_.pick({0, 5, 30})),
        model_(settings_, {capacity_}, fraction_),
        naive_(settings_, capacity_, fraction_) {}

  void step() {
    const auto stream = static_cast<std::uint32_t>(random_.between(0, 2));
    const std::int64_t kind = random_.between(1, 1000);
    if (kind <= 4) return model_.empty_cache(), naive_.empty_cache();
    if (kind <= 40) return model_.complete_events(stream), naive_.complete_events(stream);
    if (live_.empty() || !random_.percent(free_chance_)) return allocate(stream);
    if (random_.percent(use_chance_)) return record(stream);
    free_one();
  }

  void compare() {
    const AllocatorStats& model = model_.stats();
    const AllocatorStats naive = naive_.stats();
    if (model == naive) return;  // else name the first that differs
    ASSERT_EQ(model.allocated.count, naive.allocated.count);
    ASSERT_EQ(model.active.count, naive.active.count);
    ASSERT_EQ(model.reserved.count, naive.reserved.count);
    ASSERT_EQ(model.requested.count, naive.requested.count);
    ASSERT_EQ(model.inactive_split.count, naive.inactive_split.count);
    ASSERT_EQ(model.segments, naive.segments);
    ASSERT_EQ(model.device_allocs, naive.device_allocs);
    ASSERT_EQ(model.device_frees, naive.device_frees);
    ASSERT_EQ(model.retries, naive.retries);
    ASSERT_EQ(model, naive);
  }

  const AllocatorStats& stats() const { return model_.stats(); }

 private:
  void allocate(std::uint32_t stream) {
    const std::int64_t size = random_size(random_);
    const auto block = model_.allocate({size}, stream);
    const auto address = naive_.allocate(size, stream);
    ASSERT_EQ(block.has_value(), address.has_value()) << size << " B on stream " << stream;
    if (!block) return;
    ASSERT_EQ(model_.address(*block), *address) << size << " B on stream " << stream;
    live_.push_back({*block, *address});
  }

  void record(std::uint32_t stream) {
    const Allocation& used = any_live();
    model_.record_stream(used.block, stream);
    naive_.record_stream(used.address, stream);
  }

  void free_one() {
    Allocation& freed = random_.percent(50) ? live_.back() : any_live();
    model_.free(freed.block);
    naive_.free(freed.address);
    freed = live_.back();
    live_.pop_back();
  }

  Allocation& any_live() {
    return live_[static_cast<std::size_t>(
        random_.between(0, static_cast<std::int64_t>(live_.size()) - 1))];
  }

  Random random_;
  AllocatorSettings settings_;
  std::int64_t capacity_;
  std::optional<double> fraction_;
  std::int64_t free_chance_;
  std::int64_t use_chance_;
  CachingAllocator model_;
  NaiveAllocator naive_;
  std::vector<Allocation> live_;
};

TEST(CachingAllocator, AgreesWithTheNaiveAllocator) {
  constexpr std::uint64_t first_seed = 404;
  constexpr int runs = 600;
  constexpr int steps = 500;
  AllocatorStats total;
  for (std::uint64_t seed = first_seed; seed < first_seed + runs; ++seed) {
    Pair pair(seed);
    for (int i = 0; i < steps; ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(i));
      ASSERT_NO_FATAL_FAILURE(pair.step());
      ASSERT_NO_FATAL_FAILURE(pair.compare());
    }
    total.ooms += pair.stats().ooms;
    total.retries += pair.stats().retries;
    total.device_frees += pair.stats().device_frees;
  }
  // The comparison is worth little if the rare paths are not taken.
  EXPECT_GT(total.ooms, 1000);
  EXPECT_GT(total.retries - total.ooms, 200);
  EXPECT_GT(total.device_frees, 2000);
}

}  // namespace
}  // namespace tidemark::allocator::caching_allocator_property_test
