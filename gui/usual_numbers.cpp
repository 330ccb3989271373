// Walks the ladder of usual sizes from below.
#include "gui/usual_numbers.h"

namespace tidemark::gui {
namespace {

// 1, 2, 3, 4, 6, 8, 12: from a power of two to half as much again, and on to the next.
std::int64_t rung_after(std::int64_t rung) {
  if (rung == 1) return 2;
  const bool is_power = (rung & (rung - 1)) == 0;
  return is_power ? rung / 2 * 3 : rung / 3 * 4;
}

}  // namespace

std::int64_t usual_after(std::int64_t value) {
  std::int64_t rung = 1;
  while (rung <= value) rung = rung_after(rung);
  return rung;
}

std::int64_t usual_before(std::int64_t value) {
  std::int64_t rung = 1;
  while (rung_after(rung) < value) rung = rung_after(rung);
  return rung;
}

std::int64_t usual_near(std::int64_t value) {
  const std::int64_t above = usual_after(value), below = usual_before(value + 1);
  // value / below ≤ above / value, without leaving the whole numbers.
  return static_cast<double>(value) * static_cast<double>(value) <=
                 static_cast<double>(below) * static_cast<double>(above)
             ? below
             : above;
}

}  // namespace tidemark::gui
