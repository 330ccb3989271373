// Writes a trace as text, a line per tensor, block and op; defaults are left out.
#include "traces/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quoted.h"
#include "traces/formula.h"
#include "traces/shape_rules.h"
#include "traces/step_fields.h"

namespace tidemark {
namespace {

/// Appends an object in one line: {"name": "x", "shape": [2, 3]}.
class LineWriter {
 public:
  explicit LineWriter(std::string& out) : out_(out) { out_ += '{'; }
  void close() { out_ += '}'; }

  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json_text(out_, value);
  }
  template <typename Number>
  void number(std::string_view key, Number value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), "{}", value);
  }
  void boolean(std::string_view key, bool value) {
    begin(key);
    out_ += value ? "true" : "false";
  }
  void value(std::string_view key, const std::string& value) { text(key, value); }
  void value(std::string_view key, bool value) { boolean(key, value); }
  void value(std::string_view key, double value) { number(key, value); }
  void value(std::string_view key, std::int64_t value) { number(key, value); }
  template <typename Items, typename Append>
  void list(std::string_view key, const Items& items, Append append) {
    begin(key);
    out_ += '[';
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) out_ += ", ";
      append(item);
    }
    out_ += ']';
  }
  LineWriter object(std::string_view key) {
    begin(key);
    return LineWriter(out_);
  }

 private:
  void begin(std::string_view key) {
    if (!std::exchange(is_first_, false)) out_ += ", ";
    out_.append(1, '"').append(key).append("\": ");
  }

  std::string& out_;
  bool is_first_ = true;
};

template <typename Table, typename Enum>
std::string_view name_in(const Table& table, Enum value) {
  return table[static_cast<std::size_t>(value)].name;
}

/// The fields of a fill: those that its kind has.
struct FillWriter {
  LineWriter& line;

  template <typename Plain>
  void operator()(const Plain&) const {}
  void operator()(const fill::Positions& fill) const { line.number("first", fill.first); }
  void operator()(const fill::CausalMask& fill) const { line.number("window", fill.window); }
  void operator()(const fill::Constant& fill) const { line.number("value", fill.value); }
  void operator()(const fill::SeamMask& fill) const { line.number("shift", fill.shift); }
  void operator()(const fill::RelativeBuckets& fill) const {
    line.number("buckets", fill.buckets);
    line.number("farthest", fill.farthest);
    if (fill.looks_ahead) line.boolean("looks_ahead", true);
  }
  void operator()(const fill::RotaryTable& fill) const {
    const Rotary& rotary = fill.rotary;
    line.text("wave", name_in(fill::waves, fill.wave));
    line.number("theta", rotary.theta);
    if (fill.columns != fill::WaveColumns::Halves)
      line.text("columns", name_in(fill::wave_columns, fill.columns));
    if (rotary.scaling == RotaryScaling::None) return;
    line.text("scaling", name_in(rotary_scalings, rotary.scaling));
    line.number("factor", rotary.factor);
    line.number("low", rotary.low);
    line.number("high", rotary.high);
    line.number("attention_factor", rotary.attention_factor);
    line.number("original_positions", rotary.original_positions);
  }
};

void write_fill(LineWriter& line, const InputFill& fill) {
  line.text("kind", fill_names[fill.index()]);
  std::visit(FillWriter{line}, fill);
}

/// The labels of operands, in order.
std::vector<std::string> labels_of(Operands operands) {
  std::vector<std::string> labels;
  for (int bit = 0; bit < 32; ++bit)
    if ((operands >> bit & 1) != 0) labels.push_back(operand_label(bit));
  return labels;
}

void write_figures(LineWriter& line, const OpaquePass& pass) {
  const OpaquePass defaults;
  if (pass.workspace != defaults.workspace) line.number("workspace_bytes", pass.workspace.count);
  if (pass.scratch != defaults.scratch) line.number("scratch_bytes", pass.scratch.count);
  if (pass.flops) line.number("flops", *pass.flops);
  if (pass.moved) line.number("moved_bytes", pass.moved->count);
  if (pass.streamed != defaults.streamed) line.number("streamed_bytes", pass.streamed.count);
  if (pass.kernels != defaults.kernels) line.number("kernels", pass.kernels);
}

