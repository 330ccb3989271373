// Sets up Dear ImGui with a font, runs one frame, and takes drops and exports at its end.
#include "gui/stage.h"

#include <imgui.h>

#include <cfloat>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "gui/drawing/paint.h"
#include "gui/export.h"
#include "gui/panels/layout.h"
#include "gui/session.h"

namespace tidemark::gui {
namespace {

constexpr const char* font_path = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
constexpr float font_pixels = 14;

// Latin, punctuation, arrows, minus, blocks, a warning: what names and our own texts may hold.
constexpr std::array<ImWchar, 13> glyphs = {0x20,   0xFF,   0x2010, 0x2027, 0x2190, 0x21FF, 0x2212,
                                            0x2212, 0x2580, 0x25FF, 0x26A0, 0x26A0, 0};

// False if only the small built-in font is there.
bool load_font(float scale) {
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  if (std::filesystem::exists(font_path) &&
      fonts.AddFontFromFileTTF(font_path, std::floor(font_pixels * scale), nullptr, glyphs.data()))
    return true;
  ImFontConfig config;
  config.SizePixels = std::floor(13 * scale);  // its own size is 13
  fonts.AddFontDefault(&config);
  return false;
}

}  // namespace

Stage::Stage(float scale) : context_(ImGui::CreateContext()) {
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // settings are ours
  io.LogFilename = nullptr;
  // Vertices beyond 65536 in one list: a curve and its lanes can be that many.
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigInputTextCursorBlink = false;  // pictures do not depend on the moment
  map_keys(io);
  has_font_ = load_font(scale);
  set_style(scale);
  unsigned char* pixels = nullptr;
  io.Fonts->GetTexDataAsAlpha8(&pixels, &texture_.width, &texture_.height);
  const auto count =
      static_cast<std::size_t>(texture_.width) * static_cast<std::size_t>(texture_.height);
  texture_.coverage.assign(pixels, pixels + count);
}

Stage::~Stage() { ImGui::DestroyContext(context_); }

void Stage::frame(ViewModel& model, ViewState& view, const Input& input, PixelSize size) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(size.width), static_cast<float>(size.height)};
  io.DeltaTime = 1.0F / 60;
  apply(input, io);
  begin_frame(view);
  draw_frame(model, view);
  ImGui::Render();
}

Image Stage::picture() const {
  return rasterize(*ImGui::GetDrawData(), texture_, ink(theme::ground));
}

void begin_frame(ViewState& view) {
  if (!view.wants_export.empty()) view.export_path = std::exchange(view.wants_export, "");
  if (!view.export_path.empty()) ImGui::GetIO().MousePos = {-FLT_MAX, -FLT_MAX};
  if (theme_of(view) != theme_now()) set_theme(theme_of(view));
  ImGui::NewFrame();
}

namespace {

std::string open_dropped(const std::string& path, ViewModel& model, ViewState& view) {
  if (!path.ends_with(session_ending)) return model.start(path, view);
  try {
    open_session_file(path, model, view);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

void export_view(const ViewModel& model, ViewState& view, const std::function<Image()>& picture) {
  const std::string path = free_path(std::exchange(view.export_path, ""));
  const OpenRecording& shown = model.recordings()[view.shown];
  if (path.ends_with(".png")) {
    write_file(path, to_png(picture()));
  } else if (path.ends_with(".notes.md")) {
    write_file(path, notes_as_markdown(view.notes, shown.path, *shown.opened));
  } else {
    write_export(path, *shown.opened);
  }
  view.notice = "wrote " + path;
}

// Into a file that is there only if that is ours, or if somebody said so.
void keep_session(const ViewModel& model, ViewState& view) {
  const std::string path = std::exchange(view.wants_session, "");
  const bool replaces = std::exchange(view.replaces_session, false);
  if (!replaces && is_foreign(path, view)) {
    view.saving = SaveDialog{path, true};
    return;
  }
  write_session(path, model, view);
  view.saving.reset();
  view.notice = "saved " + path;
}

}  // namespace

void finish_frame(ViewModel& model, ViewState& view, const Input& input,
                  const std::function<Image()>& picture) {
  for (const std::string& path : input.drops)
    if (std::string problem = open_dropped(path, model, view); !problem.empty())
      view.notice = problem;
  try {
    if (!view.wants_session.empty()) keep_session(model, view);
    if (!view.export_path.empty()) export_view(model, view, picture);
  } catch (const InputError& error) {
    view.notice = error.what();
  }
}

}  // namespace tidemark::gui
