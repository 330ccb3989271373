// Example: x is made on lane A and read on lane B.
//   node on A   allocate x, run, record an event
//   node on B   wait for the event, run; x is freed once A is known to be done with it, too
#include "simulator/place/place.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/large_pages.h"
#include "simulator/parallel/gather_buffer.h"
#include "simulator/place/stream_order.h"

namespace tidemark {
namespace {

struct LaneStreams {
  std::array<StreamId, lanes.size()> of{};  // the compute stream where nothing else is said
  std::size_t count = 1;
};

bool is_on_compute(Lane lane, const Placement& placement) {
  if (lane == Lane::FirstRegions && !placement.regions_leave_compute) return true;
  return lane == Lane::Compute || (is_of_regions(lane) && placement.regions_on_compute);
}

LaneStreams assign_streams(const JointGraph& graph, const Placement& placement) {
  LaneStreams streams;
  for (const Lane lane : graph.lanes)
    if (!is_on_compute(lane, placement))
      streams.of[index(lane)] = static_cast<StreamId>(streams.count++);
  return streams;
}

Schedule empty_schedule(const JointGraph& graph, std::size_t streams) {
  Schedule schedule;
  schedule.streams = streams;
  schedule.encodings = graph.encodings;
  reserve_in_large_pages(schedule.buffers, graph.instances.size());
  reserve_in_large_pages(schedule.steps, graph.nodes.size() + 3 * graph.instances.size());
  reserve_in_large_pages(schedule.operands, graph.operands.size());
  return schedule;
}

class Placing {
 public:
  Placing(const JointGraph& graph, const Placement& placement)
      : graph_(graph),
        stays_(placement.stays),
        streams_(assign_streams(graph, placement)),
        schedule_(empty_schedule(graph, streams_.count)),
        order_(schedule_, placement.synchronizes_host),
        first_freed_(filled_in_large_pages(graph.nodes.size(), no_instance)) {
    collect_frees();
    buffer_of_ = filled_in_large_pages(graph.instances.size(), no_buffer);
    if (graph.edges.empty()) return;
    is_awaited_.resize(graph.nodes.size());
    done_.resize(graph.nodes.size());
    for (const Edge& edge : graph.edges) is_awaited_[index(edge.before)] = true;
  }

  Schedule run() && {
    place_persistent();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) place_node(n);
    follow_edges(graph_.nodes.size());
    order_.join(StreamId::Compute);
    return std::move(schedule_);
  }

 private:
  StreamId stream_of(Lane lane) const { return streams_.of[index(lane)]; }

  // Copies make no memory of their own streams: it is the compute stream's before and after.
  StreamId home_of(Lane lane) const { return is_copy(lane) ? StreamId::Compute : stream_of(lane); }

  // Memory by the node after which it is free: the last that reads or writes a version in it, or
  // holds one. From the last version to the first, so that a version that is written over others
  // hands its last use on to them, and each list rises.
  void collect_frees() {
    std::vector<NodeId> last = last_uses();
    next_freed_ = filled_in_large_pages(graph_.instances.size(), no_instance);
    for (std::size_t i = last.size(); i-- > 0;) {
      const Instance& instance = graph_.instances[i];
      if (last[i] == no_node) continue;
      if (instance.over != no_instance) {
        raise(last[index(instance.over)], last[i]);
      } else if (!instance.persistent && !instance.on_host && !stays(instance)) {
        InstanceId& first = first_freed_[index(last[i])];
        next_freed_[i] = std::exchange(first, static_cast<InstanceId>(i));
      }
    }
  }

  // By instance; of memory that several share, each for itself.
  std::vector<NodeId> last_uses() const {
    std::vector<NodeId> last = filled_in_large_pages(graph_.instances.size(), no_node);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (std::uint32_t k = 0; k < node.reads + node.writes; ++k)
        last[index(graph_.operands[node.first_operand + k])] = static_cast<NodeId>(n);
    }
    for (const Hold& hold : graph_.holds) raise(last[index(hold.instance)], hold.until);
    return last;
  }

  static void raise(NodeId& last, NodeId node) {
    last = last == no_node ? node : std::max(last, node);
  }

  bool stays(const Instance& instance) const {
    return stays_ != no_tensor && instance.tensor == stays_ && instance.role == Role::Value;
  }

  BufferId& buffer_of(InstanceId instance) { return buffer_of_[index(instance)]; }

  void place_persistent() {
    for (std::size_t i = 0; i < graph_.instances.size(); ++i)
      if (graph_.instances[i].persistent && graph_.instances[i].over == no_instance)
        add_buffer(static_cast<InstanceId>(i), StreamId::Compute);
    if (stays_ == no_tensor) return;
    const auto first = std::ranges::find_if(
        graph_.instances, [this](const Instance& instance) { return stays(instance); });
    if (first == graph_.instances.end()) return;
    const auto id = static_cast<InstanceId>(first - graph_.instances.begin());
    Buffer& buffer = schedule_.buffers[index(add_buffer(id, StreamId::Compute))];
    buffer.persistent = true;
    buffer.category = Category::Workspace;
    staying_ = buffer_of(id);
  }

  BufferId add_buffer(InstanceId id, StreamId stream) {
    const Instance& instance = graph_[id];
    const auto buffer = static_cast<BufferId>(schedule_.buffers.size());
    schedule_.buffers.push_back({instance.size, instance.tensor, instance.role, instance.category,
                                 stream, instance.persistent, instance.encoding});
    return buffer_of(id) = buffer;
  }

