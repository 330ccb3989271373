// GLFW and OpenGL, opened when a window is: the program needs neither for anything else, and runs
// where they are missing. Each of their functions that is called, here or by Dear ImGui's backend,
// stands below under its own name and passes the call on; one that is not yet there is an undefined
// reference when the program is linked, and one line more.
#include <GLFW/glfw3.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "gui/window.h"

namespace tidemark::gui {
namespace {

constexpr const char* library = "libglfw.so.3";

void* opened() {
  static void* handle = nullptr;
  if (!handle) handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  throw NoDisplay(
      fmt::format("no window can be opened: {} (on Debian: apt-get install libglfw3 libgl1; "
                  "tidemark view … --screenshot FILE needs neither)",
                  dlerror()));
}

void* found(const char* name) {
  const bool is_of_glfw = std::string_view(name).starts_with("glfw");
  void* const function =
      is_of_glfw ? dlsym(opened(), name) : reinterpret_cast<void*>(glfwGetProcAddress(name));
  if (function) return function;
  throw NoDisplay(
      fmt::format("no window can be opened: {} knows no {}; GLFW 3.3 does", library, name));
}

}  // namespace
}  // namespace tidemark::gui

#define PASS_ON(result, name, parameters, arguments)                      \
  result name parameters {                                                \
    static auto* const function =                                         \
        reinterpret_cast<decltype(&::name)>(tidemark::gui::found(#name)); \
    return function arguments;                                            \
  }

extern "C" {

PASS_ON(GLFWcursor*, glfwCreateStandardCursor, (int shape), (shape))
PASS_ON(GLFWwindow*, glfwCreateWindow,
        (int width, int height, const char* title, GLFWmonitor* monitor, GLFWwindow* share),
        (width, height, title, monitor, share))
PASS_ON(void, glfwDestroyCursor, (GLFWcursor * cursor), (cursor))
PASS_ON(void, glfwDestroyWindow, (GLFWwindow * window), (window))
PASS_ON(const char*, glfwGetClipboardString, (GLFWwindow * window), (window))
PASS_ON(void, glfwGetCursorPos, (GLFWwindow * window, double* xpos, double* ypos),
        (window, xpos, ypos))
PASS_ON(void, glfwGetFramebufferSize, (GLFWwindow * window, int* width, int* height),
        (window, width, height))
PASS_ON(int, glfwGetInputMode, (GLFWwindow * window, int mode), (window, mode))
PASS_ON(const float*, glfwGetJoystickAxes, (int jid, int* count), (jid, count))
PASS_ON(const unsigned char*, glfwGetJoystickButtons, (int jid, int* count), (jid, count))
PASS_ON(int, glfwGetMouseButton, (GLFWwindow * window, int button), (window, button))
PASS_ON(GLFWglproc, glfwGetProcAddress, (const char* procname), (procname))
PASS_ON(double, glfwGetTime, (), ())
PASS_ON(int, glfwGetWindowAttrib, (GLFWwindow * window, int attrib), (window, attrib))
PASS_ON(void, glfwGetWindowContentScale, (GLFWwindow * window, float* xscale, float* yscale),
        (window, xscale, yscale))
PASS_ON(void, glfwGetWindowSize, (GLFWwindow * window, int* width, int* height),
        (window, width, height))
PASS_ON(void*, glfwGetWindowUserPointer, (GLFWwindow * window), (window))
PASS_ON(int, glfwInit, (), ())
PASS_ON(void, glfwMakeContextCurrent, (GLFWwindow * window), (window))
PASS_ON(void, glfwPollEvents, (), ())
PASS_ON(void, glfwPostEmptyEvent, (), ())
PASS_ON(GLFWcharfun, glfwSetCharCallback, (GLFWwindow * window, GLFWcharfun callback),
        (window, callback))
PASS_ON(void, glfwSetClipboardString, (GLFWwindow * window, const char* string), (window, string))
PASS_ON(void, glfwSetCursor, (GLFWwindow * window, GLFWcursor* cursor), (window, cursor))
PASS_ON(GLFWcursorenterfun, glfwSetCursorEnterCallback,
        (GLFWwindow * window, GLFWcursorenterfun callback), (window, callback))
PASS_ON(void, glfwSetCursorPos, (GLFWwindow * window, double xpos, double ypos),
        (window, xpos, ypos))
PASS_ON(GLFWdropfun, glfwSetDropCallback, (GLFWwindow * window, GLFWdropfun callback),
        (window, callback))
PASS_ON(GLFWerrorfun, glfwSetErrorCallback, (GLFWerrorfun callback), (callback))
PASS_ON(void, glfwSetInputMode, (GLFWwindow * window, int mode, int value), (window, mode, value))
PASS_ON(GLFWkeyfun, glfwSetKeyCallback, (GLFWwindow * window, GLFWkeyfun callback),
        (window, callback))
PASS_ON(GLFWmonitorfun, glfwSetMonitorCallback, (GLFWmonitorfun callback), (callback))
PASS_ON(GLFWmousebuttonfun, glfwSetMouseButtonCallback,
        (GLFWwindow * window, GLFWmousebuttonfun callback), (window, callback))
PASS_ON(GLFWscrollfun, glfwSetScrollCallback, (GLFWwindow * window, GLFWscrollfun callback),
        (window, callback))
PASS_ON(GLFWwindowfocusfun, glfwSetWindowFocusCallback,
        (GLFWwindow * window, GLFWwindowfocusfun callback), (window, callback))
PASS_ON(void, glfwSetWindowSizeLimits,
        (GLFWwindow * window, int minwidth, int minheight, int maxwidth, int maxheight),
        (window, minwidth, minheight, maxwidth, maxheight))
PASS_ON(void, glfwSetWindowUserPointer, (GLFWwindow * window, void* pointer), (window, pointer))
PASS_ON(void, glfwSwapBuffers, (GLFWwindow * window), (window))
PASS_ON(void, glfwSwapInterval, (int interval), (interval))
PASS_ON(void, glfwTerminate, (), ())
PASS_ON(void, glfwWaitEvents, (), ())
PASS_ON(void, glfwWaitEventsTimeout, (double timeout), (timeout))
PASS_ON(void, glfwWindowHint, (int hint, int value), (hint, value))
PASS_ON(int, glfwWindowShouldClose, (GLFWwindow * window), (window))

PASS_ON(void, glClear, (GLbitfield mask), (mask))
PASS_ON(void, glClearColor, (GLclampf red, GLclampf green, GLclampf blue, GLclampf alpha),
        (red, green, blue, alpha))
PASS_ON(void, glPixelStorei, (GLenum name, GLint value), (name, value))
PASS_ON(void, glReadBuffer, (GLenum mode), (mode))
PASS_ON(void, glReadPixels,
        (GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type,
         GLvoid* pixels),
        (x, y, width, height, format, type, pixels))
PASS_ON(void, glViewport, (GLint x, GLint y, GLsizei width, GLsizei height), (x, y, width, height))

}  // extern "C"
