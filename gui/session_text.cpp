// Writes a line per choice, so that people can read and compare sessions; reads nothing that it
// would not write.
#include "gui/session_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_reader.h"
#include "base/json_text.h"

namespace tidemark::gui {
namespace {

// Far more than any step lasts, in ns, or needs, in bytes.
constexpr double farthest = 1e18;

// Lines of an object: "  \"key\": value", with commas between them.
class Lines {
 public:
  explicit Lines(int indent) : indent_(static_cast<std::size_t>(indent), ' ') {}

  void add(std::string_view key, const std::string& value) {
    text_ += fmt::format("{}{}\"{}\": {}", text_.empty() ? "" : ",\n", indent_, key, value);
  }
  void add_text(std::string_view key, std::string_view value) {
    if (!value.empty()) add(key, json_text(value));
  }
  void add_flag(std::string_view key, bool value) { add(key, value ? "true" : "false"); }
  void add_range(std::string_view key, const std::optional<Range>& range) {
    if (range) add(key, fmt::format("[{}, {}]", range->begin, range->end));
  }
  template <typename Table, typename Enum>
  void add_name(std::string_view key, const Table& table, Enum value) {
    add_text(key, table[static_cast<std::size_t>(value)].name);
  }
  template <typename Texts>
  void add_texts(std::string_view key, const Texts& texts) {
    std::string list;
    for (const auto& text : texts) list += (list.empty() ? "" : ", ") + json_text(text);
    if (!list.empty()) add(key, "[" + list + "]");
  }
  std::string object() const {
    const std::string outer = indent_.substr(std::min<std::size_t>(2, indent_.size()));
    return text_.empty() ? "{}" : "{\n" + text_ + "\n" + outer + "}";
  }

 private:
  std::string indent_;
  std::string text_;
};

std::string plan_object(const PlanChoice& plan) {
  return fmt::format("{{\"budget_bytes\": {}, \"allow\": {}}}", plan.budget.count,
                     json_text(to_string(plan.allowed)));
}

std::string selection_object(const NamedSelection& selection) {
  Lines lines(6);
  lines.add_text("op", selection.op);
  lines.add_text("block", selection.block);
  lines.add_text("category", selection.category);
  if (selection.run) lines.add("run", fmt::format("{}", *selection.run));
  if (selection.buffer) lines.add("buffer", fmt::format("{}", *selection.buffer));
  lines.add_text("name", selection.name);
  return lines.object();
}

std::string kept_list(const std::vector<KeptInputs>& kept) {
  std::string list;
  for (const KeptInputs& one : kept)
    list += fmt::format("{}    {{\"name\": {}, \"command\": {}}}", list.empty() ? "" : ",\n",
                        json_text(one.name), json_text(one.command));
  return "[\n" + list + "\n  ]";
}

std::string notes_list(const NoteList& notes) {
  std::string list;
  for (const Note& note : notes) {
    list += fmt::format("{}    {{\"at_ns\": {}, \"of_ns\": {}, \"text\": {}",
                        list.empty() ? "" : ",\n", note.moment, note.step, json_text(note.text));
    if (!note.file.empty()) list += ", \"file\": " + json_text(note.file);
    list += "}";
  }
  return "[\n" + list + "\n  ]";
}

std::string view_object(const Session& session) {
  const ViewState& view = session.view;
  Lines lines(4);
  lines.add_text("shown", session.shown);
  lines.add_text("against", session.against);
  lines.add_flag("aligns_phases", view.aligns_phases);
  if (!session.is_whole) lines.add_range("visible_ns", view.visible);
  lines.add_range("visible_bytes", view.bytes);
  if (!session.is_at_peak) lines.add("cursor_ns", fmt::format("{}", view.cursor_time));
  lines.add_range("range_ns", view.range);
  if (session.selection != NamedSelection{})
    lines.add("selection", selection_object(session.selection));
  lines.add_name("color_by", color_names, view.color_by);
  lines.add_name("curve", curve_names, view.curve.by);
  std::vector<std::string_view> hidden;
  for (std::size_t c = 0; c < category_count; ++c)
    if (view.curve.hidden[c]) hidden.push_back(to_string(static_cast<Category>(c)));
  lines.add_texts("hidden", hidden);
  lines.add_flag("hides_persistent", view.curve.hides_persistent);
  lines.add_name("theme", theme_choices, view.theme);
  lines.add_name("tab", tab_names, view.tab);
  lines.add_name("measure", measures, view.measure);
  lines.add_name("lever_order", lever_orders, view.lever_order);
  lines.add_texts("levers", view.marked);
  lines.add_flag("groups_blocks", view.groups_blocks);
  lines.add_texts("open_groups", view.open_groups);
  lines.add_text("live_filter", view.live_filter);
  lines.add("lower_share", fmt::format("{}", view.lower_share));
  lines.add_flag("shows_what_if", view.shows_what_if);
  return lines.object();
}

template <typename Table, typename Enum>
void read_choice(const JsonView& object, std::string_view key, const Table& table, Enum& value) {
  const auto found = object.find(key);
  if (!found) return;
  for (const auto& row : table)
    if (row.name == found->text()) {
      value = row.value;
      return;
    }
  found->fail(unknown_name(key, found->text(), names_of(table)));
}

std::string text_of(const JsonView& object, std::string_view key) {
  return std::string(object.text_or(key, ""));
}

std::vector<std::string> texts_of(const JsonView& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const auto list = object.find(key))
    for (const JsonView item : list->items()) texts.emplace_back(item.text());
  return texts;
}

std::optional<Range> range_of(const JsonView& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found) return {};
  std::vector<double> ends;
  for (const JsonView item : found->items()) ends.push_back(item.number(-farthest, farthest));
  if (ends.size() != 2 || !(ends[0] < ends[1]))
    found->fail("need a begin and an end after it, as in [0, 1000]");
  return Range{ends[0], ends[1]};
}

