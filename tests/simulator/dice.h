// Random choices, the same ones on every machine: std::uniform_int_distribution differs between
// libraries, so numbers are drawn by hand.
#pragma once

#include <cstdint>
#include <random>

namespace tidemark {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <typename Container>
  const auto& pick(const Container& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tidemark
