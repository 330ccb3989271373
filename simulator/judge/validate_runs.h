// The judge's idea of work: what each run must find, and what it leaves.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "simulator/judge/validate_memory.h"
#include "simulator/judge/validate_numbers.h"

namespace tidemark::judge {

/// Of operand k, outputs counted behind the inputs.
constexpr Operands bit_of(const Op& op, std::size_t k) {
  return k < op.inputs ? Operands{1} << k : Operands{1} << (16 + k - op.inputs);
}

class Runs {
 public:
  Runs(const Trace& trace, const Schedule& schedule, Memory& memory);

  void run(const Run& run);
  /// All work is done, each piece once.
  void check_complete();

 private:
  struct Operand {
    BufferId buffer;
    std::uint64_t number = 0;
    bool is_expected = false;
  };
  struct OperandList : std::vector<Operand> {
    std::size_t next = 0;  // where to look first
  };

  struct Sum {
    std::uint64_t number = 0;
    std::vector<std::size_t> parts;  // of larger gradients: contributions by number
  };

  void forward(const Run& run);
  void seed();
  void backward(const Run& run);
  void accumulate(const Run& run);
  void reconstruct(const Run& run);
  void note_extremes(const Op& op);
  void write_codes(const Op& op, std::size_t k);
  void quantize();
  void dequantize();
  bool holds_floats(const Operand& codes) const;
  void read_ranges(const Operand& codes);
  bool has_state(TensorId parameter) const;
  void optimize();
  void exchange(Task task);
  void add_shards();
  void add_to_buffer();
  bool add_to_main_gradient(TensorId parameter, std::uint64_t number);
  void read_shared_gradient(TensorId tensor);

  /// What lies in a buffer of collectives.
  struct Content {
    TensorId tensor;
    Role role;
    std::uint64_t number;
  };
  std::int64_t replicas(TensorId parameter) const;
  std::uint64_t ranks_that_reduce(const Content& content) const;
  std::vector<Content> contents_of(const Operand& read) const;
  void put(const Operand& write, const std::vector<Content>& contents);

  template <typename Fits>
  Operand* find(OperandList& operands, Fits fits);
  const Operand* reads(const Op& op, std::size_t k, Role role);
  void read_value(const Op& op, std::size_t k);
  void read_saved(const Op& op, std::size_t k,
                  bool must);  ///< as a value or, of some ops, as codes
  void read_gradient(TensorId tensor, std::int64_t micro_batches = 1);
  void write(Role role, TensorId tensor, std::uint64_t number);
  bool write_over_value(const Op& op, std::size_t k, std::uint64_t number);
  bool holds_gradients(const Operand& operand) const;
  void check_workspace(Bytes size);
  void check_workspaces(Bytes sum);
  void check_unexpected();
  void begin_forward();
  void begin_backward();
  void begin_split();
  void split_backward(const Run& run);
  void check_counts();
  void check_contributions(const Op& op, std::int64_t wanted);
  void check_forward();
  void check_backward();
  void check_trained(TensorId tensor);

  std::optional<std::uint64_t> addend_of(const Operand& read, TensorId tensor,
                                         std::vector<std::size_t>& parts);
  std::optional<Sum> sum_of_reads(TensorId tensor);

  const Buffer& buffer(const Operand& operand) const { return schedule_[operand.buffer]; }

  const Trace& trace_;
  const Schedule& schedule_;
  Memory& memory_;
  Numbers numbers_;
  OperandList reads_, writes_;  // of the run in hand

  std::vector<bool> has_run_, has_run_back_, is_updated_;
  std::vector<bool> is_stale_;          // each rank has updated a part of it
  std::vector<bool> has_whole_;         // that stays between steps
  const std::vector<bool> of_experts_;  // parameters that fewer ranks have
  bool updates_are_cut_ = false;        // among ranks
  // Micro-batches do not come one after the other: chunks, or gradients of weights, of several lie
  // between each other.
  bool is_interleaved_ = false;
  std::vector<std::int64_t> forward_runs_, backward_runs_;  // by op, of an interleaved stage
  bool is_split_ = false;                                   // backward passes come in two halves
  std::vector<bool> is_made_of_parameters_;                 // by tensor, where they do
  std::vector<std::int64_t> contributed_;    // by operand, where they do: gradients of it so far
  std::int64_t forward_ = 0, backward_ = 0;  // of which micro-batch
  std::size_t next_op_ = 0;                  // no earlier op may still run for the first time
  bool is_seeded_ = false;
  std::set<std::pair<TensorId, std::uint64_t>> sums_;       // that accumulating has made
  std::set<std::pair<TensorId, std::size_t>> parts_added_;  // out of larger gradients
  std::set<BufferId> overwritten_;                     // values in whose memory a gradient lies
  std::map<BufferId, std::vector<Content>> contents_;  // of temporaries of collectives
};

}  // namespace tidemark::judge
