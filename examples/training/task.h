// What is learned: a network, the batches that it sees, and the samples that it never sees.
#pragma once

#include <functional>

#include "examples/training/corpus.h"
#include "examples/training/digits.h"
#include "profiler/merged_affine.h"
#include "traces/models/model_config.h"

namespace tidemark::training {

struct Task {
  std::string title;
  Model model;
  std::int64_t batch = 0;
  double learning_rate = 0;  ///< the highest
  /// The network's inputs, by name, of a step. Whatever is learned, the batches of a seed are the
  /// same under every strategy.
  std::function<profiler::NamedValues(std::uint64_t seed, std::int64_t step)> batch_of;

  std::int64_t held_out_batch = 0, held_out_batches = 0;
  std::function<profiler::NamedValues(std::int64_t index)> held_out;
  /// A classifier is tested one sample at a time. Its accuracy follows from the gradient of its
  /// head's bias, which is softmax(logits) − one-hot(target).
  bool is_classifier = false;
};

/// A ViT of 27 thousand parameters that sees 1,500 digits and is tested on the others. Dropout
/// keeps it from learning them by heart.
Task digits_task(std::vector<Digit> digits);

/// A GPT-2 of 31 thousand parameters that reads the first nine tenths of a text, byte by byte, and
/// is tested on the last.
Task text_task(Corpus corpus);

}  // namespace tidemark::training
