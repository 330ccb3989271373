// What stands on top of a model's blocks, and what it is trained for: the task heads of Hugging
// Face's transformers, in one table.
#pragma once

#include <cstdint>

#include "base/names.h"

namespace tidemark {

enum class Head : std::uint8_t {
  None,
  CausalLanguage,
  MaskedLanguage,
  Pretraining,
  NextSentence,
  SequenceClassification,
  TokenClassification,
  QuestionAnswering,
  ImageClassification,
  DistilledClassification,
};

struct HeadRow {
  Head value;
  std::string_view name;
  std::string_view class_ending;  ///< of the class's name, behind that of the model
  std::string_view help;
};

/// Source: modeling_*.py of transformers 4.47.
inline constexpr std::array head_rows = {
    HeadRow{Head::None, "none", "Model",
            "the bare model; its loss is the mean of all that it puts out"},
    HeadRow{Head::CausalLanguage, "lm", "ForCausalLM", "each token's logits score the next one"},
    HeadRow{Head::MaskedLanguage, "mlm", "ForMaskedLM", "each token's logits score what it was"},
    HeadRow{Head::Pretraining, "pretraining", "ForPreTraining", "mlm and next-sentence at once"},
    HeadRow{Head::NextSentence, "next-sentence", "ForNextSentencePrediction",
            "two classes of the pooled first token"},
    HeadRow{Head::SequenceClassification, "sequence-classification", "ForSequenceClassification",
            "classes of the first token, or of the last one where tokens see no later ones"},
    HeadRow{Head::TokenClassification, "token-classification", "ForTokenClassification",
            "classes of each token"},
    HeadRow{Head::QuestionAnswering, "question-answering", "ForQuestionAnswering",
            "where an answer begins and ends"},
    HeadRow{Head::ImageClassification, "image-classification", "ForImageClassification",
            "classes of an image"},
    HeadRow{Head::DistilledClassification, "distilled-classification",
            "ForImageClassificationWithTeacher",
            "classes by the class token and, after a teacher, by the distillation token"},
};
static_assert(is_in_order(head_rows));

constexpr std::string_view to_string(Head head) {
  return head_rows[static_cast<std::size_t>(head)].name;
}

}  // namespace tidemark
