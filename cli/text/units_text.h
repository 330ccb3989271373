// One unit per column: sizes and times of a column are all written in the unit that suits the
// largest of them.
#pragma once

#include <string>

#include "base/units.h"

namespace tidemark::cli {

class SizeUnit {
 public:
  explicit SizeUnit(Bytes largest);
  std::string_view name() const { return name_; }  ///< "GiB"
  std::string operator()(Bytes bytes) const;       ///< "6.31"
  std::string with_unit(Bytes bytes) const;        ///< "6.31 GiB"

 private:
  std::string_view name_;
  double size_;
  int decimals_;
};

class TimeUnit {
 public:
  explicit TimeUnit(Nanoseconds largest);
  std::string_view name() const { return name_; }
  std::string operator()(Nanoseconds time) const;

 private:
  std::string_view name_;
  double size_;
  int decimals_;
};

/// A ratio as a change: "+33.2 %", "−66.7 %", "0.0 %".
std::string change_text(double ratio);

/// "26.8 GFLOP"
std::string flop_text(double flops);

/// "86.6 M", "13.0 B", "992".
std::string count_text(std::int64_t count);

}  // namespace tidemark::cli
