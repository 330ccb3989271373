// One stage's local plans as divisions of a graph: what runs again, what is kept, in which form.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simulator/planner/min_cut.h"
#include "simulator/planner/proposals.h"

namespace tidemark {

/// Finds the cheapest local plan at a price of bytes, by a minimum cut. Most of a cut is making its
/// graph, which is the same at all prices. What the input refers to must live as long.
class Cutting {
 public:
  explicit Cutting(const ProposalInput& in);

  Proposal solve(double price);

  /// At the price of the last solve(), with one decided storage kept, or made again: what its maker
  /// would pay for the other is beyond all else.
  Proposal solve_with(std::size_t decided, bool is_kept);

  /// By decided storage: the first one that no cut tells from it. Cuts that force one of the two
  /// cost the same.
  std::vector<std::uint32_t> alike_storages() const;

  /// The last proposal, but with each input in turn the other way: as it is where that has codes,
  /// else in each of its codes.
  void add_other_inputs(const Proposal& last, std::vector<Proposal>& found) const;

  /// Above it, whatever can be made again is, or has the smallest codes: storages differ by 512
  /// bytes at least.
  double highest_price() const { return most_time_ / 512; }

 private:
  enum class Forced : std::uint8_t { No, Kept, Absent };

  struct Weight {
    std::int64_t capacity;
    const Coded* coded;  ///< null: kept as it is
  };

  /// What a rerun reads, and so many bytes that it costs to have it.
  struct Read {
    TensorId storage;
    std::int64_t bytes;
  };

  /// Read by reruns, and there for nobody else.
  struct Value {
    TensorId storage;
    std::int64_t bytes;
    MinCut::Node node;
    MinCut::Edge edge;
    std::vector<std::size_t> readers;  ///< ops of the stage
  };

  struct Writer {
    std::size_t op, maker;
  };

  static constexpr std::uint32_t none = 0xffffffff;
  // Capacities count 1/1024 ns, so that prices far below one per byte are not lost; or more, so
  // that all of a stage at a high price stay below what is forced.
  static constexpr double finest_scale = 1024;

  // The stage's ops and storages.
  const Op& op_at(std::size_t i) const { return in_.trace.ops[begin_ + i]; }
  bool may_run_again(std::size_t i) const;
  bool is_inside(TensorId storage) const;
  std::size_t offset(TensorId storage) const;
  bool is_made_by_one(TensorId storage) const;
  std::vector<Writer> writers_in_place() const;
  std::uint64_t label_of_decided(std::uint32_t d) const;

  // The graph.
  void find_most();
  void connect();
  std::optional<Read> least_read_at_moment(std::size_t i) const;
  void add_read(std::size_t reader, Read read, std::unordered_map<TensorId, std::size_t>& number);
  void find_last_uses(const std::unordered_map<TensorId, std::vector<std::size_t>>& readers);

  // Its capacities, at the price at hand.
  std::int64_t capacity(std::int64_t time, std::int64_t bytes) const;
  Forced forced_of(std::size_t d) const;
  Weight weight_of(TensorId storage) const;
  std::int64_t bytes_of(TensorId storage) const;
  std::int64_t charged(TensorId storage) const;
  std::int64_t weight_of_undone(std::size_t maker) const;
  std::optional<TensorId> branch_undone_by(std::size_t i) const;
  void weigh(std::size_t i);

  // What the last cut says.
  Proposal proposal();
  LocalValue value_of(TensorId storage) const;
  bool is_read_again(const Value& value) const;
  std::vector<LocalRegion> regions() const;
  std::size_t last_use(std::size_t i) const;
  bool may_code_input(std::size_t k) const;
  void code_inputs(Proposal& made) const;
  void code_input(std::size_t k, const Coded& coded, Proposal& made) const;

  ProposalInput in_;
  std::size_t begin_, count_;
  double price_ = 0;  ///< of a byte, at the cut at hand
  double scale_ = finest_scale;
  double most_time_ = 1, most_bytes_ = 0;
  std::vector<std::uint32_t> decided_of_;  ///< by tensor
  MinCut cut_;
  std::vector<MinCut::Node> nodes_;                   ///< by op of the stage
  std::vector<MinCut::Edge> run_edges_, keep_edges_;  ///< likewise: to run it again, or to keep
  std::vector<Value> values_;
  std::vector<std::size_t> decided_use_;  ///< by op: see find_last_uses()
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<bool> reruns_;
};

}  // namespace tidemark
