// The window on GLFW and OpenGL: events to input, drawing only while something changes.
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "gui/drawing/paint.h"
#include "gui/key_taps.h"
#include "gui/panels/layout.h"
#include "gui/window.h"

namespace tidemark::gui {
namespace {

static_assert(static_cast<int>(Key::W) == GLFW_KEY_W &&
              static_cast<int>(Key::Slash) == GLFW_KEY_SLASH);
static_assert(static_cast<int>(Key::Escape) == GLFW_KEY_ESCAPE &&
              static_cast<int>(Key::Control) == GLFW_KEY_LEFT_CONTROL &&
              static_cast<int>(Key::Shift) == GLFW_KEY_LEFT_SHIFT);

// GLFW reports errors by a callback without a context; the first one is the cause of the others.
std::string& first_problem() {
  static std::string text;
  return text;
}

void note_problem(int, const char* text) {
  if (first_problem().empty()) first_problem() = text;
}

[[noreturn]] void fail(std::string_view what) {
  throw NoDisplay(fmt::format("{}: {} (tidemark view … --screenshot FILE needs no display)", what,
                              first_problem().empty() ? "unknown reason" : first_problem()));
}

class Library {
 public:
  Library() {
    first_problem().clear();
    glfwSetErrorCallback(note_problem);
    if (!glfwInit()) fail("no window can be opened");
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { glfwTerminate(); }
};

class Window {
 public:
  explicit Window(const WindowOptions& options) : reset_status_(options.reset_status) {
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    // Else a driver that was reset would hang or draw nothing, and say nothing.
    glfwWindowHint(GLFW_CONTEXT_ROBUSTNESS, GLFW_LOSE_CONTEXT_ON_RESET);
    window_ =
        glfwCreateWindow(options.size.width, options.size.height, "Tidemark", nullptr, nullptr);
    if (!window_) fail("no window with OpenGL 3.3 can be opened");
    glfwMakeContextCurrent(window_);
    // A script waits for no screen.
    glfwSwapInterval(options.script ? 0 : 1);
    glfwSetWindowSizeLimits(window_, smallest_picture.width, smallest_picture.height,
                            GLFW_DONT_CARE, GLFW_DONT_CARE);
    // OpenGL 4.5 or an extension: older drivers cannot tell, and are not asked.
    const auto ask = reinterpret_cast<ResetStatus>(glfwGetProcAddress("glGetGraphicsResetStatus"));
    if (!reset_status_ && ask) reset_status_ = ask;
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { glfwDestroyWindow(window_); }

  GLFWwindow* get() const { return window_; }

  float scale() const {
    float x = 1, y = 1;
    glfwGetWindowContentScale(window_, &x, &y);
    return std::clamp(std::max(x, y), 0.5F, 4.0F);
  }

  PixelSize size() const {
    PixelSize size;
    glfwGetFramebufferSize(window_, &size.width, &size.height);
    return size;
  }

  // A driver that was reset (or updated while running) leaves a context that draws nothing.
  void require_context() const {
    if (reset_status_ && reset_status_() != GL_NO_ERROR)
      throw NoDisplay("the graphics driver was reset and the window is lost; start it again");
  }

  Image picture() const {
    const PixelSize now = size();
    Image image{now.width, now.height, {}};
    const auto width = static_cast<std::size_t>(now.width);
    image.pixels.resize(width * static_cast<std::size_t>(now.height));
    // Rows of the picture have no padding.
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadBuffer(GL_BACK);
    glReadPixels(0, 0, now.width, now.height, GL_RGBA, GL_UNSIGNED_BYTE, image.pixels.data());
    // The window has no alpha, the file has.
    for (std::uint32_t& pixel : image.pixels) pixel |= 0xff000000U;
    const auto row = [&](int y) {
      return image.pixels.begin() + static_cast<std::ptrdiff_t>(y) * now.width;
    };
    for (int y = 0; y < now.height / 2; ++y)  // OpenGL's first row is the lowest
      std::swap_ranges(row(y), row(y + 1), row(now.height - 1 - y));
    return image;
  }

 private:
  using ResetStatus = GLenum (*)();

  GLFWwindow* window_;
  std::function<unsigned()> reset_status_;
};

class Backends {
 public:
  explicit Backends(GLFWwindow* window) {
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    if (!ImGui_ImplOpenGL3_Init("#version 330 core")) fail("OpenGL cannot be used");
  }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;
  ~Backends() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
};

// What happened since the last frame, beside what Dear ImGui's backend notes itself.
struct Events {
  KeyTaps keys;
  std::vector<std::string> drops;
};

Events& events_of(GLFWwindow* window) {
  return *static_cast<Events*>(glfwGetWindowUserPointer(window));
}

void note_drops(GLFWwindow* window, int count, const char** paths) {
  auto& drops = events_of(window).drops;
  drops.insert(drops.end(), paths, paths + count);
}

void note_key(GLFWwindow* window, int key, int, int action, int) {
  KeyTaps& keys = events_of(window).keys;
  if (action == GLFW_PRESS) keys.press(key);
  if (action == GLFW_RELEASE) keys.release(key);
}

// After the backend, which forgets a key that is up again before the frame begins.
void apply_keys(KeyTaps& keys, ImGuiIO& io) {
  const auto down = keys.next_frame();
  static_assert(KeyTaps::most == IM_ARRAYSIZE(io.KeysDown));
  for (std::size_t key = 0; key < down.size(); ++key) io.KeysDown[key] = down[key];
  io.KeyCtrl = down[GLFW_KEY_LEFT_CONTROL] || down[GLFW_KEY_RIGHT_CONTROL];
  io.KeyShift = down[GLFW_KEY_LEFT_SHIFT] || down[GLFW_KEY_RIGHT_SHIFT];
}

void draw(const Window& window, ViewModel& model, ViewState& view, const Input* scripted) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  apply_keys(events_of(window.get()).keys, ImGui::GetIO());
  if (scripted) {
    apply(*scripted, ImGui::GetIO());  // after the backend, which has just read the real mouse
    ImGui::GetIO().DeltaTime = 1.0F / 60;
  }
  begin_frame(view);
  draw_frame(model, view);
  ImGui::Render();
  const PixelSize size = window.size();
  glViewport(0, 0, size.width, size.height);
  const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(ink(theme::ground));
  glClearColor(ground.x, ground.y, ground.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  window.require_context();
}

// With nothing under way a picture stays as it is, and the processor rests. Dear ImGui needs some
// frames after the last event until everything is in its place.
void wait_for_events(ViewModel& model, int& frames_to_draw) {
  constexpr int settling_frames = 4;
  const bool is_busy = !model.live().is_complete() || !model.search().is_complete() ||
                       model.is_catching_up() || ImGui::IsAnyMouseDown();
  const ImGuiIO& io = ImGui::GetIO();
  const bool has_keys =
      std::any_of(std::begin(io.KeysDown), std::end(io.KeysDown), [](bool down) { return down; });
  if (is_busy || has_keys) frames_to_draw = settling_frames;
  if (--frames_to_draw > 0) return glfwPollEvents();
  // What is read tells its seconds; nothing else changes without a hand.
  constexpr double a_while = 0.1;  // seconds
  model.loading().is_busy() ? glfwWaitEventsTimeout(a_while) : glfwWaitEvents();
  frames_to_draw = settling_frames;
}

}  // namespace

void wake_window() { glfwPostEmptyEvent(); }

PixelSize run_window(ViewModel& model, ViewState& view, const WindowOptions& options) {
  const Library library;
  const Window window(options);
  const Stage stage(options.scale.value_or(window.scale()));
  Input input;
  Events events;
  glfwSetWindowUserPointer(window.get(), &events);
  glfwSetDropCallback(window.get(), note_drops);
  glfwSetKeyCallback(window.get(), note_key);  // the backend's own calls it, too
  const Backends backends(window.get());
  int frames_to_draw = 1;
  for (int frame = 0; !glfwWindowShouldClose(window.get()) && !view.wants_to_close; ++frame) {
    if (options.script) {
      glfwPollEvents();
      options.script->play(frame, input);
    } else {
      wait_for_events(model, frames_to_draw);
    }
    draw(window, model, view, options.script ? &input : nullptr);
    const bool is_last = options.script && frame + 1 >= options.script->frames();
    if (is_last) {
      if (!options.screenshot.empty()) write_file(options.screenshot, to_png(window.picture()));
      break;
    }
    input.drops.insert(input.drops.end(), events.drops.begin(), events.drops.end());
    events.drops.clear();
    finish_frame(model, view, input, [&] { return window.picture(); });
    input.end_frame();
    glfwSwapBuffers(window.get());
  }
  return window.size();
}

}  // namespace tidemark::gui