NamedSelection read_selection(const JsonView& object) {
  object.allow_only({"op", "block", "category", "run", "buffer", "name"});
  NamedSelection selection{.op = text_of(object, "op"),
                           .block = text_of(object, "block"),
                           .category = text_of(object, "category"),
                           .name = text_of(object, "name")};
  constexpr std::int64_t most = 0xffffffff;  // ids have 32 bits
  if (const auto run = object.find("run"))
    selection.run = static_cast<std::size_t>(run->integer(0, most));
  if (const auto buffer = object.find("buffer"))
    selection.buffer = static_cast<std::size_t>(buffer->integer(0, most));
  return selection;
}

void read_curve(const JsonView& object, CurveChoice& curve) {
  read_choice(object, "curve", curve_names, curve.by);
  curve.hides_persistent = object.boolean_or("hides_persistent", false);
  const auto hidden = object.find("hidden");
  if (!hidden) return;
  for (const JsonView name : hidden->items()) {
    const auto row = std::ranges::find(categories, name.text(), &Named<Category>::name);
    if (row == categories.end())
      name.fail(unknown_name("category", name.text(), names_of(categories)));
    curve.hidden.set(static_cast<std::size_t>(row->value));
  }
}

void read_view(const JsonView& object, Session& session) {
  object.allow_only({"shown",         "against",      "visible_ns",       "visible_bytes",
                     "cursor_ns",     "range_ns",     "selection",        "color_by",
                     "curve",         "hidden",       "hides_persistent", "theme",
                     "tab",           "measure",      "lever_order",      "levers",
                     "groups_blocks", "open_groups",  "live_filter",      "lower_share",
                     "shows_what_if", "aligns_phases"});
  ViewState& view = session.view;
  session.shown = text_of(object, "shown"), session.against = text_of(object, "against");
  view.aligns_phases = object.boolean_or("aligns_phases", false);
  if (const auto visible = range_of(object, "visible_ns"))
    view.visible = *visible, session.is_whole = false;
  view.bytes = range_of(object, "visible_bytes");
  if (const auto cursor = object.find("cursor_ns"))
    view.cursor_time = cursor->number(0, farthest), session.is_at_peak = false;
  view.range = range_of(object, "range_ns");
  if (const auto selection = object.find("selection"))
    session.selection = read_selection(*selection);
  read_choice(object, "color_by", color_names, view.color_by);
  read_curve(object, view.curve);
  read_choice(object, "theme", theme_choices, view.theme);
  read_choice(object, "tab", tab_names, view.tab);
  read_choice(object, "measure", measures, view.measure);
  read_choice(object, "lever_order", lever_orders, view.lever_order);
  view.marked = texts_of(object, "levers");
  view.groups_blocks = object.boolean_or("groups_blocks", view.groups_blocks);
  for (std::string& group : texts_of(object, "open_groups"))
    view.open_groups.insert(std::move(group));
  view.live_filter = text_of(object, "live_filter");
  view.lower_share = static_cast<float>(
      object.number_or("lower_share", view.lower_share, least_lower_share, most_lower_share));
  view.shows_what_if = object.boolean_or("shows_what_if", view.shows_what_if);
}

