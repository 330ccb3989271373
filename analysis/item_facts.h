// What is known about one tensor, or one op, of a planned step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/report.h"
#include "simulator/cost/cost_model.h"

namespace tidemark {

/// An op that reads a tensor or holds it for its backward.
struct Reader {
  std::string op;
  std::string operation;  ///< what that op does, by its kind
  int operand = 0;        ///< input i, or 16 + output j
};

/// From when to when a buffer of the tensor is present.
struct Life {
  Role role{};
  Bytes size;
  bool persistent = false;  ///< before and after the step, too
  Nanoseconds begin{}, end{};
};

struct TensorFacts {
  Tensor tensor;
  std::string storage;  ///< the tensor that owns the memory
  Bytes storage_size;
  std::string producer;  ///< "" if it comes from outside
  std::string line;      ///< of the model's code that called the producer; "" if unknown
  std::vector<Reader> readers;
  std::vector<Reader> holders;  ///< whose backward needs it
  bool is_saved = false;
  Action action{};
  std::string reason;
  std::string recovery;  ///< the ops that are recovered together, or ""
  std::vector<Life> lives;
};

struct OperandFacts {
  int operand = 0;
  Tensor tensor;
  bool is_held = false;  ///< for the backward
};

struct RunFacts {
  Task task{};
  StreamId stream{};
  Nanoseconds begin{}, end{};
  Cost cost;  ///< alone on the device
};

struct OpFacts {
  std::string name;
  OpKind kind{};
  std::optional<OpaqueRow> row;  ///< of an opaque op
  bool is_time_guessed = false;  ///< its row does not say what it computes or moves
  std::string block;
  std::string line;  ///< of the model's code that called it; "" if unknown
  std::vector<OperandFacts> operands;
  std::vector<RunFacts> runs;
};

/// An op and its first output often share one name.
struct ItemFacts {
  std::optional<OpFacts> op;
  std::optional<TensorFacts> tensor;
};

/// What is called so.
struct NamedItem {
  OpId op = no_op;
  TensorId tensor = no_tensor;
};

/// UsageError with near names if there is neither a tensor nor an op called so.
NamedItem item_named(const Trace& trace, std::string_view name);

/// The same, with all that is known about it.
ItemFacts find_item(const Evaluation& evaluation, const Device& device, std::string_view name);

/// "input 0", "output 1".
std::string operand_text(int operand);

}  // namespace tidemark
