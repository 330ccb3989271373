// Task heads: the parameters that the real classes have, and what their losses keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/support/small_models.h"
#include "traces/models/config_reader.h"
#include "traces/presets.h"

namespace tidemark::heads_test {
namespace {

using testing::HasSubstr;

std::int64_t parameters(const Trace& trace) {
  std::int64_t count = 0;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.category == Category::Parameter) count += numel(tensor.shape);
  return count;
}

Trace small_step(const Model& model, std::optional<Head> head = {}) {
  StepOptions step{.batch = 2, .head = head};
  const bool sees_images = heads_of(model.config).front() == Head::ImageClassification;
  if (!sees_images) step.sequence = 16;
  return build_trace(model, step);
}

Model model_of(std::string_view json) { return read_model_config(json, "config.json"); }

const Tensor* tensor_named(const Trace& trace, std::string_view name) {
  for (const Tensor& tensor : trace.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

struct RealModel {
  const char* name;
  const char* json;
  std::int64_t parameters;  ///< sum(p.numel() for p in model.parameters())
};

class RealParameters : public testing::TestWithParam<RealModel> {};

TEST_P(RealParameters, AreThoseOfTheClassThatArchitecturesNames) {
  EXPECT_EQ(parameters(small_step(model_of(GetParam().json))), GetParam().parameters);
}

// Known from the hub's model cards and model.num_parameters(); each follows from the body's:
// BertModel without pooler 108,891,648, the pooler 768² + 768 = 590,592, a classifier of n labels
// 769 n, GPT2Model 124,439,808, LlamaModel 6,607,343,616, RobertaModel without pooler 124,055,040.
INSTANTIATE_TEST_SUITE_P(
    HuggingFace, RealParameters,
    testing::Values(
        RealModel{"BertModel", R"({"model_type": "bert", "architectures": ["BertModel"]})",
                  109482240},
        RealModel{"BertForMaskedLM",
                  R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})", 109514298},
        RealModel{"BertForPreTraining",
                  R"({"model_type": "bert", "architectures": ["BertForPreTraining"]})", 110106428},
        RealModel{"BertForNextSentencePrediction",
                  R"({"model_type": "bert",
                      "architectures": ["BertForNextSentencePrediction"]})",
                  109483778},
        RealModel{"BertForSequenceClassification",
                  R"({"model_type": "bert",
                      "architectures": ["BertForSequenceClassification"]})",
                  109483778},
        RealModel{"BertForTokenClassification",
                  R"({"model_type": "bert", "vocab_size": 28996, "num_labels": 9,
                      "architectures": ["BertForTokenClassification"]})",
                  107726601},
        RealModel{"BertForQuestionAnswering",
                  R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"]})",
                  108893186},
        RealModel{"RobertaModel",
                  R"({"model_type": "roberta", "max_position_embeddings": 514,
                      "type_vocab_size": 1, "architectures": ["RobertaModel"]})",
                  124645632},
        RealModel{"RobertaForSequenceClassification",
                  R"({"model_type": "roberta", "max_position_embeddings": 514,
                      "type_vocab_size": 1,
                      "architectures": ["RobertaForSequenceClassification"]})",
                  124647170},
        RealModel{"RobertaForQuestionAnswering",
                  R"({"model_type": "roberta", "max_position_embeddings": 514,
                      "type_vocab_size": 1, "architectures": ["RobertaForQuestionAnswering"]})",
                  124056578},
        RealModel{"GPT2LMHeadModel",
                  R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]})", 124439808},
        RealModel{"GPT2Model", R"({"model_type": "gpt2", "architectures": ["GPT2Model"]})",
                  124439808},
        RealModel{"GPT2ForSequenceClassification",
                  R"({"model_type": "gpt2", "num_labels": 3, "pad_token_id": 0,
                      "architectures": ["GPT2ForSequenceClassification"]})",
                  124439808 + 3 * 768},
        RealModel{"GPT2ForTokenClassification",
                  R"({"model_type": "gpt2", "architectures": ["GPT2ForTokenClassification"]})",
                  124439808 + 2 * 769},
        RealModel{"LlamaForSequenceClassification",
                  R"({"model_type": "llama", "num_labels": 1, "pad_token_id": 0,
                      "architectures": ["LlamaForSequenceClassification"]})",
                  6607343616 + 4096},
        RealModel{"LlamaForQuestionAnswering",
                  R"({"model_type": "llama", "architectures": ["LlamaForQuestionAnswering"]})",
                  6607343616 + 2 * 4097},
        RealModel{"MistralModel", R"({"model_type": "mistral", "architectures": ["MistralModel"]})",
                  7110660096},
        RealModel{"ViTModel", R"({"model_type": "vit", "architectures": ["ViTModel"]})", 86389248},
        RealModel{"ViTForImageClassification",
                  R"({"model_type": "vit", "num_labels": 1000,
                      "architectures": ["ViTForImageClassification"]})",
                  86567656},
        RealModel{"DeiTForImageClassificationWithTeacher",
                  R"({"model_type": "deit", "num_labels": 1000,
                      "architectures": ["DeiTForImageClassificationWithTeacher"]})",
                  87338192},
        RealModel{"SwinModel", R"({"model_type": "swin", "architectures": ["SwinModel"]})",
                  27519354}),
    [](const auto& test) { return std::string(test.param.name); });

