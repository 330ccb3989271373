// Reads a trace from JSON: names become ids as they appear, forward references in a second pass.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/name_index.h"
#include "base/quoted.h"
#include "traces/fill_reader.h"
#include "traces/opaque_reader.h"
#include "traces/shape_rules.h"
#include "traces/step_fields.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

using Keys = std::vector<std::string_view>;

/// Where the things of one list stand, by name. Of two with one name the first counts; check()
/// complains about the second.
class NameTable {
 public:
  static constexpr std::uint32_t nothing = NameIndex::nothing;

  explicit NameTable(std::string_view what) : what_(what) {}
  void reserve(std::size_t count) { index_.reserve(count); }
  void add(std::string_view name) { index_.add(name); }
  std::uint32_t find(std::string_view name) const { return index_.find(name); }
  /// "no tensor named 'h3.atn' (did you mean 'h3.attn'?)"
  std::string unknown(std::string_view name) {
    const std::string near = nearest(name);
    return fmt::format("no {} named {}{}", what_, quoted(name),
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
  }

 private:
  // A hostile file has millions of names that are not known among millions that are.
  std::string nearest(std::string_view name) {
    const Keys& names = index_.names();
    if (names.size() > comparisons_left_) return {};
    comparisons_left_ -= names.size();
    const std::size_t reach = std::max<std::size_t>(2, name.size() / 3);
    Keys candidates;
    for (const std::string_view candidate : names)
      if (candidate.size() <= name.size() + reach && name.size() <= candidate.size() + reach)
        candidates.push_back(candidate);
    std::ranges::sort(candidates);  // the answer must not depend on their order
    const std::string_view near = nearest_name(name, candidates);
    return near.empty() ? std::string() : quoted(near);
  }

  std::string_view what_;
  NameIndex index_;
  std::size_t comparisons_left_ = 500'000;
};

template <typename Table>
auto named(JsonView view, const Table& table, std::string_view what) {
  const std::string_view name = view.text();
  for (const auto& row : table)
    if (row.name == name) return row.value;
  view.fail(unknown_name(what, printable(name), names_of(table)));
}

class TraceReader {
 public:
  explicit TraceReader(JsonView root) : root_(root) {}
  /// To be used only if no name is unknown.
  Trace read();
  /// A line for each reference to something that does not exist.
  const std::vector<std::string>& unknown_names() const { return unknown_names_; }

 private:
  struct Reference {  // to a name that may be defined later in the file
    TensorId from;
    JsonView name;
  };

  void read_header();
  void read_step(JsonView view);
  void read_tensor(JsonView view);
  void read_block(JsonView view);
  void read_op(JsonView view);
  void read_row(JsonView view, Op& op);
  std::uint16_t read_operands(JsonView list, std::string_view field);
  std::uint16_t read_attributes(JsonView object);
  LayoutTransform read_layout_transform(JsonView name);
  std::int32_t read_place(JsonView name);
  LineId read_line(JsonView line);
  void resolve_references();

  /// The pointer is made only for a name that is not known.
  template <typename... Args>
  std::uint32_t find(NameTable& names, JsonView name, fmt::format_string<Args...> pointer,
                     Args&&... args) {
    const std::uint32_t found = names.find(name.text());
    if (found == NameTable::nothing)
      unknown_names_.push_back(fmt::format(pointer, std::forward<Args>(args)...) + ": " +
                               names.unknown(name.text()));
    return found;
  }

