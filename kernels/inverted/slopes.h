// The slopes of GELU and SiLU as polynomials of their values; made by scripts/fit_slopes.py, which
// says how.
#pragma once

namespace tidemark {

/// Of a function that falls to a minimum and rises from there. With t = √(y − lowest) the slope is
/// Σ c[k]·zᵏ, z from −1 to 1, on the left over √(zero − t) from 0 to √zero, on the right over t in
/// the two halves from 0 to `end`, behind which it is 1.
struct SlopeOfValue {
  float minimum, lowest;  ///< where the function is least, and what it is there
  float zero, end;        ///< t of the value 0; and of a slope of 1 to 2e-6
  float left[10], right[2][10];
};

/// Off by 1.4e-05 on the left, by 2.7e-05 on the right.
inline constexpr SlopeOfValue slope_of_gelu = {
    -0.751791525f,
    -0.169971207f,
    0.412275645f,
    2.38117011f,
    {-0.114289299f, -0.0956917778f, 0.12914817f, 0.0980133042f, -0.0143555244f, -0.00151710666f,
     0.00192211394f, -0.00338889076f, -0.00241539651f, 0.00257801358f},
    {{0.731360376f, 0.706500053f, -0.19725123f, -0.147120342f, 0.0249281265f, 0.00415161438f,
      0.00473720813f, 0.000927586807f, 0.000418353477f, -0.000266011339f},
     {1.01122487f, -0.0622319393f, 0.130841702f, -0.0886633471f, -0.0951943547f, 0.157246679f,
      0.0160179678f, -0.0958587229f, 0.00131415168f, 0.0253275987f}}};

/// Off by 2.1e-05 on the left, by 2.0e-05 on the right.
inline constexpr SlopeOfValue slope_of_tanh_gelu = {
    -0.752461422f,
    -0.170040751f,
    0.412359977f,
    2.38118474f,
    {-0.114837013f, -0.0937224552f, 0.128570661f, 0.0953144059f, -0.0128864003f, -0.000448553561f,
     0.00261589466f, -0.00488320272f, -0.00344815897f, 0.00373008195f},
    {{0.731265962f, 0.706346452f, -0.198018074f, -0.147251815f, 0.0259754434f, 0.00456692185f,
      0.00466000056f, 0.00079463108f, 0.000311803626f, -0.000260987639f},
     {1.01087499f, -0.0637608767f, 0.136896223f, -0.0866544172f, -0.111192375f, 0.1586577f,
      0.0321587585f, -0.0991878659f, -0.0045408993f, 0.0267648213f}}};

/// Off by 7.3e-07 on the left, by 5.8e-06 on the right.
inline constexpr SlopeOfValue slope_of_silu = {
    -1.27846454f,
    -0.278464543f,
    0.527697397f,
    4.27533207f,
    {-0.0796920061f, -0.094723098f, 0.0696469918f, 0.102441482f, 0.0126262903f, -0.00758921495f,
     -0.00253486005f, -0.000297769322f, -4.58833529e-05f, 0.000168273677f},
    {{0.967040241f, 0.612580717f, -0.739674449f, -0.0817699134f, 0.355970502f, 0.0118345227f,
      -0.0694740042f, -0.0295315422f, 0.00717027485f, 0.00792417675f},
     {1.00040793f, -0.00248701661f, 0.00698627159f, -0.0119088581f, 0.0137761012f, -0.0105741601f,
      0.00312683801f, 0.00305212103f, -0.00326154823f, 0.000882173539f}}};

}  // namespace tidemark