Note read_note(const JsonView& object) {
  object.allow_only({"at_ns", "of_ns", "text", "file"});
  const double step = object.at("of_ns").number(1, farthest);
  return {.moment = object.at("at_ns").number(0, step),
          .step = step,
          .text = text_of(object, "text"),
          .file = text_of(object, "file")};
}

PlanChoice read_plan_choice(const JsonView& object) {
  object.allow_only({"budget_bytes", "allow"});
  PlanChoice plan{Bytes{object.at("budget_bytes").integer()}};
  read_choice(object, "allow", allowances, plan.allowed);
  return plan;
}

void require_version(const JsonView& root) {
  const JsonView version = root.at("tidemark_session");
  if (const std::int64_t found = version.integer(1); found != session_version)
    version.fail(
        fmt::format("this is version {} of sessions, and version {} is read here: open it "
                    "with the tidemark that wrote it, or a newer one",
                    found, session_version));
}

}  // namespace

std::string write_session_text(const Session& session) {
  Lines lines(2);
  lines.add("tidemark_session", fmt::format("{}", session_version));
  lines.add_text("command", session.command);
  if (session.planned) lines.add("plan", plan_object(*session.planned));
  if (!session.kept.empty()) lines.add("kept", kept_list(session.kept));
  lines.add_texts("files", session.files);
  lines.add("view", view_object(session));
  if (!session.view.notes.empty()) lines.add("notes", notes_list(session.view.notes));
  return lines.object() + "\n";
}

Session read_session_text(std::string_view text, std::string_view file) {
  const JsonDocument document(text, file);
  const JsonView root = document.root();
  require_version(root);
  root.allow_only({"tidemark_session", "command", "plan", "kept", "files", "view", "notes"});
  Session session;
  session.command = text_of(root, "command");
  if (const auto plan = root.find("plan")) session.planned = read_plan_choice(*plan);
  if (session.planned && session.command.empty())
    root.at("plan").fail("a plan is of a model: \"command\" has to predict one");
  if (const auto kept = root.find("kept"))
    for (const JsonView one : kept->items()) {
      one.allow_only({"name", "command"});
      session.kept.push_back(
          {std::string(one.at("name").text()), std::string(one.at("command").text())});
    }
  session.files = texts_of(root, "files");
  if (const auto view = root.find("view")) read_view(*view, session);
  if (const auto notes = root.find("notes"))
    for (const JsonView note : notes->items()) session.view.notes.push_back(read_note(note));
  return session;
}

}  // namespace tidemark::gui
