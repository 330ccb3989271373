// The judge's idea of what ranks exchange. All of them compute the same here, so an average over d
// ranks is a sum of d equal numbers: a gradient that was never reduced, or twice, has another one.
#include <algorithm>

#include "simulator/judge/validate_runs.h"
#include "traces/replicas.h"

namespace tidemark::judge {

std::vector<Runs::Content> Runs::contents_of(const Operand& read) const {
  const Buffer& from = buffer(read);
  if (from.role != Role::Temporary) return {{from.tensor, from.role, read.number}};
  const auto found = contents_.find(read.buffer);
  return found == contents_.end() ? std::vector<Content>() : found->second;
}

// A temporary takes all there is, a tensor what is its own.
void Runs::put(const Operand& write, const std::vector<Content>& contents) {
  const Buffer& to = buffer(write);
  if (to.role == Role::Temporary) {
    contents_[write.buffer] = contents;
    return memory_.write(write.buffer, 1);
  }
  const auto found = std::ranges::find_if(contents, [&](const Content& content) {
    return content.tensor == to.tensor && content.role == to.role;
  });
  if (found == contents.end())
    return memory_.complain("has nothing for {}", memory_.name(write.buffer));
  memory_.write(write.buffer, found->number);
}

// Those of an expert are fewer.
std::int64_t Runs::replicas(TensorId parameter) const {
  const Mesh& mesh = trace_.step.mesh;
  return of_experts_[index(parameter)] ? expert_replicas_of(mesh) : replicas_of(mesh);
}

// Of hybrid sharding a group reduces gradients, and all groups reduce the shards of that; 0: such
// contents are not reduced.
std::uint64_t Runs::ranks_that_reduce(const Content& content) const {
  const Role role = content.role;
  const std::int64_t ranks = replicas(content.tensor);
  const std::int64_t grouped = trace_.step.shard.value_or(Sharding()).shard_ranks;
  if (role == Role::Gradient) return static_cast<std::uint64_t>(grouped > 0 ? grouped : ranks);
  const bool is_part = role == Role::GradientShard && grouped > 0;
  return is_part ? static_cast<std::uint64_t>(ranks / grouped) : 0;
}

void Runs::exchange(Task task) {
  std::vector<Content> contents;
  for (Operand& read : reads_) {
    read.is_expected = true;
    for (Content content : contents_of(read)) {
      const bool is_reduced = task == Task::AllReduce || task == Task::ReduceScatter;
      const std::uint64_t ranks = ranks_that_reduce(content);
      if (is_reduced && ranks == 0)
        memory_.complain("reduces the {} of {}", roles[static_cast<std::size_t>(content.role)].name,
                         memory_.name(content.tensor));
      if (is_reduced) content.number *= ranks;
      if (task == Task::ReduceScatter) content.role = Role::GradientShard;
      if (task == Task::AllGather && content.role == Role::Shard) content.role = Role::Value;
      contents.push_back(content);
    }
  }
  for (Operand& write : writes_) {
    write.is_expected = true;
    put(write, contents);
    if (buffer(write).role == Role::Value) is_stale_[index(buffer(write).tensor)] = false;
  }
}

// Of micro-batches that are reduced one by one.
void Runs::add_shards() {
  writes_[0].is_expected = true;
  std::uint64_t sum = 0;
  for (Operand& read : reads_) {
    read.is_expected = buffer(read).role == Role::GradientShard &&
                       buffer(read).tensor == buffer(writes_[0]).tensor;
    sum += read.number;
  }
  memory_.write(writes_[0].buffer, sum);
}

// Of micro-batches whose gradients are added up in one buffer.
void Runs::add_to_buffer() {
  std::vector<Content> sums;
  for (Operand& read : reads_) {
    read.is_expected = true;
    for (const Content& content : contents_of(read)) {
      const auto found = std::ranges::find(sums, content.tensor, &Content::tensor);
      if (found == sums.end())
        sums.push_back(content);
      else
        found->number += content.number;
    }
  }
  writes_[0].is_expected = true;
  put(writes_[0], sums);
}

// A product may add the gradient of its weight to a buffer of many, which it reads and writes,
// instead of writing it.
bool Runs::add_to_main_gradient(TensorId parameter, std::uint64_t number) {
  const Tensor& tensor = trace_[parameter];
  const auto sharing = sharing_of(trace_.step);
  const bool has_buffers = sharing && sharing->kind == Sharding::Kind::Megatron;
  if (!has_buffers || tensor.category != Category::Parameter) return false;
  const auto is_read = [&](BufferId id) {
    return find(reads_, [&](const Operand& read) {
      return read.buffer == id && buffer(read).role == Role::Temporary;
    });
  };
  const Operand* main = nullptr;
  for (const Operand& write : writes_) {
    if (buffer(write).role == Role::Gradient && buffer(write).tensor == parameter) return false;
    if (buffer(write).role == Role::Temporary && is_read(write.buffer)) main = &write;
  }
  if (!main) return false;
  std::vector<Content> sums = contents_of(*main);
  const auto found = std::ranges::find(sums, parameter, &Content::tensor);
  if (found == sums.end())
    sums.push_back({parameter, Role::Gradient, number});
  else
    found->number += number;
  find(writes_, [&](const Operand& write) { return write.buffer == main->buffer; });
  put(*main, sums);
  return true;
}

// Averaged over ranks where there are several, wherever it lies then.
void Runs::read_shared_gradient(TensorId tensor) {
  const std::int64_t micro_batches = trace_.step.accumulate.count;
  const std::int64_t ranks = replicas(tensor);
  if (!sharing_of(trace_.step)) return read_gradient(tensor, micro_batches);
  const std::uint64_t wanted =
      static_cast<std::uint64_t>(micro_batches * ranks) * numbers_.gradient(tensor);
  const auto is_it = [&](const Content& content) {
    const bool is_gradient = content.role == Role::Gradient || content.role == Role::GradientShard;
    return is_gradient && content.tensor == tensor && content.number == wanted;
  };
  bool is_read = false;
  for (Operand& read : reads_) {
    if (!std::ranges::any_of(contents_of(read), is_it)) continue;
    is_read = read.is_expected = true;
  }
  if (!is_read)
    memory_.complain("does not read the gradient of {} of all ranks", memory_.name(tensor));
}

}  // namespace tidemark::judge
