// How different two colours look, and how they look to people who see no red, no green or no blue.
#pragma once

#include "analysis/export/palette.h"

namespace tidemark::exports {

/// Light of an sRGB colour, 0 to 1 each.
struct Light {
  double red, green, blue;
};
Light light_of(Color color);

enum class Vision : std::uint8_t { Full, NoRed, NoGreen, NoBlue };
/// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
/// Deficiency", IEEE TVCG 15(6), 2009: the matrices of severity 1.0, for linear sRGB.
Light seen(Light light, Vision vision);

/// CIE L*a*b* under D65.
struct Lab {
  double l, a, b;
};
Lab lab_of(Light light);

/// CIEDE2000, as Sharma, Wu and Dalal write it down ("The CIEDE2000 color-difference formula:
/// implementation notes, supplementary test data, and mathematical observations", Color Research
/// and Application 30(1), 2005). 1 can just be seen side by side.
double difference(const Lab& x, const Lab& y);

/// Of two colours to somebody.
double difference(Color x, Color y, Vision vision);

}  // namespace tidemark::exports
