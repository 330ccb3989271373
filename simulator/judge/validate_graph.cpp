// What every joint graph promises, by a naive walk over its nodes in issue order.
//
// * Ids point to something; edges and holds to nodes that come before what they order.
// * Each version is written by one node; what is persistent is there before, in its first version.
// * It is read after it was written, and before another version is written over it.
// * A version over another is of the same tensor, role and size, or a gradient over a value of its
//   size, and the only one over it.
#include <fmt/format.h>

#include "simulator/judge/validate.h"

namespace tidemark {
namespace {

class GraphWalk {
 public:
  explicit GraphWalk(const JointGraph& graph) : graph_(graph), state_(graph.instances.size()) {}

  std::vector<std::string> run() && {
    for (std::size_t i = 0; i < state_.size(); ++i) begin(i);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) walk(n);
    for (std::size_t i = 0; i < state_.size(); ++i)
      if (state_[i] == State::Unwritten) complain("instance {} is never written", i);
    check_edges();
    for (const Hold& hold : graph_.holds)
      if (!exists(hold.instance) || index(hold.until) >= graph_.nodes.size())
        complain("a hold refers to what is not there");
    return std::move(complaints_);
  }

 private:
  enum class State : std::uint8_t { Unwritten, Full, Overwritten };

  template <typename... Args>
  void complain(fmt::format_string<Args...> problem, Args&&... args) {
    complaints_.push_back(fmt::format(problem, std::forward<Args>(args)...));
  }

  bool exists(InstanceId id) const { return index(id) < state_.size(); }

  void begin(std::size_t i) {
    const Instance& instance = graph_.instances[i];
    if (instance.over == no_instance) {
      state_[i] = instance.persistent ? State::Full : State::Unwritten;
      return;
    }
    if (index(instance.over) >= i) return complain("instance {} lies over a later one", i);
    const Instance& under = graph_[instance.over];
    const bool is_gradient_over_value =
        instance.role == Role::Gradient && under.role == Role::Value;
    const bool is_same = under.tensor == instance.tensor && under.role == instance.role;
    if ((!is_same && !is_gradient_over_value) || under.size != instance.size)
      complain("instance {} lies over something else", i);
  }

  void walk(std::size_t n) {
    const Node& node = graph_.nodes[n];
    if (!graph_.uses(node.lane)) complain("node {} is on a lane that is not in use", n);
    if (std::size_t{node.first_operand} + node.reads + node.writes > graph_.operands.size())
      return complain("node {} has operands that are not there", n);
    for (const InstanceId id : graph_.reads(node)) {
      if (!exists(id)) return complain("node {} reads what is not there", n);
      if (state_[index(id)] != State::Full)
        complain("node {} reads instance {}, which is {}", n, index(id),
                 state_[index(id)] == State::Unwritten ? "not written yet" : "overwritten");
    }
    for (const InstanceId id : graph_.writes(node)) write(n, id);
  }

  void write(std::size_t n, InstanceId id) {
    if (!exists(id)) return complain("node {} writes what is not there", n);
    if (state_[index(id)] != State::Unwritten)
      complain("node {} writes instance {} again", n, index(id));
    state_[index(id)] = State::Full;
    const InstanceId over = graph_[id].over;
    if (over == no_instance) return;
    if (state_[index(over)] != State::Full)
      complain("node {} writes instance {} over what is not there", n, index(id));
    state_[index(over)] = State::Overwritten;
  }

  void check_edges() {
    NodeId last{0};
    for (const Edge& edge : graph_.edges) {
      const bool is_sound = graph_.uses(edge.lane) && edge.before < edge.from &&
                            last <= edge.from && index(edge.from) <= graph_.nodes.size();
      if (!is_sound) complain("an edge orders nothing");
      last = edge.from;
    }
  }

  const JointGraph& graph_;
  std::vector<State> state_;  // by instance
  std::vector<std::string> complaints_;
};

}  // namespace

std::vector<std::string> validate(const JointGraph& graph) { return GraphWalk(graph).run(); }

}  // namespace tidemark
