// Dear ImGui with our font and style, without a window: frames in, pictures out.
#pragma once

#include "gui/drawing/rasterizer.h"
#include "gui/input.h"
#include "gui/model.h"

struct ImGuiContext;

namespace tidemark::gui {

struct PixelSize {
  int width = 1280, height = 800;

  bool operator==(const PixelSize&) const = default;
};

/// Smaller windows than this have no room for the timeline.
inline constexpr PixelSize smallest_picture{320, 240};
inline constexpr PixelSize largest_picture{16384, 16384};

class Stage {
 public:
  /// `scale` multiplies everything: 2 for screens with twice as many pixels per inch.
  explicit Stage(float scale);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  /// Draws a frame as if 1/60 s had passed since the last one.
  void frame(ViewModel& model, ViewState& view, const Input& input, PixelSize size);
  /// Of the last frame.
  Image picture() const;

  /// Did the font that we like exist on this machine?
  bool has_font() const { return has_font_; }

 private:
  ImGuiContext* context_;
  CoverageTexture texture_;
  bool has_font_ = false;
};

/// Before each frame, after its input: a frame that is to be written shows neither the mouse nor
/// the menu that asked for it.
void begin_frame(ViewState& view);

/// Opens what was dropped and writes what was asked for, after a frame. `picture` is called for
/// a PNG only.
void finish_frame(ViewModel& model, ViewState& view, const Input& input,
                  const std::function<Image()>& picture);

}  // namespace tidemark::gui
