// Source side: runs once. Sink side: runs again. Edges that a division cuts are what it pays:
//   source → op, its time                 the op runs again
//   op → sink, price · bytes              its output is kept for gradients, or coded, which costs
//                                         time beside; source → op where that is below 0
//   maker → value, price · bytes          kept, because a rerun reads what its maker does not make
//   value → reader, infinite              of a value that no gradient needs
//   writer → maker, infinite              who works in place on a value runs again with its maker
// A stage's inputs stay, as they are or in codes, whatever runs again: each has the form that is
// cheapest by itself.
#include "simulator/planner/cutting.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "simulator/planner/alike_nodes.h"
#include "simulator/planner/survey.h"

namespace tidemark {
namespace {

constexpr std::int64_t dear = std::int64_t{1} << 48;  // beyond any stage's time

}  // namespace

Cutting::Cutting(const ProposalInput& in)
    : in_(in), begin_(index(in.stage.begin)), count_(index(in.stage.end) - begin_) {
  decided_of_.assign(in.trace.tensors.size(), none);
  for (std::uint32_t d = 0; d < in.stage.decided.size(); ++d)
    decided_of_[index(in.stage.decided[d])] = d;
  find_most();
  connect();
}

Proposal Cutting::solve(double price) {
  price_ = price;
  scale_ =
      std::min(finest_scale, static_cast<double>(dear / 4) / (most_time_ + price * most_bytes_));
  for (std::size_t i = 0; i < count_; ++i) weigh(i);
  for (const Value& value : values_) cut_.set_capacity(value.edge, capacity(0, value.bytes));
  cut_.solve();
  return proposal();
}

Proposal Cutting::solve_with(std::size_t decided, bool is_kept) {
  const std::size_t maker = offset(in_.stage.decided[decided]);
  cut_.solve_raised((is_kept ? run_edges_ : keep_edges_)[maker], dear);
  return proposal();
}

std::vector<std::uint32_t> Cutting::alike_storages() const {
  const auto ops = static_cast<std::uint32_t>(count_);
  const auto decided = static_cast<std::uint32_t>(in_.stage.decided.size());
  std::vector<std::uint64_t> labels;  // ops, decided storages, then charged values
  std::vector<LabelledEdge> edges;
  std::unordered_map<TensorId, std::uint32_t> values;
  for (std::size_t i = 0; i < count_; ++i)
    labels.push_back(label_of({may_run_again(i), in_.forward_ns[begin_ + i]}));
  for (std::uint32_t d = 0; d < decided; ++d) {
    labels.push_back(label_of_decided(d));
    edges.push_back({static_cast<std::uint32_t>(offset(in_.stage.decided[d])), ops + d});
  }
  const auto value_node = [&](TensorId storage) {
    const auto node = static_cast<std::uint32_t>(labels.size());
    const auto [found, is_new] = values.try_emplace(storage, node);
    if (!is_new) return found->second;
    labels.push_back(label_of({2, is_inside(storage), charged(storage)}));
    if (is_inside(storage)) edges.push_back({static_cast<std::uint32_t>(offset(storage)), node});
    return node;
  };
  for (std::uint32_t i = 0; i < ops; ++i) {
    if (!may_run_again(i)) continue;
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      if (charged(in_.trace[input].storage) > 0)
        edges.push_back({value_node(in_.trace[input].storage), i});
  }
  for (const Writer& writer : writers_in_place())
    edges.push_back(
        {static_cast<std::uint32_t>(writer.op), static_cast<std::uint32_t>(writer.maker)});
  std::vector<std::uint32_t> first = first_alike(std::move(labels), edges);
  first.erase(first.begin(), first.begin() + ops);
  first.resize(decided);
  for (std::uint32_t& f : first) f -= ops;
  return first;
}

void Cutting::add_other_inputs(const Proposal& last, std::vector<Proposal>& found) const {
  for (std::size_t k = 0; k < in_.stage.inputs.size(); ++k) {
    if (!may_code_input(k)) continue;
    for (const Coded& coded : (*in_.coded)[index(in_.stage.inputs[k])]) {
      Proposal other = last;
      const Form form{Action::Quantize, coded.encoding};
      if (last.plan.inputs[k] == form) {
        other.plan.inputs[k] = {};
        other.kept += rounded(size(in_.trace[in_.stage.inputs[k]])) - coded.bytes;
        other.time -= coded.time;
      } else if (last.plan.inputs[k].action == Action::Keep) {
        code_input(k, coded, other);
      } else {
        continue;
      }
      found.push_back(std::move(other));
    }
  }
}

std::int64_t Cutting::capacity(std::int64_t time, std::int64_t bytes) const {
  return static_cast<std::int64_t>(
      scale_ * (static_cast<double>(time) + price_ * static_cast<double>(bytes)));
}

// Of the whole stage, whatever is decided.
void Cutting::find_most() {
  for (std::size_t i = 0; i < count_; ++i) {
    most_time_ += static_cast<double>(in_.forward_ns[begin_ + i]);
    for (const TensorId output : in_.trace.outputs(op_at(i)))
      most_bytes_ += static_cast<double>(rounded(size(in_.trace[output])));
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      most_bytes_ += static_cast<double>(rounded(size(in_.trace[input])));
  }
  if (!in_.coded) return;
  for (const std::vector<TensorId>* storages : {&in_.stage.decided, &in_.stage.inputs})
    for (const TensorId storage : *storages)
      for (const Coded& coded : (*in_.coded)[index(storage)])
        most_time_ += static_cast<double>(std::abs(coded.time));
}

bool Cutting::may_run_again(std::size_t i) const {
  return !in_.needs.runs_once[begin_ + i] && !is_view(op_at(i).kind);
}

Cutting::Forced Cutting::forced_of(std::size_t d) const {
  if (!in_.stage.held[d] || in_.held == Held::Free) return Forced::No;
  return in_.held == Held::Kept ? Forced::Kept : Forced::Absent;
}

std::uint64_t Cutting::label_of_decided(std::uint32_t d) const {
  const TensorId storage = in_.stage.decided[d];
  std::uint64_t label = label_of({3, in_.stage.held[d], rounded(size(in_.trace[storage]))});
  if (!in_.coded) return label;
  for (const Coded& coded : (*in_.coded)[index(storage)])
    label = label_of({static_cast<std::int64_t>(label), coded.bytes, coded.time});
  return label;
}

// Of a decided storage that does not run again: in its cheapest form.
Cutting::Weight Cutting::weight_of(TensorId storage) const {
  Weight least{capacity(0, bytes_of(storage)), nullptr};
  const std::uint32_t d = decided_of_[index(storage)];
  if (!in_.coded || (d != none && in_.stage.held[d])) return least;
  for (const Coded& coded : (*in_.coded)[index(storage)]) {
    const std::int64_t weight = capacity(coded.time, coded.bytes);
    if (weight < least.capacity) least = {weight, &coded};
  }
  return least;
}

std::int64_t Cutting::bytes_of(TensorId storage) const {
  const std::uint32_t d = decided_of_[index(storage)];
  const bool is_counted = !in_.counted || d == none || (*in_.counted)[d];
  return is_counted ? rounded(size(in_.trace[storage])) : 0;
}

// What the stage's inputs may become where nothing else is to be made of them.
bool Cutting::may_code_input(std::size_t k) const {
  return in_.coded && in_.stage.needed_here[k] && !in_.undoes_couplings;
}

void Cutting::code_inputs(Proposal& made) const {
  for (std::size_t k = 0; k < in_.stage.inputs.size(); ++k) {
    const TensorId input = in_.stage.inputs[k];
    if (!may_code_input(k)) continue;
    if (const Coded* coded = weight_of(input).coded) code_input(k, *coded, made);
  }
}

void Cutting::code_input(std::size_t k, const Coded& coded, Proposal& made) const {
  made.plan.inputs[k] = {Action::Quantize, coded.encoding};
  made.kept += coded.bytes - rounded(size(in_.trace[in_.stage.inputs[k]]));
  made.time += coded.time;
}

// The graph without capacities: those are what prices change.
void Cutting::connect() {
  for (std::size_t i = 0; i < count_; ++i) {
    nodes_.push_back(cut_.add_node());
    run_edges_.push_back(cut_.add_edge(MinCut::source, nodes_[i], 0));
    keep_edges_.push_back(cut_.add_edge(nodes_[i], MinCut::sink, 0));
  }
  std::unordered_map<TensorId, std::size_t> number;
  std::unordered_map<TensorId, std::vector<std::size_t>> readers;
  for (std::size_t i = 0; i < count_; ++i) {
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      readers[in_.trace[input].storage].push_back(i);
    if (!may_run_again(i)) continue;
    if (in_.counted) {
      if (const auto least = least_read_at_moment(i)) add_read(i, *least, number);
      continue;
    }
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      if (const TensorId storage = in_.trace[input].storage; charged(storage) > 0)
        add_read(i, {storage, charged(storage)}, number);
  }
  for (const Writer& writer : writers_in_place())
    cut_.add_edge(nodes_[writer.op], nodes_[writer.maker], MinCut::infinite / 4);
  find_last_uses(readers);
}

// Who makes nothing but a storage that is needed after the moment: it runs again later, and what
// it reads is there, or it has run, and what it makes is. The smaller of both, of what it reads
// most of.
std::optional<Cutting::Read> Cutting::least_read_at_moment(std::size_t i) const {
  const auto outputs = in_.trace.outputs(op_at(i));
  const std::uint32_t made = outputs.size() == 1 ? decided_of_[index(outputs[0])] : none;
  if (made == none || !(*in_.counted)[made]) return std::nullopt;
  std::optional<Read> most;
  for (const TensorId input : in_.trace.inputs(op_at(i))) {
    const TensorId storage = in_.trace[input].storage;
    if (!is_inside(storage) || std::ranges::find(*in_.there, storage) != in_.there->end()) continue;
    const std::int64_t bytes = std::min(charged(storage), rounded(size(in_.trace[outputs[0]])));
    if (bytes > (most ? most->bytes : 0)) most = Read{storage, bytes};
  }
  return most;
}

void Cutting::add_read(std::size_t reader, Read read,
                       std::unordered_map<TensorId, std::size_t>& number) {
  const auto [found, is_new] = number.try_emplace(read.storage, values_.size());
  if (is_new) {
    const MinCut::Node node = cut_.add_node();
    const MinCut::Node maker =
        is_inside(read.storage) ? nodes_[offset(read.storage)] : MinCut::source;
    values_.push_back({read.storage, read.bytes, node, cut_.add_edge(maker, node, 0), {}});
  }
  Value& value = values_[found->second];
  value.bytes = std::min(value.bytes, read.bytes);
  value.readers.push_back(reader);
  cut_.add_edge(value.node, nodes_[reader], MinCut::infinite / 4);
}

// Who works in place on what another op of the stage has made, before anybody else reads it: if
// it is made again they run again, too, for what they leave is what is read.
std::vector<Cutting::Writer> Cutting::writers_in_place() const {
  std::vector<Writer> writers;
  std::unordered_set<TensorId> read;
  for (std::size_t i = 0; i < count_; ++i) {
    if (is_view(op_at(i).kind)) continue;
    std::unordered_set<TensorId> written;
    for (const TensorId output : in_.trace.outputs(op_at(i)))
      if (const TensorId storage = in_.trace[output].storage; storage != output) {
        written.insert(storage);
        if (is_made_by_one(storage) && may_run_again(i) && !read.contains(storage))
          writers.push_back({i, offset(storage)});
      }
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      if (const TensorId storage = in_.trace[input].storage; !written.contains(storage))
        read.insert(storage);
  }
  return writers;
}

// Its maker runs again for it alone.
bool Cutting::is_made_by_one(TensorId storage) const {
  return is_inside(storage) && may_run_again(offset(storage)) &&
         in_.trace.outputs(op_at(offset(storage))).size() == 1;
}

// What each op makes is read last by gradients, or by one of these if it runs again.
void Cutting::find_last_uses(
    const std::unordered_map<TensorId, std::vector<std::size_t>>& readers) {
  decided_use_.resize(count_);
  readers_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    decided_use_[i] = i;
    for (const TensorId output : in_.trace.outputs(op_at(i))) {
      const TensorId storage = in_.trace[output].storage;
      if (decided_of_[index(storage)] != none) {
        const std::size_t last = index(last_forward_use(in_.needs, storage)) - begin_;
        decided_use_[i] = std::max(decided_use_[i], last);
      } else if (const auto found = readers.find(storage); found != readers.end()) {
        readers_[i].insert(readers_[i].end(), found->second.begin(), found->second.end());
      }
    }
    std::ranges::sort(readers_[i]);
  }
}

