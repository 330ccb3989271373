// Sizes that the pictures of a page share, in pixels: plots under each other begin at one place.
#pragma once

namespace tidemark::exports {

inline constexpr double margin = 10;      ///< around everything
inline constexpr double axis_width = 62;  ///< left of a plot: the labels of its ticks
inline constexpr double label_size = 11;

}  // namespace tidemark::exports