void write_pass(LineWriter& row, std::string_view key, const OpaquePass& pass) {
  const OpaquePass defaults;
  if (pass == defaults) return;
  LineWriter line = row.object(key);
  write_figures(line, pass);
  line.close();
}

class TraceWriter {
 public:
  explicit TraceWriter(const Trace& trace) : trace_(trace) {}
  std::string write();

 private:
  void write_step();
  void write_update(const RecordedUpdate& update);
  void write_calls(const RecordedCalls& calls);
  void write_block(const Block& block);
  void write_tensor(const Tensor& tensor);
  void write_op(const Op& op);
  void write_operands(LineWriter& line, std::string_view key, Operands operands);
  void write_row(LineWriter& line, const OpaqueRow& row);
  template <typename Items, typename Write>
  void write_list(std::string_view key, const Items& items, Write write);
  void append_number(std::int64_t value) { fmt::format_to(std::back_inserter(out_), "{}", value); }

  const Trace& trace_;
  std::string out_;
};

std::string TraceWriter::write() {
  out_ = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"model\": ", trace_format,
                     trace_version);
  append_json_text(out_, trace_.model);
  out_ += ",\n  \"family\": ";
  append_json_text(out_, trace_.family);
  out_ += ",\n  \"step\": ";
  write_step();
  out_ += ",\n  \"loss\": ";
  append_json_text(out_, trace_[trace_.loss].name);
  if (trace_.update) write_update(*trace_.update);
  if (trace_.calls && trace_.calls->of == trace_.step) write_calls(*trace_.calls);
  write_list("blocks", trace_.blocks, [this](const Block& block) { write_block(block); });
  write_list("tensors", trace_.tensors, [this](const Tensor& tensor) { write_tensor(tensor); });
  write_list("ops", trace_.ops, [this](const Op& op) { write_op(op); });
  return std::move(out_ += "\n}\n");
}

template <typename Items, typename Write>
void TraceWriter::write_list(std::string_view key, const Items& items, Write write) {
  out_.append(",\n  \"").append(key).append("\": [");
  for (const auto& item : items) {
    out_ += &item == items.data() ? "\n    " : ",\n    ";
    write(item);
  }
  out_ += items.empty() ? "]" : "\n  ]";
}

void TraceWriter::write_step() {
  LineWriter line(out_);
  for (const StepField& field : step_fields())
    if (field.is_always_written || is_stated(field, trace_.step))
      std::visit([&](const auto& value) { line.value(field.key, value); },
                 *field.value(trace_.step));
  line.close();
}

void TraceWriter::write_update(const RecordedUpdate& update) {
  out_ += ",\n  \"update\": ";
  LineWriter line(out_);
  line.text("optimizer", update.optimizer);
  write_figures(line, update.pass);
  line.close();
}

void TraceWriter::write_calls(const RecordedCalls& calls) {
  out_ += ",\n  \"allocator_calls\": ";
  LineWriter line(out_);
  const auto list = [&](std::string_view key, const std::vector<std::int64_t>& items) {
    line.list(key, items, [this](std::int64_t call) { append_number(call); });
  };
  list("setup", calls.setup);
  list("first_step", calls.first_step);
  list("step", calls.step);
  line.number("work", calls.work);
  line.close();
}

void TraceWriter::write_block(const Block& block) {
  LineWriter line(out_);
  line.text("name", block.name);
  line.text("input", trace_[block.input].name);
  if (block.stack >= 0) line.number("stack", block.stack);
  if (block.segment >= 0) line.number("segment", block.segment);
  if (block.is_further) line.boolean("is_further", true);
  line.close();
}

