// Opens what was asked for, then draws a picture or an export without a window, or runs one.
#include "gui/view.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "gui/desktop.h"
#include "gui/export.h"
#include "gui/session.h"
#include "gui/settings.h"
#include "gui/window.h"

namespace tidemark::gui {
namespace {

// Without a script: until everything has found its place. Widgets know their sizes from the frame
// before, and tables take two.
constexpr int settling_frames = 5;

using Clock = std::chrono::steady_clock;

// A window opens before large files are read, but not before it is known that small ones cannot be.
constexpr auto nobody_notices = std::chrono::milliseconds(300);
constexpr auto for_ever = std::chrono::hours(24);

void ask(const ViewRequest& request, ViewModel& model, ViewState& view) {
  model.ask(*request.what_if, view);
  if (!model.problem().empty()) throw InputError(model.problem());
  if (model.recordings().size() > 1) view.against = 1;
}

void open_all(const ViewRequest& request, std::chrono::milliseconds patience, ViewModel& model,
              ViewState& view) {
  if (request.what_if) ask(request, model, view);
  if (!request.session.empty()) open_session_file(request.session, model, view);
  if (!request.baseline.empty()) model.open_baseline(request.baseline);
  for (const std::string& file : request.files) model.open(file, Opening::Compared);
  for (const auto end = Clock::now() + patience; model.loading().is_busy() && Clock::now() < end;) {
    model.loading().wait(std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
    if (const std::string problem = model.take_opened(view); !problem.empty())
      throw InputError(problem);
  }
}

std::optional<Script> script_of(const ViewRequest& request) {
  if (request.script.empty()) return {};
  return Script(read_file(request.script, FileKind::WindowScript), request.script);
}

// What is computed beside the drawing is waited for: the same picture every time.
Image draw_picture(ViewModel& model, ViewState& view, const ViewRequest& request,
                   const std::optional<Script>& script) {
  Stage stage(request.scale.value_or(1));
  Input input;
  const PixelSize size{request.width, request.height};
  const int frames = script ? script->frames() : settling_frames;
  const auto is_settling = [&] {
    return !model.live().is_complete() || model.loading().is_busy() || view.opening;
  };
  for (int frame = 0; frame < frames || is_settling(); ++frame) {
    if (script) script->play(frame, input);
    model.wait();
    stage.frame(model, view, input, size);
    finish_frame(model, view, input, [&] { return stage.picture(); });
    input.end_frame();
  }
  return stage.picture();
}

// What pictures do without: what the desktop wishes, and what the last window held.
void prepare_window(const std::string& settings, ViewState& view) {
  view.desktop_theme = desktop_theme().value_or(Theme::Dark);
  const std::string last = last_session_path(settings);
  if (last.empty() || !std::filesystem::exists(last)) return;
  try {
    view.last_session = std::make_shared<const Session>(read_session(last));
  } catch (const InputError& error) {
    view.notice = fmt::format("the last session is not offered: {}", error.what());
  }
}

}  // namespace

std::string show(const ViewRequest& request) {
  ViewModel model = request.read ? ViewModel(request.read) : ViewModel();
  model.inputs_of = request.inputs_of;
  model.command_of = request.command_of;
  model.causes_of = request.causes_of;
  model.lasting_command_of = request.lasting_command_of;
  model.inputs_typed = request.inputs_typed;
  ViewState view;
  const std::optional<Script> script = script_of(request);
  PixelSize size{request.width, request.height};
  const bool is_headless = !request.screenshot.empty() && !request.in_window;
  const std::string settings = is_headless || script ? "" : settings_path();
  read_settings(settings, view, size);
  if (request.has_size) size = {request.width, request.height};
  open_all(request, is_headless ? for_ever : nobody_notices, model, view);
  if (is_headless) {
    if (request.screenshot.ends_with(".png")) {
      write_file(request.screenshot, to_png(draw_picture(model, view, request, script)));
    } else {
      model.wait();
      go_on_opening(model, view);
      if (model.is_empty()) throw UsageError("--screenshot: there is nothing to draw");
      write_export(request.screenshot, *model.shown(view));
    }
    return fmt::format("wrote {}\n", request.screenshot);
  }
  if (!script) prepare_window(settings, view);
  const auto keep = [&] { keep_last_session(last_session_path(settings), model, view); };
  try {
    size = run_window(model, view, {size, request.scale, script, request.screenshot});
  } catch (const NoDisplay&) {  // a driver may be reset after hours
    keep();
    throw;
  }
  keep();
  write_settings(settings, view, size);
  return "";
}

}  // namespace tidemark::gui
