// The fastest way through a chain of stages for every amount of memory at once.
#pragma once

#include <cstdint>
#include <limits>
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
  std::int64_t error = 0;  ///< of the gradients, in units of its own; never below 0
};

/// What errors may sum up to.
struct ErrorBound {
  std::int64_t most = std::int64_t{1} << 62;
  std::size_t cells = 1;  ///< see Front; more than one where there is a bound
  std::size_t steps = std::numeric_limits<std::size_t>::max();  ///< of a cell that sums share
};

/// Exact for sums: no product of choices is missed, and nothing is rounded. With V_j(r) the least
/// time of stages j and later when r bytes are free before stage j,
///   V_j(r) = min over choices with r >= need of  time + V_{j+span}(r − kept),
/// a falling staircase, which is held as the list of its steps: from the last stage to the first,
/// each choice shifts the list, and the lists are merged. One pass gives the answer to every
/// budget.
///
/// Where errors are bounded, there is such a list for each sum of errors, until there are more than
/// `cells`: from then on sums that are nearer than a cell's width share a list, in which only room
/// and time decide who stays, and of those at most `steps` at equal distances in time. Sums remain
/// those of the plans, so that no plan exceeds the bound. The front is exact while is_exact(), and
/// in any case at least as good as that of all plans without errors.
class Front {
 public:
  /// choices[j]: those that begin with stage j, one of span 1 among them, none beyond the last
  /// stage; of those of equal worth the first is taken. Without points if all exceed the bound.
  explicit Front(const std::vector<std::vector<Choice>>& choices, const ErrorBound& bound = {});

  struct Point {
    std::int64_t room;   ///< the least free memory that gives …
    std::int64_t time;   ///< … this time …
    std::int64_t error;  ///< … with this error
  };
  bool is_exact() const { return is_exact_; }
  std::size_t size() const { return steps_.front().size(); }
  /// Room rises, time falls.
  Point operator[](std::size_t i) const {
    return {steps_[0][i].room, steps_[0][i].time, steps_[0][i].error};
  }
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
    std::int64_t room, time, error;
    std::uint32_t choice, next;  ///< next: the step of the stage behind
  };
  using Staircase = std::vector<Step>;
  /// Which sums of errors share a staircase.
  struct Grid {
    ErrorBound bound;
    /// Each by itself, rising; nothing where they lie in cells of equal width.
    std::optional<std::vector<std::int64_t>> sums = {};

    std::size_t cell_of(std::int64_t error) const;
    std::size_t size() const { return sums ? sums->size() : bound.cells; }
  };
  Grid grid_of(const std::vector<Choice>& choices, std::size_t stage) const;
  /// A choice's staircase: that of what is behind it, shifted.
  class Shifted {
   public:
    /// `behind` begins with the step of that number, and is not empty.
    Shifted(const Choice& choice, std::uint32_t number, std::span<const Step> behind,
            std::uint32_t first);
    std::size_t size() const { return behind_.size(); }
    Step operator[](std::size_t i) const {
      return {room(i), time(i), choice_.error + behind_[i].error, number_,
              first_ + static_cast<std::uint32_t>(i)};
    }
    /// Those of the steps that none of `best` beats, which earlier choices made.
    Staircase unbeaten_by(std::span<const Step> best) const;

   private:
    std::int64_t room(std::size_t i) const {
      return i == 0 && needs_more_ ? choice_.need : choice_.kept + behind_[i].room;
    }
    std::int64_t time(std::size_t i) const { return choice_.time + behind_[i].time; }

    const Choice& choice_;
    std::uint32_t number_, first_;
    bool needs_more_;  ///< than the first step behind it asks for
    std::span<const Step> behind_;
  };
  /// The staircase of a stage, while its choices are merged one after another.
  class Growing {
   public:
    void add(Staircase more);
    std::span<const Step> most() const { return most_; }
    Staircase whole() &&;

   private:
    Staircase most_, recent_;
  };
  static std::vector<std::uint32_t> unbeaten(const std::vector<Choice>& choices);
  std::vector<std::uint32_t> most_taken_first(const std::vector<std::vector<Choice>>& choices,
                                              std::size_t stage) const;
  static bool is_before(const Step& a, const Step& b);
  void add_shifted(const Choice& choice, std::uint32_t number, std::size_t stage, std::size_t cell,
                   std::vector<Growing>& cells) const;
  void join_cells(std::size_t stage, std::vector<Staircase> cells);
  void thin(std::size_t stage, std::size_t cell, Staircase& steps) const;
  static Staircase merged(std::span<const Step> a, std::span<const Step> b);

  ErrorBound bound_;
  bool is_exact_ = true;
  std::vector<Staircase> steps_;                   ///< by stage, cell by cell; the last is the end
  std::vector<std::vector<std::uint32_t>> cells_;  ///< by stage: where each begins, and the end
  std::vector<Grid> grids_;                        ///< by stage
  std::vector<std::vector<std::uint32_t>> spans_;  ///< of the choices
};

}  // namespace tidemark
