#!/usr/bin/env python3
"""The slopes of GELU and SiLU as polynomials of their values: makes kernels/inverted/slopes.h.

    python3 scripts/fit_slopes.py > kernels/inverted/slopes.h && make format      (needs numpy)

Both functions fall to a minimum and rise from there, so a value and its side of the minimum say which x
it came from (arXiv 2210.10246). Near the minimum the slope is as the root of what the value lies above
it: t = sqrt(y - lowest). On the right the slope is a smooth function of t; on the left, where values
return to 0, of sqrt(t(0) - t). It is fitted at the zeros of a Chebyshev polynomial, where the error is
nearly the least that is possible. The inverse is found by bisection in double.
"""
import math

import numpy as np
from numpy.polynomial import chebyshev

ROOT = math.sqrt(2 / math.pi)


def normal(x):
    return 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))


def gelu(x):
    return x * normal(x), normal(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def tanh_gelu(x):
    two_u = 2 * ROOT * (x + 0.044715 * x**3)
    share, rest = 1 / (1 + np.exp(-two_u)), 1 / (1 + np.exp(two_u))
    return x * share, share + 2 * x * share * rest * ROOT * (1 + 3 * 0.044715 * x * x)


def silu(x):
    share, rest = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    return x * share, share * (1 + x * rest)


# By name: the function and its slope, where on the right the slope is 1 to 1e-6, and how far to the
# left values are told from 0.
FUNCTIONS = {"gelu": (gelu, 5.5, 12), "tanh_gelu": (tanh_gelu, 5.5, 8), "silu": (silu, 18.0, 30)}
DEGREE = 9


def bisected(is_below, low, high):
    for _ in range(200):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def slope_at(function, y, minimum, end):
    """Of the x between the minimum and `end` whose value is y."""
    left = end < minimum
    x = bisected(lambda at: (function(at)[0] > y) == left, np.full_like(y, min(end, minimum)),
                 np.full_like(y, max(end, minimum)))
    return function(x)[1]


def fitted(slope):
    """Coefficients of 1, z, z², ... of a function of z from -1 to 1, and their error."""
    nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    terms = chebyshev.chebfit(nodes, slope(nodes), DEGREE)
    between = np.linspace(-1, 1, 2001)[1:-1]
    error = np.abs(chebyshev.chebval(between, terms) - slope(between)).max()
    return chebyshev.cheb2poly(terms).astype(np.float32), error


HEAD = """\
// The slopes of GELU and SiLU as polynomials of their values; made by scripts/fit_slopes.py, which says
// how.
#pragma once

namespace tidemark {

/// Of a function that falls to a minimum and rises from there. With t = √(y − lowest) the slope is
/// Σ c[k]·zᵏ, z from −1 to 1, on the left over √(zero − t) from 0 to √zero, on the right over t in the
/// two halves from 0 to `end`, behind which it is 1.
struct SlopeOfValue {
  float minimum, lowest;  ///< where the function is least, and what it is there
  float zero, end;        ///< t of the value 0; and of a slope of 1 to 2e-6
  float left[10], right[2][10];
};
"""


def numbers(terms):
    texts = [f"{c:.9g}" for c in terms]
    return "{" + ", ".join((t if "." in t or "e" in t else t + ".0") + "f" for t in texts) + "}"


def main():
    print(HEAD)
    for name, (function, far, left_end) in FUNCTIONS.items():
        minimum = float(bisected(lambda at: function(at)[1] < 0, np.array([-2.0]), np.array([-0.3]))[0])
        lowest = float(function(np.array([minimum]))[0][0])
        zero, end = math.sqrt(-lowest), math.sqrt(float(function(np.array([far]))[0][0]) - lowest)

        def on_the_left(z):
            t = zero - (math.sqrt(zero) / 2 * (1 + z)) ** 2
            return slope_at(function, lowest + t * t, minimum, -left_end)

        def on_the_right(half):
            return lambda z: slope_at(function, lowest + (end / 4 * (1 + z + 2 * half)) ** 2, minimum, far)

        left, left_error = fitted(on_the_left)
        right, right_errors = zip(*(fitted(on_the_right(half)) for half in (0, 1)))
        print(f"/// Off by {left_error:.1e} on the left, by {max(right_errors):.1e} on the right.")
        print(f"inline constexpr SlopeOfValue slope_of_{name} = {{")
        print(f"    {minimum:.9g}f, {lowest:.9g}f, {zero:.9g}f, {end:.9g}f,")
        print(f"    {numbers(left)}, {{{', '.join(map(numbers, right))}}}}};\n")
    print("}  // namespace tidemark")


if __name__ == "__main__":
    main()