  void place_node(std::size_t n) {
    const Node& node = graph_.nodes[n];
    const auto stream = stream_of(node.lane);
    follow_edges(n);
    follow_host_copies(node, stream);
    collect_operands(node);
    order_.before_run(stream, reads_, writes_);
    emit(node, stream);
    note_host_copies(node, stream);
    for (InstanceId i = first_freed_[n]; i != no_instance; i = next_freed_[index(i)])
      free(buffer_of(i), node.lane);
    if (!is_awaited_.empty() && is_awaited_[n]) done_[n] = order_.mark(stream);
    // Its reader comes long after, and must not wait for what is fetched in between.
    if (node.lane == Lane::CopyIn) order_.mark(stream);
  }

  void follow_edges(std::size_t position) {
    for (; next_edge_ < graph_.edges.size(); ++next_edge_) {
      const Edge& edge = graph_.edges[next_edge_];
      if (index(edge.from) > position) return;
      order_.follow(stream_of(edge.lane), done_[index(edge.before)]);
    }
  }

  void free(BufferId buffer, Lane lane) {
    if (is_copy(lane)) return order_.free_only_on(buffer, home_of(lane));
    order_.free(buffer, stream_of(lane));
  }

  // The host's memory has no buffers, so who copies from it is ordered here.
  void follow_host_copies(const Node& node, StreamId stream) {
    if (node.task) return;
    for (const InstanceId read : graph_.reads(node))
      if (graph_[read].on_host) order_.follow(stream, on_host_.at(read));
  }

  void note_host_copies(const Node& node, StreamId stream) {
    if (node.task) return;
    for (const InstanceId write : graph_.writes(node))
      if (graph_[write].on_host) on_host_[write] = order_.now(stream);
  }

  // What is written for the first time is allocated.
  void collect_operands(const Node& node) {
    reads_.clear(), writes_.clear();
    for (const InstanceId read : graph_.reads(node))
      if (!graph_[read].on_host) reads_.push_back(buffer_of(read));
    for (const InstanceId write : graph_.writes(node)) {
      if (graph_[write].on_host) continue;
      if (buffer_of(write) == no_buffer) give_memory(write, node.lane);
      writes_.push_back(buffer_of(write));
    }
  }

  void give_memory(InstanceId instance, Lane lane) {
    const InstanceId over = graph_[instance].over;
    if (over == no_instance && !stays(graph_[instance])) return allocate(instance, lane);
    buffer_of(instance) = over == no_instance ? staying_ : buffer_of(over);
  }

  // A stream that gets another one's memory waits until that one has it.
  void allocate(InstanceId instance, Lane lane) {
    const StreamId home = home_of(lane);
    schedule_.steps.emplace_back(Allocate{add_buffer(instance, home)});
    if (home != stream_of(lane)) order_.catch_up(stream_of(lane), home);
  }

  void emit(const Node& node, StreamId stream) {
    if (!node.task) return emit_copy(stream);
    const auto first = static_cast<std::uint32_t>(schedule_.operands.size());
    schedule_.operands.insert(schedule_.operands.end(), reads_.begin(), reads_.end());
    schedule_.operands.insert(schedule_.operands.end(), writes_.begin(), writes_.end());
    schedule_.steps.emplace_back(Run{*node.task, stream, node.op, first,
                                     static_cast<std::uint32_t>(reads_.size()),
                                     static_cast<std::uint32_t>(writes_.size())});
  }

  void emit_copy(StreamId stream) {
    if (writes_.empty()) {
      schedule_.steps.emplace_back(CopyOut{reads_.front(), stream});
    } else {
      schedule_.steps.emplace_back(CopyIn{writes_.front(), stream});
    }
  }

  const JointGraph& graph_;
  const TensorId stays_;
  BufferId staying_ = no_buffer;
  const LaneStreams streams_;
  Schedule schedule_;
  StreamOrder order_;
  std::vector<BufferId> buffer_of_;       // by instance, once it is written
  std::vector<InstanceId> first_freed_;   // by node: the first of the list of what it frees
  std::vector<InstanceId> next_freed_;    // by instance
  std::vector<bool> is_awaited_;          // by node; empty without edges, like the next
  std::vector<StreamOrder::Point> done_;  // by node, where awaited
  std::size_t next_edge_ = 0;
  std::unordered_map<InstanceId, StreamOrder::Point> on_host_;  // when each copy was made
  std::vector<BufferId> reads_, writes_;                        // of the node at hand
};

}  // namespace

// What a plan keeps until its gradients has memory of its own: another micro-batch may gather
// meanwhile.
Placement placement_of(const Trace& trace, const Plan& plan) {
  const TensorId gathered = gathered_in_place(trace);
  const bool is_kept =
      gathered != no_tensor &&
      (plan.decisions.empty() || plan.decisions[index(gathered)].action == Action::Keep);
  return {.synchronizes_host = plan.quirks.synchronizes_host,
          .regions_leave_compute = plan.quirks.two_new_streams,
          .stays = is_kept ? no_tensor : gathered};
}

Schedule place(const JointGraph& graph, const Placement& placement) {
  return Placing(graph, placement).run();
}

}  // namespace tidemark
