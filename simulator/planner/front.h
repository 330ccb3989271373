// The fastest way through a chain of stages for every amount of memory at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tidemark {

/// One way to do a stage, or several as one.
struct Choice {
  std::int64_t kept = 0;  ///< bytes that stay between its forward and its backward
  std::int64_t need =
      0;  ///< bytes that must be free when its forward begins, for both of its passes
  std::int64_t time = 0;   ///< ns, forward and backward
  std::uint32_t span = 1;  ///< how many stages, this one and those behind it, it decides about
};

/// Exact for sums: no product of choices is missed, and nothing is rounded. With V_j(r) the least
/// time of stages j and later when r bytes are free before stage j,
///   V_j(r) = min over choices with r >= need of  time + V_{j+span}(r − kept),
/// a falling staircase, which is held as the list of its steps: from the last stage to the first,
/// each choice shifts the list, and the lists are merged. One pass gives the answer to every
/// budget.
class Front {
 public:
  /// choices[j]: those that begin with stage j, one of span 1 among them, none beyond the last
  /// stage; of those of equal worth the first is taken.
  explicit Front(const std::vector<std::vector<Choice>>& choices);

  struct Point {
    std::int64_t room;  ///< the least free memory that gives …
    std::int64_t time;  ///< … this time
  };
  std::size_t size() const { return steps_.front().size(); }
  /// Room rises, time falls.
  Point operator[](std::size_t i) const { return {steps_[0][i].room, steps_[0][i].time}; }
  /// The last point that so much memory allows.
  std::optional<std::size_t> within(std::int64_t room) const;
  struct Picked {
    std::uint32_t stage, choice;
    bool operator==(const Picked&) const = default;
  };
  /// Of the point, in order: the stages at which choices begin, with the number of each choice.
  std::vector<Picked> choices_at(std::size_t point) const;

 private:
  struct Step {
    std::int64_t room, time;
    std::uint32_t choice, next;  ///< next: the step of the stage behind
  };
  using Staircase = std::vector<Step>;
  static Staircase shifted(std::span<const Step> behind, const Choice& choice,
                           std::uint32_t number);
  static Staircase merged(std::span<const Step> a, std::span<const Step> b);

  std::vector<Staircase> steps_;                   ///< by stage; the last is the end
  std::vector<std::vector<std::uint32_t>> spans_;  ///< of the choices
};

}  // namespace tidemark
