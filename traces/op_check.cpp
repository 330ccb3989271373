// What must hold for each op of a trace: operands, storages, attributes, keys, place, residual.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/quoted.h"
#include "traces/shape_rules.h"
#include "traces/trace_check.h"

namespace tidemark {
namespace {

constexpr std::uint64_t largest_key = std::uint64_t{1} << 53;  // exact in every JSON reader

bool names_layout_transform(double value) {
  return value >= 0 && value < static_cast<double>(layout_transforms.size()) &&
         value == std::floor(value);
}

class OpChecker {
 public:
  OpChecker(const Trace& trace, const TraceFacts& facts, Defects& defects)
      : trace_(trace), facts_(facts), defects_(defects), closed_parts_(trace.blocks.size()) {}

  void check_operands(std::size_t i);
  void check_attributes(std::size_t i);
  void check_kept(std::size_t i);
  void check_random_key(std::size_t i);
  void check_place(std::size_t i);
  void check_residual(std::size_t i);
  void check_pool_ends();

 private:
  template <typename... Args>
  void fail(std::size_t i, std::string_view field, fmt::format_string<Args...> problem,
            Args&&... args) {
    defects_.add(pointer_to("ops", i, field), problem, std::forward<Args>(args)...);
  }

  bool check_inputs(std::size_t i);
  bool check_outputs(std::size_t i);
  void check_output(std::size_t i, std::size_t j);
  void check_storage(std::size_t i, std::size_t j);
  std::string name_of_block(std::int32_t block) const;

