// Options that say how ranks work together where there is one of them. They are no mistakes: a
// script that goes through meshes keeps them all the while.
#include "analysis/idle_options.h"

#include <fmt/format.h>

#include "simulator/parallel/user_buffers.h"

namespace tidemark {

std::vector<std::string> idle_options(const StepOptions& step) {
  std::vector<std::string> lines;
  const auto note = [&](bool is_idle, std::string_view why) {
    if (is_idle) lines.push_back(fmt::format("{}: it changes nothing", why));
  };
  const Mesh& mesh = step.mesh;
  note(step.sequence_parallel && mesh[Axis::Tensor] == 1,
       "--sp cuts what tp ranks share, and here is one");
  note(step.tp_overlap && !has_user_buffers(step),
       "--tp-overlap hides what tp ranks exchange under --sp with --framework megatron, and here "
       "is none");
  note(step.context_form && mesh[Axis::Context] == 1,
       "--cp-form is about tokens of a sample that cp ranks share, and here is one");
  note(step.schedule && mesh[Axis::Pipeline] == 1,
       "--schedule orders what pp stages do, and here is one");
  note(mesh.expert_tensor > 0 && mesh.experts == 1,
       "etp cuts experts that ep ranks share, and here is one");
  note(step.shard && !sharing_of(step),
       "--shard is about what dp or cp ranks share, and here is one");
  return lines;
}

}  // namespace tidemark