void Cutting::weigh(std::size_t i) {
  // One more than its time: of two plans of equal price, the one that runs less.
  std::int64_t run =
      may_run_again(i) ? capacity(in_.forward_ns[begin_ + i], 0) + 1 : MinCut::infinite / 4;
  std::int64_t keep = 0;
  for (const TensorId output : in_.trace.outputs(op_at(i))) {
    const std::uint32_t d = decided_of_[index(output)];
    if (d == none) continue;
    const Forced forced = forced_of(d);
    const std::int64_t weight = weight_of(output).capacity;
    if (forced == Forced::Kept)
      run += dear;
    else if (forced == Forced::Absent || weight >= 0)
      keep += forced == Forced::Absent ? dear : weight;
    else
      run -= weight;
  }
  cut_.set_capacity(run_edges_[i], run);
  cut_.set_capacity(keep_edges_[i], keep + weight_of_undone(i));
}

std::int64_t Cutting::weight_of_undone(std::size_t maker) const {
  std::int64_t weight = 0;
  for (std::size_t i = maker + 1; in_.undoes_couplings && i < count_; ++i)
    if (const std::optional<TensorId> branch = branch_undone_by(i);
        branch && offset(*branch) == maker)
      weight += capacity(0, rounded(size(in_.trace[*branch])));
  return weight;
}