// [2·16, 61] logits of words, and their log-softmax, were the peak of a step that has neither.
TEST(Heads, OnlyHeadsThatScoreWordsHaveTensorsOfTheVocabulary) {
  for (const Model& model : {small_bert(), small_roberta(), small_gpt2(), small_llama()})
    for (const Head head : heads_of(model.config)) {
      const bool scores_words =
          head == Head::MaskedLanguage || head == Head::Pretraining || head == Head::CausalLanguage;
      bool has_scores = false;
      const Trace trace = small_step(model, head);
      for (const Tensor& tensor : trace.tensors)
        if (tensor.category == Category::Activation && tensor.shape.rank() > 0)
          has_scores = has_scores || tensor.shape.back() == 61;
      EXPECT_EQ(has_scores, scores_words) << model.name << " " << to_string(head);
    }
}

TEST(Heads, EveryOneMakesASoundStep) {
  std::vector<Model> models = small_models();
  models.push_back(small_model("small-deit", VitConfig{.image = 16,
                                                       .patch = 4,
                                                       .width = 32,
                                                       .depth = 2,
                                                       .heads = 2,
                                                       .mlp = 64,
                                                       .classes = 10,
                                                       .prefix_tokens = 2}));
  for (const Model& model : models)
    for (const Head head : heads_of(model.config))
      for (const Precision precision : {Precision::Fp32, Precision::AmpFp16, Precision::Bf16}) {
        StepOptions step{.batch = 2, .head = head, .precision = precision};
        EXPECT_THAT(check(build_trace(model, step)), testing::IsEmpty())
            << model.name << " " << to_string(head);
      }
}

// The class scores all tokens and then takes the last one's scores.
TEST(Heads, ADecoderClassifiesByItsLastTokenButScoresThemAll) {
  const Trace trace = small_step(small_gpt2(), Head::SequenceClassification);
  ASSERT_TRUE(tensor_named(trace, "score"));
  EXPECT_EQ(tensor_named(trace, "score")->shape, (Shape{2, 16, 2}));
  EXPECT_EQ(tensor_named(trace, "score.last")->shape, (Shape{2, 2}));
  EXPECT_FALSE(tensor_named(trace, "score.bias"));
}

TEST(Heads, ClassifierDropoutReplacesTheUsualOne) {
  const auto has_dropout = [](std::string_view json) {
    return tensor_named(small_step(model_of(json)), "classifier.drop") != nullptr;
  };
  EXPECT_TRUE(has_dropout(R"({"model_type": "bert", "num_hidden_layers": 1,
                              "architectures": ["BertForTokenClassification"]})"));
  EXPECT_FALSE(has_dropout(R"({"model_type": "bert", "num_hidden_layers": 1,
                               "classifier_dropout": 0.0,
                               "architectures": ["BertForTokenClassification"]})"));
}

TEST(Heads, OneLabelIsARegression) {
  Model model = small_bert();
  std::get<BertConfig>(model.config).labels = 1;
  const Trace trace = small_step(model, Head::SequenceClassification);
  EXPECT_TRUE(tensor_named(trace, "loss.square"));
  EXPECT_FALSE(tensor_named(trace, "loss.log_softmax"));
}

TEST(Heads, ThatAModelDoesNotHaveAreRefusedWithThoseThatItHas) {
  try {
    small_step(small_gpt2(), Head::MaskedLanguage);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "small-gpt2 has no head mlm (known for it: lm, sequence-classification, "
                 "token-classification, question-answering, none)");
  }
}

struct Unknown {
  const char* name;
  const char* json;
  const char* message;
};

class UnknownHead : public testing::TestWithParam<Unknown> {};

