// The head that a config.json asks for: the class in `architectures`, without its model's name.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

bool knows(const ModelConfig& config, Head head) {
  const std::span<const Head> known = heads_of(config);
  return std::ranges::find(known, head) != known.end();
}

// The name of the language model's class, where it is not that of the table: GPT-2's is older than
// the others, and what an encoder-decoder generates has a condition.
std::string_view own_ending(const ModelConfig& config) {
  if (std::holds_alternative<Gpt2Config>(config)) return "LMHeadModel";
  return writes_another(config) ? "ForConditionalGeneration" : "";
}

std::optional<Head> head_named(std::string_view ending, const ModelConfig& config) {
  if (const std::string_view own = own_ending(config); !own.empty()) {
    if (ending == own) return Head::CausalLanguage;
    if (ending == "ForCausalLM") return {};
  }
  const auto* row = std::ranges::find(head_rows, ending, &HeadRow::class_ending);
  if (row == head_rows.end() || !knows(config, row->value)) return {};
  return row->value;
}

std::string class_of(Head head, std::string_view prefix, const ModelConfig& config) {
  if (const std::string_view own = own_ending(config); head == Head::CausalLanguage && !own.empty())
    return std::string(prefix).append(own);
  return std::string(prefix).append(head_rows[static_cast<std::size_t>(head)].class_ending);
}

// What is known of heads that are not modelled, beside that.
std::string_view reason_for(std::string_view ending) {
  if (ending == "ForMultipleChoice")
    return " (it runs every choice as a sample of its own: plan sequence-classification with batch "
           "x choices)";
  if (ending == "ForMaskedImageModeling") return " (its decoder makes images)";
  if (ending == "LMHeadModel" || ending == "ForCausalLM")
    return " (a decoder, whose mask is causal)";
  return "";
}

std::string unknown_class(std::string_view name, std::string_view prefix,
                          const ModelConfig& config) {
  std::string classes, names;
  for (const Head head : heads_of(config)) {
    classes.append(classes.empty() ? "" : ", ").append(class_of(head, prefix, config));
    names.append(names.empty() ? "" : ", ").append(to_string(head));
  }
  const std::string_view ending = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
  return fmt::format("the head of {} is not modelled{} (known: {}); choose one with --head ({})",
                     quoted(name), reason_for(ending), classes, names);
}

// Losses that need more than one class number per row.
std::string loss_problem(Fields& root, const ModelConfig& config) {
  const auto type = root.find("problem_type");
  const Head head = head_of(config);
  if (!type || (head != Head::SequenceClassification && head != Head::ImageClassification))
    return {};
  const std::int64_t labels = classes(root);
  const bool is_known = (type->text() == "single_label_classification" && labels > 1) ||
                        (type->text() == "regression" && labels == 1);
  if (is_known) return {};
  return fmt::format("{} of {} labels is not modelled; remove it to plan {}", quoted(type->text()),
                     labels, labels == 1 ? "a regression" : "with one label per sample");
}

std::string at(const JsonView& view, std::string_view problem) {
  try {
    view.fail(problem);
  } catch (const InputError& error) {
    return error.what();
  }
}

void set_head(ModelConfig& config, Head head) {
  std::visit([&](auto& of) { of.head = head; }, config);
}

// A decoder's classifier looks for the last token before the padding.
void note_padding(Fields& root, Model& model) {
  const bool is_decoder = std::holds_alternative<DecoderConfig>(model.config) ||
                          std::holds_alternative<Gpt2Config>(model.config);
  const bool needs_padding = is_decoder && head_of(model.config) == Head::SequenceClassification;
  if (!root.find("pad_token_id") && needs_padding)
    model.notes.emplace_back(
        "no pad_token_id: transformers refuses to classify more than one sequence at a time");
}

}  // namespace

void read_head(Fields& root, std::string_view prefix, Model& model) {
  const auto list = root.find("architectures");
  std::optional<JsonView> name;
  if (list && !list->items().empty()) name = *list->items().begin();
  if (name) {
    const std::string_view text = name->text();
    const auto head = text.starts_with(prefix)
                          ? head_named(text.substr(prefix.size()), model.config)
                          : std::nullopt;
    if (head) set_head(model.config, *head);
    if (!head) model.head_problem = at(*name, unknown_class(text, prefix, model.config));
  }
  if (const std::string problem = loss_problem(root, model.config);
      !problem.empty() && model.head_problem.empty())
    model.head_problem = at(*root.find("problem_type"), problem);
  note_padding(root, model);
}

void read_precision(Fields& root, Model& model) {
  const auto older = root.find("torch_dtype"), newer = root.find("dtype");
  const auto value = newer ? newer : older;
  if (!value) {
    // Mxfp4HfQuantizer.update_dtype()
    if (has_mxfp4_weights(root)) model.precision = Precision::Bf16;
    return;
  }
  constexpr std::array known = {std::string_view("float32"), std::string_view("bfloat16"),
                                std::string_view("float16"), std::string_view("auto")};
  std::string_view name = value->text();
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (std::ranges::find(known, name) == known.end())
    value->fail(unknown_name("dtype", printable(name), {known.begin(), known.end()}));
  if (name == "bfloat16") model.precision = Precision::Bf16;
  if (name == "float16")
    model.precision_note =
        "weights in float16 are not trained as they are: planned in the framework's default "
        "(--precision bf16 has the bytes of float16, amp-fp16 keeps fp32 beside it)";
}

}  // namespace tidemark::config