// What no gradient needs of it, but for undoing the add.
std::optional<TensorId> Cutting::branch_undone_by(std::size_t i) const {
  const Op& op = op_at(i);
  if (!in_.undoes_couplings || !op.residual || !row_of(op.kind).inverts_input0) return {};
  const TensorId branch = in_.trace[in_.trace.inputs(op)[1]].storage;
  const bool is_needed =
      decided_of_[index(branch)] == none && is_inside(branch) && may_run_again(offset(branch));
  return is_needed ? std::optional(branch) : std::nullopt;
}

// Of what is there only for reruns, because no gradient needs it: of what the stage has made and
// nobody behind it could have kept, all.
std::int64_t Cutting::charged(TensorId storage) const {
  if (!is_inside(storage)) {
    const auto charge = std::ranges::find(in_.stage.shared_reads, storage, &SharedRead::storage);
    return charge == in_.stage.shared_reads.end() ? 0 : charge->bytes;
  }
  const OpId last = in_.needs.last_read[index(storage)];
  const bool is_read_behind = last == no_op || index(last) >= begin_ + count_;
  return in_.needs.uses[index(storage)] > 0 || is_read_behind ? 0
                                                              : rounded(size(in_.trace[storage]));
}

bool Cutting::is_inside(TensorId storage) const {
  const OpId producer = in_.needs.producer[index(storage)];
  return producer != no_op && index(producer) >= begin_ && index(producer) < begin_ + count_;
}

