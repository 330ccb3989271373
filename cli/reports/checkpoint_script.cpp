// What is the same in every file is checkpoint_script.py; what was planned, the blocks, and where
// libraries have their modules stand in it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/embedded_file.h"
#include "base/json_text.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_planning.h"
#include "cli/text/units_text.h"
#include "traces/aten_calls.h"

namespace tidemark::cli {

std::span<const EmbeddedFile> embedded_report();  // … and checkpoint_script.py

namespace {

// By the prefix of blocks in traces, where modules are: transformers 4.57, timm 1.0, torchvision
// 0.21.
struct Place {
  std::string_view family, path;
};
constexpr std::array places = {Place{"gpt2", "transformer.h.{}"},
                               Place{"gpt2", "h.{}"},
                               Place{"bert", "bert.encoder.layer.{}"},
                               Place{"bert", "roberta.encoder.layer.{}"},
                               Place{"bert", "distilbert.transformer.layer.{}"},
                               Place{"bert", "electra.encoder.layer.{}"},
                               Place{"bert", "encoder.layer.{}"},
                               Place{"vit", "vit.encoder.layer.{}"},
                               Place{"vit", "blocks.{}"},
                               Place{"vit", "encoder.layers.encoder_layer_{}"},
                               Place{"gpt-neox", "gpt_neox.layers.{}"},
                               Place{"opt", "model.decoder.layers.{}"}};
constexpr std::string_view decoders = "model.layers.{}";

// "blocks.3" is number 3 of "blocks"; a name without a number is number 0 of itself.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string last = dot == std::string::npos ? name : name.substr(dot + 1);
  const bool is_number = !last.empty() &&
                         last.find_first_not_of("0123456789") == std::string::npos &&
                         (last == "0" || last.front() != '0');
  if (dot == std::string::npos || !is_number) return {name, "0"};
  return {name.substr(0, dot), last};
}

std::vector<std::string> places_of(const Planning& planning, const std::string& prefix,
                                   bool has_number) {
  std::vector<std::string> paths = {json_text(has_number ? prefix + ".{}" : prefix)};
  const std::string& family = planning.planned.trace->family;
  if (prefix != "blocks") return paths;
  bool is_known = false;
  for (const Place& place : places)
    if (place.family == family) {
      is_known = true;
      if (json_text(place.path) != paths.front()) paths.push_back(json_text(place.path));
    }
  if (!is_known && !family.empty()) paths.push_back(json_text(decoders));
  return paths;
}

class Script {
 public:
  explicit Script(const Planning& planning) : planning_(planning) {}

  std::string plan_text() {
    for (const WrappedBlock& block : planning_.blocks) add(block);
    std::string text = "GROUPS = {\n";
    for (const auto& [group, overloads] : groups_) {
      text += fmt::format("    \"{}\": [\n", group);
      for (const std::string_view overload : overloads)
        text += fmt::format("        \"{}\",\n", overload);
      text += "    ],\n";
    }
    text += "}\n";
    for (std::size_t i = 0; i < forms_.size(); ++i)
      text += fmt::format("FORM_{} = {}\n", i + 1, forms_[i]);
    text += "BLOCKS = {\n";
    for (const auto& [prefix, members] : blocks_) {
      text += fmt::format("    {}: {{\n", json_text(prefix));
      for (const auto& [number, form] : members)
        text += fmt::format("        {}: {},\n", number, form);
      text += "    },\n";
    }
    text += "}\nPLACES = {\n";
    for (const auto& [prefix, members] : blocks_)
      text += fmt::format("    {}: [{}],\n", json_text(prefix),
                          fmt::join(places_of(planning_, prefix, has_number_[prefix]), ", "));
    return text + "}\n";
  }

 private:
  void add(const WrappedBlock& block) {
    const auto [prefix, number] = split_name(block.name);
    has_number_[prefix] = prefix != block.name;
    blocks_[prefix].emplace_back(number, form_of(block));
  }

  std::string form_of(const WrappedBlock& block) {
    if (!block.is_wrapped) return "None";
    const std::string stays = calls_text(block);
    if (stays == "{}") return stays;
    const auto found = std::ranges::find(forms_, stays);
    const auto number = static_cast<std::size_t>(found - forms_.begin()) + 1;
    if (found == forms_.end()) forms_.push_back(stays);
    return fmt::format("FORM_{}", number);
  }

  std::string calls_text(const WrappedBlock& wrapped) {
    const Trace& trace = *planning_.planned.trace;
    const Block& block = *std::ranges::find(trace.blocks, wrapped.name, &Block::name);
    std::map<std::string_view, std::vector<std::string>> by_group;
    for (const SavedCall& call : saved_calls(trace, block, wrapped.saved))
      by_group[call.group].push_back(fmt::format(
          "{}: {}", call.number, call.width == 0 ? "None" : std::to_string(call.width)));
    for (const OpId op : wrapped.saved) {
      const AtenCall call = *named_call(trace, trace[op]);
      groups_[call.group] = call.overloads;
    }
    std::vector<std::string> texts;
    for (const auto& [group, calls] : by_group)
      texts.push_back(fmt::format("\"{}\": {{{}}}", group, fmt::join(calls, ", ")));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  }

  const Planning& planning_;
  std::map<std::string_view, std::span<const std::string_view>> groups_;
  std::vector<std::string> forms_;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> blocks_;
  std::map<std::string, bool> has_number_;
};

std::string head_of(const Planning& planning) {
  const Report& vanilla = planning.comparison.rows.front();
  const Report& row = planning.comparison.rows.back();
  std::string text = fmt::format("# Made by tidemark {} for\n", TIDEMARK_VERSION);
  for (const std::string& line : describe_scenario(planning.comparison))
    text += "#   " + line + "\n";
  text += fmt::format("# Predicted: {} allocated at the peak and {} per step; vanilla {} and {}.\n",
                      to_text(row.allocated_peak), to_text(row.step),
                      to_text(vanilla.allocated_peak), to_text(vanilla.step));
  if (!planning.request.max_slowdown)
    text += fmt::format("# Budget: {} {}.\n", to_text(planning.budget),
                        to_string(planning.request.measure));
  return text;
}

}  // namespace

std::string checkpoint_script(const Planning& planning) {
  constexpr std::string_view mark = "# -- plan --\n";
  const auto files = embedded_report();
  std::string text(std::ranges::find(files, "checkpoint_script.py", &EmbeddedFile::name)->text);
  const std::size_t at = text.find(mark);
  text.replace(at, mark.size(), Script(planning).plan_text());
  return head_of(planning) + text;
}

}  // namespace tidemark::cli
