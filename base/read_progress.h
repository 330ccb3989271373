// How far a large file has been read: told by the thread that reads, shown by another one.
#pragma once

#include <atomic>
#include <string>

namespace tidemark {

class ReadProgress {
 public:
  /// The next part of the work: "unpacking". `part` must live as long as the program.
  void begin(const char* part) { share_ = unknown, part_ = part; }
  /// This much of the part is done, of 1.
  void reach(double share) { share_.store(share, std::memory_order_relaxed); }

  /// "unpacking, 43 %"; without a share where none is told; "" before the first part.
  std::string text() const;

 private:
  static constexpr double unknown = -1;

  std::atomic<const char*> part_ = "";
  std::atomic<double> share_ = unknown;
};

}  // namespace tidemark
