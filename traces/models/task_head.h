// The losses that the task heads of several families share. A head's parameters are trained where
// only adapters are, and no adapter sits beside them, as PEFT does for its task types.
#pragma once

#include <functional>

#include "traces/trace_builder.h"

namespace tidemark {

/// x [..., in] → [..., out]
TensorId head_linear(TraceBuilder& builder, const std::string& name, TensorId x, std::int64_t out,
                     bool bias = true);

/// Cross-entropy of logits [rows, labels]; of a single label, a regression's squared error.
TensorId classification_loss(TraceBuilder& builder, TensorId logits);
/// The same, with class numbers that are there already.
TensorId classification_loss(TraceBuilder& builder, TensorId logits, TensorId targets);

/// Classes of the last token of x [batch, tokens, width]; every token is scored, then one is taken.
TensorId last_token_loss(TraceBuilder& builder, TensorId x, std::int64_t labels);

struct TokenHead {
  std::int64_t labels = 2;
  double dropout = 0.1;
  bool loss_in_fp32 = false;
  std::string_view name = "classifier";
};

/// Classes of each token of x [batch, tokens, width].
TensorId token_loss(TraceBuilder& builder, TensorId x, const TokenHead& head);

/// The mean of two losses: which token of x [batch, tokens, width] begins the answer, which ends
/// it.
TensorId question_answering_loss(TraceBuilder& builder, TensorId x);

/// What a decoder makes of words up to its last norm, and the table that they were looked up in.
struct HiddenWords {
  TensorId x = no_tensor;  ///< [sequences, tokens, width]
  TensorId table = no_tensor;
  std::vector<TensorId> further = {};  ///< the same for each further token that is predicted
};

/// What stands on a decoder's last norm.
struct DecoderHead {
  Head head = Head::CausalLanguage;
  bool is_tied = false;  ///< to the table of words
  std::int64_t vocabulary = 0;
  bool bias = false;            ///< of the logits
  double logit_cap = 0;         ///< c > 0: logits become c · tanh(logits / c)
  double logit_factor = 1;      ///< of the logits
  bool renames_logits = false;  ///< those in fp32 take the name of what they are made of
  TokenHead token = {};
};

/// `model` builds the decoder; where pairs are compared with a reference it is built twice.
TensorId decoder_loss(TraceBuilder& builder, const std::function<HiddenWords()>& model,
                      const DecoderHead& head);

/// What a model without a head is trained for here: the mean of all its outputs, added up.
TensorId mean_loss(TraceBuilder& builder, std::span<const TensorId> outputs);

}  // namespace tidemark