// Read all the same, so that --head can say what to plan.
TEST_P(UnknownHead, IsRefusedUnlessAnotherIsChosen) {
  const Model model = model_of(GetParam().json);
  try {
    small_step(model);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
  EXPECT_NO_THROW(small_step(model, Head::None));
}

INSTANTIATE_TEST_SUITE_P(
    Configs, UnknownHead,
    testing::Values(
        Unknown{"MultipleChoice",
                R"({"model_type": "bert", "architectures": ["BertForMultipleChoice"]})",
                "config.json: /architectures/0: the head of 'BertForMultipleChoice' is not "
                "modelled (it runs every choice as a sample of its own"},
        Unknown{"OfAnotherModel", R"({"model_type": "gpt2", "architectures": ["BertForMaskedLM"]})",
                "(known: GPT2LMHeadModel, GPT2ForSequenceClassification, "},
        Unknown{"RobertaHasNoSentencePairs",
                R"({"model_type": "roberta", "architectures": ["RobertaForPreTraining"]})",
                "choose one with --head (mlm, sequence-classification, "},
        Unknown{"SeveralLabelsAtOnce",
                R"({"model_type": "bert", "problem_type": "multi_label_classification",
                    "architectures": ["BertForSequenceClassification"]})",
                "config.json: /problem_type: 'multi_label_classification' of 2 labels is not "
                "modelled; remove it"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ConfigNotes, AMisspeltKeyIsNamedWithTheOneThatWasMeant) {
  EXPECT_THAT(model_of(R"({"model_type": "bert", "num_hiden_layers": 3, "favourite": 1})").notes,
              testing::ElementsAre("keys that were not read: 'num_hiden_layers' (did you mean "
                                   "'num_hidden_layers'?), 'favourite'"));
}

TEST(ConfigNotes, KeysWithoutEffectAreNotMentioned) {
  EXPECT_THAT(model_of(R"({"model_type": "bert", "transformers_version": "4.47.1",
                           "initializer_range": 0.02, "pad_token_id": 0})")
                  .notes,
              testing::IsEmpty());
}

TEST(ConfigNotes, CheckpointingIsARequestForAStrategy) {
  EXPECT_THAT(model_of(R"({"model_type": "gpt2", "gradient_checkpointing": true})").notes,
              testing::ElementsAre(HasSubstr("the strategy 'checkpoint'")));
}

TEST(ConfigNotes, WithoutPaddingADecoderClassifiesOneSequence) {
  EXPECT_THAT(model_of(R"({"model_type": "gpt2",
                           "architectures": ["GPT2ForSequenceClassification"]})")
                  .notes,
              testing::ElementsAre(HasSubstr("no pad_token_id")));
}

TEST(ConfigPrecision, IsThatOfTheWeightsUnlessTheOptionsSayOther) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    const std::string json = std::string(R"({"model_type": "bert", "num_hidden_layers": 1, ")") +
                             key + R"(": "bfloat16"})";
    const Model model = model_of(json);
    const Trace usual = small_step(model);
    EXPECT_EQ(usual.step.precision, Precision::Bf16);
    EXPECT_EQ(tensor_named(usual, "embed.weight")->dtype, DType::BFloat16);
    const Trace chosen = build_trace(model, {.sequence = 16, .precision = Precision::Fp32});
    EXPECT_EQ(tensor_named(chosen, "embed.weight")->dtype, DType::Float32);
  }
}

// Whoever asks for a precision has answered what there is to note.
TEST(ConfigPrecision, Float16LeavesTheFrameworksDefaultAndANote) {
  const Model model = model_of(R"({"model_type": "bert", "torch_dtype": "float16"})");
  EXPECT_EQ(model.precision, std::nullopt);
  EXPECT_THAT(model.notes, testing::IsEmpty());
  EXPECT_THAT(model.precision_note, HasSubstr("weights in float16 are not trained as they are"));
}

TEST(ConfigNotes, SayNothingOfKeysWithoutEffect) {
  EXPECT_THAT(model_of(R"({"model_type": "t5", "n_positions": 512})").notes, testing::IsEmpty());
  EXPECT_THAT(model_of(R"({"model_type": "qwen3_moe", "router_aux_loss_coef": 0.001})").notes,
              testing::IsEmpty());
}

TEST(ConfigPrecision, Fp32WeightsLeaveTheFrameworksDefault) {
  const Model model = model_of(R"({"model_type": "bert", "torch_dtype": "float32"})");
  EXPECT_EQ(model.precision, std::nullopt);
  EXPECT_THAT(model.notes, testing::IsEmpty());
}

TEST(ConfigRotary, ReadsBaseAndScaling) {
  const auto rotary = [](std::string_view json) {
    return std::get<DecoderConfig>(model_of(json).config).rotary;
  };
  EXPECT_EQ(rotary(R"({"model_type": "llama", "rope_theta": 500000.0})").theta, 500000);
  const Rotary stretched{.scaling = RotaryScaling::Llama3,
                         .theta = 500000,
                         .factor = 8,
                         .low = 1,
                         .high = 4,
                         .original_positions = 8192};
  EXPECT_EQ(rotary(R"({"model_type": "llama", "rope_theta": 500000.0, "rope_scaling": {
                       "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})"),
            stretched);
  EXPECT_EQ(rotary(R"({"model_type": "llama", "rope_parameters": {"rope_theta": 500000.0,
                       "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})"),
            stretched);
}

}  // namespace
}  // namespace tidemark::heads_test
