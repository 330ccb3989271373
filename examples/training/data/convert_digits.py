#!/usr/bin/env python3
"""Writes digits.txt from the digits.csv.gz of Debian's python3-sklearn (or of scikit-learn's own
sklearn/datasets/data), the test set of UCI's "Optical Recognition of Handwritten Digits".

    python3 convert_digits.py /usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz \\
        > digits.txt

One line per image, in the order of the source: its digit, a blank, and its 8 × 8 pixels row by row,
each one character: 0 to 9, then a to g for 10 to 16, the number of dark points of 16.
"""

import gzip
import sys

SHADES = "0123456789abcdefg"

with gzip.open(sys.argv[1], "rt") as source:
    for line in source:
        *pixels, digit = (int(float(number)) for number in line.split(","))
        assert len(pixels) == 64 and digit in range(10)
        print(digit, "".join(SHADES[shade] for shade in pixels))
