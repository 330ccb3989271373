// Units as types: bytes are counted in integers, and bytes never mix with nanoseconds.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

using Nanoseconds = std::chrono::nanoseconds;

struct Bytes {
  std::int64_t count = 0;

  auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 30};
}
}  // namespace literals

/// The largest size that any single quantity may have: 1 EiB. Sums of a whole trace stay below
/// 2^63 because every trace is checked against it as well.
inline constexpr std::int64_t largest_size = std::int64_t{1} << 60;

/// How many parts of at most `size` `n` is cut into; both positive.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

/// Smallest multiple of `step` that is not below `n`; both positive.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return ceil_div(n, step) * step;
}

/// "3.20 GiB", "512 B": three significant digits in the largest binary unit that keeps the number
/// at or above one.
std::string to_text(Bytes bytes);

/// "1.52 ms", "830 ns".
std::string to_text(Nanoseconds time);

/// Reads "24GiB", "24g" (binary, too), "24GB" (decimal). InputError, of `what`, for a bare "24".
Bytes parse_bytes(std::string_view text, std::string_view what);

}  // namespace tidemark