  const Trace& trace_;
  const TraceFacts& facts_;
  Defects& defects_;
  std::size_t next_operand_ = 0, next_attribute_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> keys_;
  std::vector<std::uint8_t> closed_parts_;  // per block: bit p is set once part p has its add
};

// The pools hold one op's entries behind the other's, so a trace has one form and a file of it
// reads back equal.
void OpChecker::check_operands(std::size_t i) {
  const Op& op = trace_.ops[i];
  const bool is_in_range = has_operands(trace_, op);
  if (op.first_operand != next_operand_ || !is_in_range)
    fail(i, "", "has operands {} to {} of {}; need them from {}, where the op before ends",
         op.first_operand, std::size_t{op.first_operand} + op.inputs + op.outputs,
         trace_.operands.size(), next_operand_);
  next_operand_ = std::size_t{op.first_operand} + op.inputs + op.outputs;
  if (!is_in_range) return;
  const bool inputs_are_sound = check_inputs(i);
  if (!check_outputs(i) || !inputs_are_sound) return;
  if (const std::string defect = shape_defect(trace_, op); !defect.empty())
    fail(i, "", "{} {}: {}", to_string(op.kind), quoted(op.name), defect);
}

/// True if a look at the shapes makes sense.
bool OpChecker::check_inputs(std::size_t i) {
  const Op& op = trace_.ops[i];
  bool is_sound = op.inputs <= max_operands;
  if (!is_sound) fail(i, "/inputs", "found {}; need at most {}", op.inputs, max_operands);
  for (std::size_t j = 0; j < op.inputs; ++j) {
    const TensorId input = trace_.inputs(op)[j];
    if (const std::string defect = read_defect(trace_, facts_, input, i); !defect.empty())
      fail(i, fmt::format("/inputs/{}", j), "{}", defect);
    is_sound = is_sound && exists(trace_, input) && facts_.is_countable[index(input)];
  }
  return is_sound;
}

bool OpChecker::check_outputs(std::size_t i) {
  const Op& op = trace_.ops[i];
  bool is_sound = op.outputs >= 1 && op.outputs <= max_operands;
  if (!is_sound) fail(i, "/outputs", "found {}; need 1 to {}", op.outputs, max_operands);
  for (std::size_t j = 0; j < op.outputs; ++j) {
    const TensorId output = trace_.outputs(op)[j];
    if (exists(trace_, output))
      check_output(i, j);
    else
      fail(i, fmt::format("/outputs/{}", j), "{}", missing_tensor(trace_, output));
    is_sound = is_sound && exists(trace_, output) && facts_.is_countable[index(output)];
  }
  return is_sound;
}

void OpChecker::check_output(std::size_t i, std::size_t j) {
  const auto outputs = trace_.outputs(trace_.ops[i]);
  const Tensor& tensor = trace_[outputs[j]];
  const std::uint32_t producer = facts_.producer[index(outputs[j])];
  const bool is_repeated = std::ranges::count(outputs.first(j), outputs[j]) > 0;
  if (producer != i || is_repeated)
    fail(i, fmt::format("/outputs/{}", j), "/ops/{} has made {} already; need a tensor of its own",
         producer, quoted(tensor.name));
  if (exists(trace_, tensor.storage)) check_storage(i, j);
}

// What an op makes is new memory, or shares that of an input: a view, or a result in place.
void OpChecker::check_storage(std::size_t i, std::size_t j) {
  const Op& op = trace_.ops[i];
  const auto inputs = trace_.inputs(op);
  const TensorId id = trace_.outputs(op)[j];
  const Tensor& tensor = trace_[id];
  const auto shares = [&](TensorId input) {
    return exists(trace_, input) && trace_[input].storage == tensor.storage;
  };
  if (is_view(op.kind)) {
    if (!inputs.empty() && !shares(inputs[0]))
      fail(i, fmt::format("/outputs/{}", j),
           "{} does not share the storage of in0; need that for a {}", quoted(tensor.name),
           to_string(op.kind));
    return;
  }
  if (tensor.storage != id) {
    if (std::ranges::none_of(inputs, shares))
      fail(i, fmt::format("/outputs/{}", j), "{} shares a storage that no input has; need its own",
           quoted(tensor.name));
    return;
  }
  if (tensor.category == Category::Parameter || tensor.category == Category::Input)
    fail(i, fmt::format("/outputs/{}", j), "{} is a tensor of category {}; need one that ops make",
         quoted(tensor.name), to_string(tensor.category));
}

void OpChecker::check_attributes(std::size_t i) {
  const Op& op = trace_.ops[i];
  if (op.first_attribute != next_attribute_ || !has_attributes(trace_, op))
    fail(i, "", "has attributes {} to {} of {}; need them from {}, where the op before ends",
         op.first_attribute, std::size_t{op.first_attribute} + op.attributes,
         trace_.attributes.size(), next_attribute_);
  next_attribute_ = std::size_t{op.first_attribute} + op.attributes;
  if (!has_attributes(trace_, op)) return;
  std::uint32_t seen = 0;
  for (const Attribute& attribute : trace_.attributes_of(op)) {
    const auto key = static_cast<std::size_t>(attribute.key);
    const auto field = [&] { return fmt::format("/attributes/{}", attribute_keys[key].name); };
    if (!std::isfinite(attribute.value))
      fail(i, field(), "found {}; need a finite number", attribute.value);
    if (attribute.key == AttributeKey::LayoutTransform && !names_layout_transform(attribute.value))
      fail(i, field(), "found {}; need a number from 0 to {}", attribute.value,
           layout_transforms.size() - 1);
    if ((seen >> key & 1) != 0) fail(i, field(), "found it twice; need it once");
    seen |= std::uint32_t{1} << key;
  }
}

void OpChecker::check_kept(std::size_t i) {
  const Op& op = trace_.ops[i];
  for (int bit = 0; op.also_keeps != 0 && bit < 32; ++bit) {
    const int count = bit < 16 ? op.inputs : op.outputs;
    if ((op.also_keeps >> bit & 1) != 0 && bit % 16 >= count)
      fail(i, "/also_keeps", "found {}; need an operand that the op has ({}: {})",
           operand_label(bit), bit < 16 ? "inputs" : "outputs", count);
  }
}

void OpChecker::check_random_key(std::size_t i) {
  const Op& op = trace_.ops[i];
  if (op.rng_key > largest_key)
    fail(i, "/rng_key", "found {}; need a number up to 2^53", op.rng_key);
  if (!row_of(op.kind).is_random) return;
  if (op.rng_key == 0)
    return fail(i, "/rng_key", "found none; {} is random and needs a key from 1",
                to_string(op.kind));
  const auto [first, is_new] = keys_.emplace(op.rng_key, i);
  if (!is_new)
    fail(i, "/rng_key", "{} is the key of /ops/{}, too; need other random numbers", op.rng_key,
         first->second);
}

std::string OpChecker::name_of_block(std::int32_t block) const {
  if (block == -1) return "no block";
  if (block < 0 || block >= std::ssize(trace_.blocks)) return fmt::format("block {}", block);
  return quoted(trace_.blocks[static_cast<std::size_t>(block)].name);
}

void OpChecker::check_place(std::size_t i) {
  const Op& op = trace_.ops[i];
  const bool exists = op.block >= -1 && op.block < std::ssize(trace_.blocks);
  if (facts_.blocks_are_in_order && op.block != facts_.owner[i])
    fail(i, "/block", "found {}; need {}, as a block is one run of ops", name_of_block(op.block),
         name_of_block(facts_.owner[i]));
  else if (!exists)
    fail(i, "/block", "found {}; need one below {}, or no block", name_of_block(op.block),
         trace_.blocks.size());
  if (op.part != Part::None && op.block == -1)
    fail(i, "/part", "found a part, but no block; need both or none");
}

void OpChecker::check_residual(std::size_t i) {
  const Op& op = trace_.ops[i];
  if (!op.residual) return;
  if (op.kind != OpKind::Add)
    fail(i, "/residual", "found it on {}; need an add", to_string(op.kind));
  if (op.part == Part::None || op.block < 0 || op.block >= std::ssize(trace_.blocks)) return;
  const auto part = static_cast<std::uint8_t>(1 << static_cast<int>(op.part));
  std::uint8_t& closed = closed_parts_[static_cast<std::size_t>(op.block)];
  if ((closed & part) != 0)
    fail(i, "/residual", "this part of {} has its residual add already; need one per part",
         name_of_block(op.block));
  closed = static_cast<std::uint8_t>(closed | part);
}

void OpChecker::check_pool_ends() {
  if (next_operand_ < trace_.operands.size())
    defects_.add("/ops", "{} operands belong to no op; need none",
                 trace_.operands.size() - next_operand_);
  if (next_attribute_ < trace_.attributes.size())
    defects_.add("/ops", "{} attributes belong to no op; need none",
                 trace_.attributes.size() - next_attribute_);
}

}  // namespace

void check_ops(const Trace& trace, const TraceFacts& facts, Defects& defects) {
  if (trace.ops.empty()) defects.add("/ops", "found no op; need at least one");
  UniqueNames names("ops", trace.ops.size());
  OpChecker checker(trace, facts, defects);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    names.check(i, trace.ops[i].name, defects);
    checker.check_operands(i);
    checker.check_attributes(i);
    checker.check_kept(i);
    checker.check_random_key(i);
    checker.check_place(i);
    checker.check_residual(i);
  }
  checker.check_pool_ends();
}

}  // namespace tidemark
