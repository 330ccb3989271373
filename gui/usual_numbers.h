// The sizes that people use: powers of two, and those half as large again.
#pragma once

#include <cstdint>

namespace tidemark::gui {

/// The nearest of 1, 2, 3, 4, 6, 8, 12, 16, 24, … by ratio; of equally near ones the smaller.
/// `value` is at least 1.
std::int64_t usual_near(std::int64_t value);
/// The next larger, the next smaller one; none is smaller than 1.
std::int64_t usual_after(std::int64_t value);
std::int64_t usual_before(std::int64_t value);

}  // namespace tidemark::gui
