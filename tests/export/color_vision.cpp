// Colour differences and colour blindness, each formula from its paper.
#include "tests/export/color_vision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tidemark::exports {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

constexpr Matrix identity = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix no_red = {{{0.152286, 1.052583, -0.204868},
                            {0.114503, 0.786281, 0.099216},
                            {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix no_green = {{{0.367322, 0.860646, -0.227968},
                              {0.280085, 0.672501, 0.047413},
                              {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix no_blue = {{{1.255528, -0.076749, -0.178779},
                             {-0.078411, 0.930809, 0.147602},
                             {0.004733, 0.691367, 0.303900}}};
constexpr std::array matrices = {identity, no_red, no_green, no_blue};

// To CIE XYZ, each part relative to D65's white (IEC 61966-2-1).
constexpr Matrix to_xyz = {{{0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047},
                            {0.2126729, 0.7151522, 0.0721750},
                            {0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883}}};

std::array<double, 3> product(const Matrix& matrix, const Light& light) {
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = matrix[i][0] * light.red + matrix[i][1] * light.green + matrix[i][2] * light.blue;
  return out;
}

double linear(std::uint8_t part) {
  const double share = part / 255.0;
  return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// 0 to 360; of grey, 0.
double hue(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double degrees = std::atan2(b, a) * 180 / std::numbers::pi;
  return degrees < 0 ? degrees + 360 : degrees;
}

// c^7 / (c^7 + 25^7), under the root that the formula uses twice.
double chroma_weight(double chroma) {
  const double power = std::pow(chroma, 7);
  return std::sqrt(power / (power + std::pow(25.0, 7)));
}

// The way from one hue to the other, the short way round.
double hue_way(double from, double to) {
  const double way = to - from;
  return way > 180 ? way - 360 : way < -180 ? way + 360 : way;
}

double hue_between(double x, double y) {
  if (std::abs(x - y) <= 180) return (x + y) / 2;
  return x + y < 360 ? (x + y + 360) / 2 : (x + y - 360) / 2;
}

double hue_scale(double chroma, double h) {
  const double t = 1 - 0.17 * std::cos(radians(h - 30)) + 0.24 * std::cos(radians(2 * h)) +
                   0.32 * std::cos(radians(3 * h + 6)) - 0.20 * std::cos(radians(4 * h - 63));
  return 1 + 0.015 * chroma * t;
}

}  // namespace

Light light_of(Color color) { return {linear(color.red), linear(color.green), linear(color.blue)}; }

Light seen(Light light, Vision vision) {
  auto out = product(matrices[static_cast<std::size_t>(vision)], light);
  for (double& part : out) part = std::clamp(part, 0.0, 1.0);
  return {out[0], out[1], out[2]};
}

Lab lab_of(Light light) {
  auto xyz = product(to_xyz, light);
  for (double& part : xyz)
    part = part > 216.0 / 24389 ? std::cbrt(part) : (24389.0 / 27 * part + 16) / 116;
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

double difference(const Lab& x, const Lab& y) {
  const double g = 0.5 * (1 - chroma_weight((std::hypot(x.a, x.b) + std::hypot(y.a, y.b)) / 2));
  const double xa = (1 + g) * x.a, ya = (1 + g) * y.a;
  const double xc = std::hypot(xa, x.b), yc = std::hypot(ya, y.b), c = (xc + yc) / 2;
  const double xh = hue(xa, x.b), yh = hue(ya, y.b);
  const bool is_grey = xc * yc == 0;
  const double h = is_grey ? xh + yh : hue_between(xh, yh);
  const double way = is_grey ? 0 : hue_way(xh, yh);
  const double from_middle = std::pow((x.l + y.l) / 2 - 50, 2);
  const double lightness = (y.l - x.l) / (1 + 0.015 * from_middle / std::sqrt(20 + from_middle));
  const double chroma = (yc - xc) / (1 + 0.045 * c);
  const double turn = 2 * std::sqrt(xc * yc) * std::sin(radians(way / 2)) / hue_scale(c, h);
  const double rotation =
      -std::sin(radians(60 * std::exp(-std::pow((h - 275) / 25, 2)))) * 2 * chroma_weight(c);
  return std::sqrt(lightness * lightness + chroma * chroma + turn * turn +
                   rotation * chroma * turn);
}

double difference(Color x, Color y, Vision vision) {
  return difference(lab_of(seen(light_of(x), vision)), lab_of(seen(light_of(y), vision)));
}

}  // namespace tidemark::exports
