// What runs and buffers are called, and where they belong.
#include <fmt/format.h>

#include "gui/opened.h"

namespace tidemark::gui {

std::string Opened::describe(RunId run) const {
  const Step& step = schedule().steps[(*this)[run].step];
  if (const CopyOut* copy = std::get_if<CopyOut>(&step))
    return fmt::format("copy of {} to the host", describe(copy->buffer));
  if (const CopyIn* copy = std::get_if<CopyIn>(&step))
    return fmt::format("copy of {} from the host", describe(copy->buffer));
  const Run& of_step = std::get<Run>(step);
  if (of_step.op != no_op)
    return fmt::format("{} of {}", to_string(of_step.task), trace()[of_step.op].name);
  const auto writes = schedule().writes(of_step);
  if (writes.empty()) return std::string(to_string(of_step.task));
  return fmt::format("{} of {}", to_string(of_step.task), describe(writes.front()));
}

std::string Opened::describe(BufferId buffer) const {
  const Buffer& what = schedule()[buffer];
  const std::string_view role = roles[static_cast<std::size_t>(what.role)].name;
  if (what.tensor == no_tensor) return fmt::format("({}, {})", role, to_string(what.category));
  const std::string& tensor = trace()[what.tensor].name;
  return what.role == Role::Value ? tensor : fmt::format("{} ({})", tensor, role);
}

OpId Opened::home_of(BufferId buffer) const {
  const TensorId tensor = schedule()[buffer].tensor;
  if (tensor != no_tensor && home_[index(tensor)] != no_op) return home_[index(tensor)];
  const auto writer = buffers_.first_writer(buffer);
  return writer ? op_of(*writer) : no_op;
}

std::int32_t Opened::block_of(BufferId buffer) const {
  const OpId op = home_of(buffer);
  return op == no_op ? -1 : trace()[op].block;
}

std::string Opened::block_name(std::int32_t block) const {
  return block < 0 ? "outside of blocks" : trace().blocks[static_cast<std::size_t>(block)].name;
}

std::string_view Opened::decision_of(BufferId buffer) const {
  const Buffer& what = schedule()[buffer];
  const bool is_decided = what.role == Role::Value || what.role == Role::Codes;
  if (!is_decided || what.tensor == no_tensor || recording.decisions.empty()) return "";
  return recording.decisions[index(what.tensor)];
}

std::string Opened::why_alive(BufferId buffer) const {
  if (const auto decision = decision_of(buffer); !decision.empty()) return std::string(decision);
  if (schedule()[buffer].persistent) return "persistent";
  const auto recovers = [&](RunId id) {
    const Run* run = run_of(id);
    return run && (run->task == Task::Recompute || run->task == Task::Reconstruct);
  };
  const auto writer = buffers_.first_writer(buffer);
  if (writer && recovers(*writer)) return "not saved";
  // No backward reads the input of a checkpointed block, and yet it stays until that block runs
  // again.
  for (const std::uint32_t id : buffers_.runs_of(buffer))
    if (recovers(RunId{id})) return "held for the " + describe(RunId{id});
  return "not saved";
}

}  // namespace tidemark::gui
