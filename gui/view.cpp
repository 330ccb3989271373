// Opens what was asked for, then draws a picture or an export without a window, or runs one.
#include "gui/view.h"

#include <fmt/format.h>

#include <chrono>

#include "base/files.h"
#include "gui/export.h"
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
  for (int frame = 0; frame < frames || !model.live().is_complete() || model.loading().is_busy();
       ++frame) {
    if (script) script->play(frame, input);
    model.wait();
    stage.frame(model, view, input, size);
    finish_frame(model, view, input, [&] { return stage.picture(); });
    input.end_frame();
  }
  return stage.picture();
}

}  // namespace

std::string show(const ViewRequest& request) {
  ViewModel model = request.read ? ViewModel(request.read) : ViewModel();
  model.inputs_of = request.inputs_of;
  model.command_of = request.command_of;
  model.causes_of = request.causes_of;
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
      if (model.is_empty()) throw UsageError("--screenshot: there is nothing to draw");
      write_export(request.screenshot, *model.shown(view));
    }
    return fmt::format("wrote {}\n", request.screenshot);
  }
  size = run_window(model, view, {size, request.scale, script, request.screenshot});
  write_settings(settings, view, size);
  return "";
}

}  // namespace tidemark::gui
