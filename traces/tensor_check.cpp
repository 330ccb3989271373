// What must hold for each tensor of a trace: shape, training, storage, holding op and fill.
#include <algorithm>

#include "base/quoted.h"
#include "traces/trace_check.h"

namespace tidemark {
namespace {

constexpr std::int64_t largest_total = std::int64_t{1} << 58;

class TensorChecker {
 public:
  TensorChecker(const Trace& trace, const TraceFacts& facts, Defects& defects)
      : trace_(trace), facts_(facts), defects_(defects) {}

  void check_shape(std::size_t i);
  void check_trainable(std::size_t i);
  void check_storage(std::size_t i);
  void check_hold(std::size_t i);
  void check_fill(std::size_t i);

 private:
  template <typename... Args>
  void fail(std::size_t i, std::string_view field, fmt::format_string<Args...> problem,
            Args&&... args) {
    defects_.add(pointer_to("tensors", i, field), problem, std::forward<Args>(args)...);
  }

  const Trace& trace_;
  const TraceFacts& facts_;
  Defects& defects_;
  std::int64_t total_ = 0;
};

void TensorChecker::check_shape(std::size_t i) {
  const Tensor& tensor = trace_.tensors[i];
  const auto dims = tensor.shape.dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] < 1)
      fail(i, fmt::format("/shape/{}", axis), "found {}; need 1 or more", dims[axis]);
  if (!facts_.is_countable[i]) {
    if (std::ranges::all_of(dims, [](std::int64_t dim) { return dim > 0; }))
      fail(i, "/shape", "{} is larger than 1 EiB; use a smaller batch, sequence or model",
           to_text(tensor.shape));
    return;
  }
  if (total_ > largest_total) return;  // once is enough
  total_ += size(tensor).count;
  if (total_ > largest_total)
    fail(i, "/shape",
         "all tensors up to this one have more than 2^58 bytes; use a smaller batch, sequence or "
         "model");
}

void TensorChecker::check_trainable(std::size_t i) {
  const Tensor& tensor = trace_.tensors[i];
  const bool is_made = facts_.producer[i] != TraceFacts::nobody;
  if (!tensor.trainable) return;
  // A scalar input may have a gradient for the sake of those behind it, as what `receive` reads.
  const bool may_learn = tensor.category == Category::Parameter ||
                         (tensor.category == Category::Input && tensor.shape.rank() == 0);
  if (may_learn && is_floating(tensor.dtype) && !is_made) return;
  fail(i, "/trainable", "{} is {} {}{}; need a floating-point parameter that no op makes",
       quoted(tensor.name), to_string(tensor.dtype), to_string(tensor.category),
       is_made ? ", made by an op" : "");
}

void TensorChecker::check_storage(std::size_t i) {
  const Tensor& tensor = trace_.tensors[i];
  if (!exists(trace_, tensor.storage))
    return fail(i, "/storage", "{}", missing_tensor(trace_, tensor.storage));
  if (index(tensor.storage) == i) return;
  const Tensor& root = trace_[tensor.storage];
  const std::string owner = quoted(root.name);
  if (root.storage != tensor.storage)
    fail(i, "/storage", "{} is a view itself; need the tensor that owns the bytes", owner);
  if (root.dtype != tensor.dtype)
    fail(i, "/dtype", "found {}; need {} as {}, the storage", to_string(tensor.dtype),
         to_string(root.dtype), owner);
  if (root.category != tensor.category)
    fail(i, "/category", "found {}; need {} as {}, the storage", to_string(tensor.category),
         to_string(root.category), owner);
  if (!facts_.is_countable[i] || !facts_.is_countable[index(tensor.storage)]) return;
  if (size(tensor) > size(root))
    fail(i, "/shape", "{} has {} bytes; need at most the {} of {}, the storage",
         to_text(tensor.shape), size(tensor).count, size(root).count, owner);
}

void TensorChecker::check_hold(std::size_t i) {
  const Tensor& tensor = trace_.tensors[i];
  if (tensor.held_until == no_op) return;
  if (index(tensor.held_until) >= trace_.ops.size())
    return fail(i, "/held_until", "found op number {}; need one below {}", index(tensor.held_until),
                trace_.ops.size());
  if (index(tensor.storage) != i)
    fail(i, "/held_until", "{} is a view; need it on the tensor that owns the bytes",
         quoted(tensor.name));
  const std::uint32_t producer = facts_.producer[i];
  if (producer != TraceFacts::nobody && producer > index(tensor.held_until))
    fail(i, "/held_until", "/ops/{} is before /ops/{} makes {}; need that or a later one",
         index(tensor.held_until), producer, quoted(tensor.name));
}

void TensorChecker::check_fill(std::size_t i) {
  const Tensor& tensor = trace_.tensors[i];
  if (tensor.fill == no_fill) return;
  if (index(tensor.fill) >= trace_.fills.size())
    return fail(i, "/fill", "found fill number {}; need one below {}", index(tensor.fill),
                trace_.fills.size());
  if (tensor.category != Category::Input || facts_.producer[i] != TraceFacts::nobody ||
      index(tensor.storage) != i)
    return fail(i, "/fill", "{} is no input of its own; need a fill only where a step reads data",
                quoted(tensor.name));
  if (!facts_.is_countable[i]) return;
  const InputFill& fill = trace_.fills[index(tensor.fill)];
  if (const std::string_view need = unmet_need(tensor, fill); !need.empty())
    fail(i, "/fill", "{} {} cannot be filled with {}; need {}", to_string(tensor.dtype),
         to_text(tensor.shape), fill_names[fill.index()], need);
}

}  // namespace

void check_tensors(const Trace& trace, const TraceFacts& facts, Defects& defects) {
  UniqueNames names("tensors", trace.tensors.size());
  TensorChecker checker(trace, facts, defects);
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    names.check(i, trace.tensors[i].name, defects);
    checker.check_shape(i);
    checker.check_trainable(i);
    checker.check_storage(i);
    checker.check_hold(i);
    checker.check_fill(i);
  }
}

}  // namespace tidemark