std::size_t Cutting::offset(TensorId storage) const {
  return index(in_.needs.producer[index(storage)]) - begin_;
}

// Of the last cut.
Proposal Cutting::proposal() {
  reruns_.assign(count_, false);
  for (std::size_t i = 0; i < count_; ++i) reruns_[i] = cut_.is_sink_side(nodes_[i]);
  Proposal made{keep_all(in_.stage), 0, 0};
  for (std::size_t i = 0; i < count_; ++i)
    if (reruns_[i]) made.time += in_.forward_ns[begin_ + i];
  for (std::size_t d = 0; d < in_.stage.decided.size(); ++d) {
    const TensorId storage = in_.stage.decided[d];
    if (reruns_[offset(storage)]) {
      made.plan.forms[d].action = Action::Recompute;
    } else if (const Coded* coded = weight_of(storage).coded; coded) {
      made.plan.forms[d] = {Action::Quantize, coded->encoding};
      made.kept += coded->bytes;
      made.time += coded->time;
    } else {
      made.kept += bytes_of(storage);
    }
  }
  for (const Value& value : values_) {
    const bool is_inner = is_inside(value.storage);
    if (!is_read_again(value) || (is_inner && reruns_[offset(value.storage)])) continue;
    made.kept += value.bytes;
    if (is_inner) made.plan.kept_for_recovery.push_back(value_of(value.storage));
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const std::optional<TensorId> branch = branch_undone_by(i);
    if (!branch || reruns_[offset(*branch)]) continue;
    made.kept += rounded(size(in_.trace[*branch]));
    made.plan.kept_for_recovery.push_back(value_of(*branch));
  }
  std::ranges::sort(made.plan.kept_for_recovery);
  made.plan.regions = regions();
  code_inputs(made);
  return made;
}

LocalValue Cutting::value_of(TensorId storage) const {
  const auto outputs = in_.trace.outputs(op_at(offset(storage)));
  const auto output = std::ranges::find(outputs, storage);
  return {offset(storage), static_cast<std::size_t>(output - outputs.begin())};
}

bool Cutting::is_read_again(const Value& value) const {
  return std::ranges::any_of(value.readers, [&](std::size_t i) { return reruns_[i]; });
}

// The smallest that hold what runs again and all who read it: what is recovered late is there for
// a short time.
std::vector<LocalRegion> Cutting::regions() const {
  std::vector<LocalRegion> found;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!reruns_[i]) continue;
    const std::size_t end = last_use(i) + 1;
    if (!found.empty() && i < found.back().end)
      found.back().end = std::max(found.back().end, end);
    else
      found.push_back({i, end});
  }
  return found;
}

// Of what the op makes again: by gradients, or by ops that run again.
std::size_t Cutting::last_use(std::size_t i) const {
  std::size_t last = decided_use_[i];
  for (const std::size_t reader : readers_[i])
    if (reruns_[reader]) last = std::max(last, reader);
  return last;
}
}  // namespace tidemark
