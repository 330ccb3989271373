// A demand that is not met leaves a defect: what was found, what is needed, beside which input.
#include "traces/shape_fit.h"

#include <fmt/format.h>

#include "traces/shape_rules.h"

namespace tidemark {

std::int64_t Fit::whole(AttributeKey key, double otherwise) const {
  const double value = attribute(trace_, op_, key, otherwise);
  if (!(value >= 0 && value <= 0x1p20)) return -1;
  const auto rounded = static_cast<std::int64_t>(value);
  return static_cast<double>(rounded) == value ? rounded : -1;
}

bool Fit::need(bool met, int bit, std::string_view what) {
  if (met) return true;
  const std::string beside =
      bit == 0 ? "" : fmt::format(" beside in0 {}", to_text((*this)[operand_bits::in0]));
  defect_ =
      fmt::format("{} is {}; need {}{}", operand_label(bit), to_text((*this)[bit]), what, beside);
  return false;
}

bool Fit::same(int bit, const Shape& shape) {
  return (*this)[bit] == shape || need(false, bit, to_text(shape));
}

bool divides(std::int64_t divisor, std::int64_t n) { return divisor > 0 && n % divisor == 0; }

bool spreads_over(Dims small, Dims large) {
  if (small.size() > large.size()) return false;
  const Dims tail = large.last(small.size());
  for (std::size_t i = 0; i < small.size(); ++i) {
    const bool repeats = i == 0 && small.size() == large.size() && divides(small[0], tail[0]);
    if (small[i] != tail[i] && small[i] != 1 && !repeats) return false;
  }
  return true;
}

bool broadcasts(Dims a, Dims b, Dims large) {
  if (!spreads_over(a, large) || !spreads_over(b, large)) return false;
  const auto matches = [&](Dims dims, std::size_t from_back) {
    return from_back <= dims.size() &&
           dims[dims.size() - from_back] == large[large.size() - from_back];
  };
  for (std::size_t i = 1; i <= large.size(); ++i)
    if (!matches(a, i) && !matches(b, i)) return false;
  return true;
}

}  // namespace tidemark
