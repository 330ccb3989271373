// Learned tokens as peft 0.21 puts them in front of others: embeddings in front of words, and keys
// and values in front of each block's own.
#include <fmt/format.h>

#include "traces/pieces.h"

namespace tidemark {

// peft_model.py, get_prompt(): one row of numbers is looked up, in fp32, and repeated for all
// samples. What is joined with the words, and what that makes, are variables of a call that returns
// the loss.
TensorId TraceBuilder::with_prompt(TensorId words) {
  const std::int64_t count = step().tuning.tokens;
  if (step().tuning.kind != Tuning::Kind::Prompt) return words;
  const Shape s = shape(words);
  const TensorId table =
      parameter_of("prompt.weight", {count, s[2]}, DType::Float32, ParameterRole::Adapter);
  const TensorId numbers = input("prompt_ids", {s[0], count}, DType::Int64, fill::Positions{});
  const TensorId row = select("prompt.row", numbers, {1, count});
  const TensorId learned = embedding("prompt", row, table);
  const TensorId heads = view("prompt.heads", learned, {1, 1, count, s[2]});
  const TensorId repeated = repeat_heads("prompt.repeat", heads, {1, s[0], count, s[2]});
  const TensorId of_all = view("prompt.samples", repeated, {s[0], count, s[2]});
  const TensorId prompts = local(cast("prompt.cast", of_all, trace_[words].dtype));
  const std::array parts = {prompts, words};
  return local(concat("prompt.join", parts, {s[0], count + s[1], s[2]}));
}

// peft_model.py, get_prompt(), and cache_utils.py of transformers: rows of a table in fp32, in the
// dtype of the base, are cut into keys and values, and a cache copies each.
std::vector<Prefix> TraceBuilder::prefixes(std::int64_t blocks, std::int64_t heads,
                                           std::int64_t head_width) {
  std::vector<Prefix> all(static_cast<std::size_t>(blocks));
  if (step().tuning.kind != Tuning::Kind::Prefix) return all;
  const std::int64_t batch = step().batch, count = step().tuning.tokens;
  const TensorId numbers = input("prefix_ids", {batch, count}, DType::Int64, fill::Positions{});
  const std::int64_t width = heads * head_width;
  const TensorId rows = cast("prefix.cast", prefix_rows(numbers, width, 2 * blocks * width), base_);
  const std::vector<TensorId> parts = cut(*this, "prefix.split", rows, 2, blocks);
  const Shape of_heads = {batch, heads, count, head_width};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = fmt::format("prefix.{}", i);
    const auto both =
        split(name, parts[i], {of_heads, of_heads}, {"k", "v"}, LayoutTransform::SplitHeads);
    all[i] = {copy(name + ".keys", both[0], of_heads), copy(name + ".values", both[1], of_heads)};
  }
  return all;
}

// tuners/prefix_tuning/model.py: looked up as they are, or made by an MLP.
TensorId TraceBuilder::prefix_rows(TensorId numbers, std::int64_t width, std::int64_t of_all) {
  const std::int64_t tokens = step().tuning.tokens, inside = step().tuning.projection;
  const auto learned = [&](std::string_view name, const Shape& shape) {
    return parameter_of(name, shape, DType::Float32, ParameterRole::Adapter);
  };
  if (inside == 0) return embedding("prefix", numbers, learned("prefix.weight", {tokens, of_all}));
  const TensorId x = embedding("prefix", numbers, learned("prefix.weight", {tokens, width}));
  const TensorId y =
      linear_with("prefix.project_in", x, learned("prefix.project_in.weight", {inside, width}),
                  learned("prefix.project_in.bias", {inside}));
  return linear_with("prefix.project_out", tanh("prefix.tanh", y),
                     learned("prefix.project_out.weight", {of_all, inside}),
                     learned("prefix.project_out.bias", {of_all}));
}

// A cache names what it joined until the model returns it, with its loss. Autocast joins in the
// wider dtype.
TensorId TraceBuilder::behind(const std::string& name, TensorId prefix, TensorId x) {
  if (prefix == no_tensor) return x;
  const Shape s = shape(x);
  const DType dtype = promoted(prefix, x);
  const std::array parts = {cast(name + ".past", prefix, dtype), cast(name + ".wide", x, dtype)};
  const Shape joined = {s[0], s[1], shape(prefix)[2] + s[2], s[3]};
  cached_.push_back(concat(name + ".join", parts, joined));
  return cached_.back();
}

}  // namespace tidemark
