// A small ViT on digits and a small GPT-2 on text; Philox draws the batches from seed and step.
#include "examples/training/task.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "kernels/philox.h"

namespace tidemark::training {
namespace {

constexpr std::int64_t training_digits = 1500;
constexpr std::int64_t window = 32;  // tokens that the text task's network sees

// A random index below `limit`: the same for a seed and step, whoever asks.
std::size_t pick(std::uint64_t seed, std::int64_t step, std::int64_t i, std::size_t limit) {
  constexpr std::uint64_t key = 0x62617463;  // apart from the keys of dropout, which are small
  const float u = uniform_at(seed, step, key, static_cast<std::uint64_t>(i));
  return std::min(static_cast<std::size_t>(static_cast<double>(u) * static_cast<double>(limit)),
                  limit - 1);
}

void append(profiler::NamedValues& inputs, const Digit& digit) {
  std::vector<double>& images = inputs["images"];
  images.insert(images.end(), digit.pixels.begin(), digit.pixels.end());
  inputs["targets"].push_back(static_cast<double>(digit.label));
}

void append(profiler::NamedValues& inputs, const Corpus& corpus, std::size_t begin) {
  for (std::size_t i = begin; i < begin + window; ++i)
    for (const char* name : {"input_ids", "labels"})
      inputs[name].push_back(static_cast<double>(corpus.tokens[i]));
  // The loss itself compares each token's prediction with the label behind it; behind the last one
  // there is none.
  constexpr double ignored = -100;
  inputs["labels"].push_back(ignored);
}

Model digits_model() {
  return {.name = "ViT",
          .family = "vit",
          .title = "",
          .source = "",
          .config = VitConfig{.image = digit_side,
                              .patch = 2,
                              .channels = 1,
                              .width = 32,
                              .depth = 3,
                              .heads = 2,
                              .mlp = 64,
                              .classes = digit_classes,
                              .dropout = 0.1,
                              .drop_path = 0.1}};
}

// No dropout: so short a training never learns its text by heart.
Model text_model(std::int64_t vocabulary) {
  return {.name = "GPT-2",
          .family = "gpt2",
          .title = "",
          .source = "",
          .config = Gpt2Config{.width = 32,
                               .depth = 2,
                               .heads = 2,
                               .mlp = 128,
                               .vocabulary = vocabulary,
                               .positions = window,
                               .embedding_dropout = 0,
                               .residual_dropout = 0,
                               .attention_dropout = 0}};
}

}  // namespace

Task digits_task(std::vector<Digit> digits) {
  if (std::ssize(digits) <= training_digits)
    throw InputError("the digits are too few to hold some out");
  const auto shared = std::make_shared<const std::vector<Digit>>(std::move(digits));
  Task task{.title = "A small ViT on handwritten digits",
            .model = digits_model(),
            .batch = 32,
            .learning_rate = 5e-3,
            .batch_of = {},
            .held_out_batch = 1,
            .held_out_batches = std::ssize(*shared) - training_digits,
            .held_out = {},
            .is_classifier = true};
  task.batch_of = [shared, batch = task.batch](std::uint64_t seed, std::int64_t step) {
    profiler::NamedValues inputs;
    for (std::int64_t i = 0; i < batch; ++i)
      append(inputs, (*shared)[pick(seed, step, i, training_digits)]);
    return inputs;
  };
  task.held_out = [shared](std::int64_t index) {
    profiler::NamedValues inputs;
    append(inputs, (*shared)[static_cast<std::size_t>(training_digits + index)]);
    return inputs;
  };
  return task;
}

Task text_task(Corpus corpus) {
  const std::size_t learned = corpus.tokens.size() / 10 * 9;
  Task task{.title = "A small GPT-2 on the documentation of this project",
            .model = text_model(corpus.vocabulary),
            .batch = 16,
            .learning_rate = 2e-3,
            .batch_of = {},
            .held_out_batch = 16,
            .held_out_batches = 0,
            .held_out = {}};
  const auto room = static_cast<std::int64_t>(corpus.tokens.size() - learned);
  task.held_out_batches = room / (task.held_out_batch * window);
  if (task.held_out_batches == 0) throw InputError("the text is too short to hold some out");
  const auto shared = std::make_shared<const Corpus>(std::move(corpus));
  task.batch_of = [shared, learned, batch = task.batch](std::uint64_t seed, std::int64_t step) {
    profiler::NamedValues inputs;
    for (std::int64_t i = 0; i < batch; ++i)
      append(inputs, *shared, pick(seed, step, i, learned - window));
    return inputs;
  };
  task.held_out = [shared, learned, batch = task.held_out_batch](std::int64_t index) {
    profiler::NamedValues inputs;
    for (std::int64_t i = 0; i < batch; ++i)
      append(inputs, *shared, learned + static_cast<std::size_t>((index * batch + i) * window));
    return inputs;
  };
  return task;
}

}  // namespace tidemark::training