  JsonView root_;
  std::int64_t version_ = trace_version;
  Trace trace_;
  NameTable tensors_{"tensor"}, ops_{"op"}, blocks_{"block"};
  NameIndex lines_;
  std::vector<Reference> storages_, holds_;
  std::vector<std::string> unknown_names_;
};

Trace TraceReader::read() {
  read_header();
  trace_.model = root_.text_or("model", "");
  trace_.family = root_.text_or("family", "");
  if (const auto step = root_.find("step")) read_step(*step);
  if (const auto update = root_.find("update")) trace_.update = read_update(*update);
  if (const auto calls = root_.find("allocator_calls")) {
    trace_.calls = read_recorded_calls(*calls);
    trace_.calls->of = trace_.step;
  }
  const JsonChildren tensors = root_.at("tensors").items(), ops = root_.at("ops").items();
  trace_.tensors.reserve(tensors.size());
  tensors_.reserve(tensors.size());
  for (const JsonView view : tensors) read_tensor(view);
  if (const auto blocks = root_.find("blocks"))
    for (const JsonView view : blocks->items()) read_block(view);
  trace_.ops.reserve(ops.size());
  ops_.reserve(ops.size());
  for (const JsonView view : ops) read_op(view);
  resolve_references();
  trace_.loss = TensorId{find(tensors_, root_.at("loss"), "/loss")};
  return std::move(trace_);
}

void TraceReader::read_header() {
  const auto format = root_.find("format");
  if (!format || format->text() != trace_format)
    root_.fail(fmt::format("not a trace file; need \"format\": \"{}\"", trace_format));
  const JsonView version = root_.at("version");
  version_ = version.integer();
  if (version_ < 1 || version_ > trace_version)
    version.fail(
        fmt::format("found {}; this program reads versions 1 to {}", version_, trace_version));
  static const Keys keys = {"format", "version", "model",   "family", "step",           "loss",
                            "update", "blocks",  "tensors", "ops",    "allocator_calls"};
  root_.allow_only(keys);
}

void TraceReader::read_step(JsonView view) {
  Keys keys;
  for (const StepField& field : step_fields()) keys.push_back(field.key);
  view.allow_only(keys);
  for (const StepField& field : step_fields())
    if (const auto value = view.find(field.key)) field.read_json(field, trace_.step, *value);
}

void TraceReader::read_tensor(JsonView view) {
  static const Keys keys = {"name",    "shape",      "dtype", "category", "trainable",
                            "storage", "held_until", "fill",  "rng_key"};
  view.allow_only(keys);
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  Tensor& tensor = trace_.tensors.emplace_back();
  tensor.name = trace_.names.add(view.at("name").text());
  tensors_.add(view.at("name").text());
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::size_t rank = 0;
  const JsonView shape = view.at("shape");
  for (const JsonView dim : shape.items()) {
    if (rank == dims.size())
      shape.fail(fmt::format("found {} dimensions; need at most {}", shape.items().size(), rank));
    dims[rank++] = dim.integer(1);
  }
  tensor.shape = Shape(std::span(dims).first(rank));
  tensor.dtype = named(view.at("dtype"), dtypes, "dtype");
  tensor.category = named(view.at("category"), categories, "category");
  tensor.trainable = view.boolean_or("trainable", false);
  tensor.storage = id;
  constexpr std::int64_t largest_key = std::numeric_limits<std::uint32_t>::max();
  tensor.rng_key = static_cast<std::uint32_t>(view.integer_or("rng_key", 0, 0, largest_key));
  if (const auto fill = view.find("fill")) {
    tensor.fill = static_cast<FillId>(trace_.fills.size());
    trace_.fills.push_back(read_fill(*fill));
  }
  if (const auto storage = view.find("storage")) storages_.push_back({id, *storage});
  if (const auto op = view.find("held_until")) holds_.push_back({id, *op});
}

void TraceReader::read_block(JsonView view) {
  static const Keys keys = {"name", "input", "stack", "segment", "is_further"};
  view.allow_only(keys);
  const JsonView name = view.at("name");
  blocks_.add(name.text());
  const TensorId input{find(tensors_, view.at("input"), "/blocks/{}/input", trace_.blocks.size())};
  const auto number = [&](std::string_view key) {
    constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::int32_t>(view.integer_or(key, -1, -1, largest));
  };
  trace_.blocks.push_back({.name = trace_.names.add(name.text()),
                           .input = input,
                           .stack = number("stack"),
                           .segment = number("segment"),
                           .is_further = view.boolean_or("is_further", false)});
}

void TraceReader::read_op(JsonView view) {
  static const Keys keys = {"name",  "kind", "inputs",   "outputs",    "attributes", "line",
                            "block", "part", "residual", "also_keeps", "rng_key",    "row"};
  view.allow_only(keys);
  Op op{.name = trace_.names.add(view.at("name").text())};
  ops_.add(view.at("name").text());
  op.kind = named(view.at("kind"), op_rows, "kind of op");
  op.first_operand = static_cast<std::uint32_t>(trace_.operands.size());
  op.inputs = read_operands(view.at("inputs"), "inputs");
  op.outputs = read_operands(view.at("outputs"), "outputs");
  op.first_attribute = static_cast<std::uint32_t>(trace_.attributes.size());
  if (const auto attributes = view.find("attributes")) op.attributes = read_attributes(*attributes);
  if (const auto line = view.find("line")) op.line = read_line(*line);
  if (const auto block = view.find("block")) op.block = read_place(*block);
  if (const auto part = view.find("part")) op.part = named(*part, part_names, "part");
  op.residual = view.boolean_or("residual", false);
  if (const auto kept = view.find("also_keeps"))
    for (const JsonView label : kept->items())
      op.also_keeps |= Operands{1} << read_operand_label(label);
  op.rng_key = static_cast<std::uint64_t>(view.integer_or("rng_key", 0));
  read_row(view, op);
  trace_.ops.push_back(std::move(op));
}

void TraceReader::read_row(JsonView view, Op& op) {
  if (op.kind == OpKind::Opaque) {
    op.opaque = static_cast<OpaqueId>(trace_.opaque_rows.size());
    trace_.opaque_rows.push_back(read_opaque_row(view.at("row")));
  } else if (const auto row = view.find("row")) {
    row->fail(
        fmt::format("found one on {}; only an opaque op has a row of its own", to_string(op.kind)));
  }
}

std::uint16_t TraceReader::read_operands(JsonView list, std::string_view field) {
  std::uint16_t count = 0;
  for (const JsonView name : list.items()) {
    if (count == max_operands)
      list.fail(fmt::format("found {} operands; need at most {}", list.items().size(), count));
    trace_.operands.push_back(
        TensorId{find(tensors_, name, "/ops/{}/{}/{}", trace_.ops.size(), field, count)});
    ++count;
  }
  return count;
}

std::uint16_t TraceReader::read_attributes(JsonView object) {
  constexpr double largest = std::numeric_limits<double>::max();
  std::uint16_t count = 0;
  for (const JsonView member : object.members()) {
    // Up to version 2 a rotation could name its base, which its tables know.
    if (member.key() == "theta" && version_ < 3) continue;
    const bool has_former_name = version_ < 3 && member.key() == "movement";
    const std::string_view name = has_former_name ? "layout_transform" : member.key();
    const auto* key = std::ranges::find(attribute_keys, name, &Named<AttributeKey>::name);
    if (key == attribute_keys.end())
      object.fail(unknown_name("attribute", printable(member.key()), names_of(attribute_keys)));
    const double value = key->value == AttributeKey::LayoutTransform
                             ? static_cast<double>(read_layout_transform(member))
                             : member.number(-largest, largest);
    trace_.attributes.push_back({key->value, value});
    ++count;
  }
  return count;
}

LayoutTransform TraceReader::read_layout_transform(JsonView name) {
  if (version_ < 3 && name.text() == "corner") return LayoutTransform::PatchMerging;
  return named(name, layout_transforms, "layout transform");
}

LineId TraceReader::read_line(JsonView line) {
  std::uint32_t found = lines_.find(line.text());
  if (found == NameIndex::nothing) {
    if (trace_.lines.size() == index(no_line))
      line.fail(fmt::format("more than {} lines of code in one trace", trace_.lines.size()));
    found = lines_.add(line.text());
    trace_.lines.emplace_back(line.text());
  }
  return static_cast<LineId>(found);
}

/// The block's ops are those that name it, and what stands between them.
std::int32_t TraceReader::read_place(JsonView name) {
  const std::size_t op = trace_.ops.size();
  const std::uint32_t found = find(blocks_, name, "/ops/{}/block", op);
  if (found == NameTable::nothing) return -1;
  Block& block = trace_.blocks[found];
  if (block.begin == block.end) block.begin = static_cast<OpId>(op);
  block.end = static_cast<OpId>(op + 1);
  return static_cast<std::int32_t>(found);
}

void TraceReader::resolve_references() {
  for (const auto& [from, name] : storages_)
    trace_.tensors[index(from)].storage =
        TensorId{find(tensors_, name, "/tensors/{}/storage", index(from))};
  for (const auto& [from, name] : holds_)
    trace_.tensors[index(from)].held_until =
        OpId{find(ops_, name, "/tensors/{}/held_until", index(from))};
}

}  // namespace

Trace read_trace(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  return read_trace(document.root(), file);
}

Trace read_trace(JsonView root, std::string_view file) {
  TraceReader reader(root);
  Trace trace = reader.read();
  if (!reader.unknown_names().empty())
    throw InputError(describe_defects(file, reader.unknown_names()));
  if (const auto defects = check(trace); !defects.empty())
    throw InputError(describe_defects(file, defects));
  return trace;
}

}  // namespace tidemark