void TraceWriter::write_tensor(const Tensor& tensor) {
  LineWriter line(out_);
  line.text("name", tensor.name);
  line.list("shape", tensor.shape.dims(), [this](std::int64_t dim) { append_number(dim); });
  line.text("dtype", to_string(tensor.dtype));
  line.text("category", to_string(tensor.category));
  if (tensor.trainable) line.boolean("trainable", true);
  if (&trace_[tensor.storage] != &tensor) line.text("storage", trace_[tensor.storage].name);
  if (tensor.held_until != no_op) line.text("held_until", trace_[tensor.held_until].name);
  if (const InputFill* fill = fill_of(trace_, tensor)) {
    LineWriter object = line.object("fill");
    write_fill(object, *fill);
    object.close();
  }
  if (tensor.rng_key != 0) line.number("rng_key", tensor.rng_key);
  line.close();
}

void TraceWriter::write_op(const Op& op) {
  const auto name = [this](TensorId id) { append_json_text(out_, trace_[id].name); };
  LineWriter line(out_);
  line.text("name", op.name);
  line.text("kind", to_string(op.kind));
  line.list("inputs", trace_.inputs(op), name);
  line.list("outputs", trace_.outputs(op), name);
  if (op.attributes > 0) {
    LineWriter attributes = line.object("attributes");
    for (const Attribute& attribute : trace_.attributes_of(op)) {
      const std::string_view key = name_in(attribute_keys, attribute.key);
      if (attribute.key == AttributeKey::LayoutTransform)
        attributes.text(key, name_in(layout_transforms, attribute.value));
      else
        attributes.number(key, attribute.value + 0.0);
    }
    attributes.close();
  }
  if (op.line != no_line) line.text("line", line_of(trace_, op));
  if (op.block >= 0) line.text("block", trace_.blocks[static_cast<std::size_t>(op.block)].name);
  if (op.part != Part::None) line.text("part", name_in(part_names, op.part));
  if (op.residual) line.boolean("residual", true);
  write_operands(line, "also_keeps", op.also_keeps);
  if (op.rng_key != 0) line.number("rng_key", op.rng_key);
  if (const OpaqueRow* row = opaque_row(trace_, op)) {
    LineWriter object = line.object("row");
    write_row(object, *row);
    object.close();
  }
  line.close();
}

void TraceWriter::write_operands(LineWriter& line, std::string_view key, Operands operands) {
  if (operands != 0)
    line.list(key, labels_of(operands),
              [this](const auto& label) { append_json_text(out_, label); });
}

void TraceWriter::write_row(LineWriter& line, const OpaqueRow& row) {
  line.text("operation", row.operation);
  write_operands(line, "gradients", row.gradients);
  write_operands(line, "handed_on", row.handed_on);
  write_operands(line, "written_over", row.written_over);
  write_operands(line, "saved", row.saved);
  write_operands(line, "quantized", row.quantized);
  if (row.runs_once) line.boolean("runs_once", true);
  if (row.math) line.text("math", to_string(*row.math));
  if (row.computes != Formula::None) line.text("computes", to_string(row.computes));
  write_pass(line, "forward", row.forward);
  write_pass(line, "backward", row.backward);
}

}  // namespace

std::string write_trace(const Trace& trace) {
  if (const auto defects = check(trace); !defects.empty())
    throw InputError(
        describe_defects(trace.model.empty() ? "trace" : printable(trace.model, 200), defects));
  return TraceWriter(trace).write();
}

Trace load_trace(const std::string& path) {
  return read_trace(read_file(path, FileKind::Trace), path);
}

std::string describe_defects(std::string_view name, const std::vector<std::string>& defects) {
  constexpr std::size_t most = 50;
  if (defects.size() == 1) return fmt::format("{}: {}", name, defects[0]);
  std::string text = fmt::format("{}: {} defects", name, defects.size());
  for (std::size_t i = 0; i < std::min(defects.size(), most); ++i) text += "\n  " + defects[i];
  if (defects.size() > most) text += fmt::format("\n  … and {} more", defects.size() - most);
  return text;
}

}  // namespace tidemark
