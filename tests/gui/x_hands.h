// Hands on the other side of the X server: a client of its own that moves the pointer, presses
// keys and drops files, so that a window gets all of it as from a person. The library of the XTEST
// extension is opened at run time.
#pragma once

#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/keysym.h>
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace tidemark::gui {

class XHands {
 public:
  /// False where the libraries or the extension are missing.
  static bool are_possible() { return x11() && xtest(); }

  XHands() : display_(call<decltype(&XOpenDisplay)>(x11(), "XOpenDisplay")(nullptr)) {
    window_ = find_window();
    if (window_ == 0) return;
    X<decltype(&XSetInputFocus)>("XSetInputFocus", window_, RevertToParent, CurrentTime);
    flush();
  }
  XHands(const XHands&) = delete;
  XHands& operator=(const XHands&) = delete;
  ~XHands() {
    if (display_) call<decltype(&XCloseDisplay)>(x11(), "XCloseDisplay")(display_);
  }

  bool has_window() const { return window_ != 0; }

  /// In pixels of the window, which no window manager has moved.
  void move(float x, float y) {
    const auto [left, top] = origin();
    T<int (*)(Display*, int, int, int, unsigned long)>(
        "XTestFakeMotionEvent", -1, left + static_cast<int>(x), top + static_cast<int>(y), 0UL);
    flush();
  }
  void hold(unsigned button) { fake_button(button, True); }
  void release(unsigned button) { fake_button(button, False); }
  void click(unsigned button) { hold(button), release(button); }

  void hold_key(KeySym sign) { fake_key(sign, True); }
  void release_key(KeySym sign) { fake_key(sign, False); }
  void press(KeySym sign) { hold_key(sign), release_key(sign); }

  void resize(int width, int height) {
    X<decltype(&XResizeWindow)>("XResizeWindow", window_, static_cast<unsigned>(width),
                                static_cast<unsigned>(height));
    flush();
  }

  /// As a file manager does it (the XDND protocol, version 5); give() has to be called until it is
  /// true.
  void drop(const std::string& path) {
    uri_ = "file://" + path + "\r\n";
    gave_ = false;
    source_ = X<decltype(&XCreateSimpleWindow)>("XCreateSimpleWindow", root(), 0, 0, 1U, 1U, 0U,
                                                0UL, 0UL);
    X<decltype(&XSetSelectionOwner)>("XSetSelectionOwner", atom("XdndSelection"), source_,
                                     CurrentTime);
    tell("XdndEnter", {5L << 24, static_cast<long>(atom("text/uri-list")), 0, 0});
    tell("XdndPosition",
         {0, (20L << 16) | 20, CurrentTime, static_cast<long>(atom("XdndActionCopy"))});
    tell("XdndDrop", {0, CurrentTime, 0, 0});
  }
  /// Hands the file's name over as soon as the window asks for it.
  bool give() {
    XEvent event;
    while (X<decltype(&XPending)>("XPending") > 0) {
      X<decltype(&XNextEvent)>("XNextEvent", &event);
      if (event.type == SelectionRequest) answer(event.xselectionrequest);
    }
    return gave_;
  }

 private:
  static void* opened(const char* library) { return dlopen(library, RTLD_NOW | RTLD_GLOBAL); }
  static void* x11() {
    static void* const library = opened("libX11.so.6");
    return library;
  }
  static void* xtest() {
    static void* const library = opened("libXtst.so.6");
    return library;
  }
  template <typename Function>
  static Function call(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
  }
  template <typename Function, typename... Arguments>
  std::invoke_result_t<Function, Display*, Arguments...> X(const char* name,
                                                           Arguments... arguments) const {
    return call<Function>(x11(), name)(display_, arguments...);
  }
  template <typename Function, typename... Arguments>
  std::invoke_result_t<Function, Display*, Arguments...> T(const char* name,
                                                           Arguments... arguments) const {
    return call<Function>(xtest(), name)(display_, arguments...);
  }

  Window root() const { return X<decltype(&XDefaultRootWindow)>("XDefaultRootWindow"); }
  Atom atom(const char* name) const {
    return X<decltype(&XInternAtom)>("XInternAtom", name, False);
  }
  void flush() const { X<decltype(&XFlush)>("XFlush"); }

  Window find_window() const {
    Window parent = 0, top = 0, *children = nullptr;
    unsigned count = 0;
    X<decltype(&XQueryTree)>("XQueryTree", root(), &top, &parent, &children, &count);
    for (unsigned i = 0; i < count; ++i) {
      char* name = nullptr;
      X<decltype(&XFetchName)>("XFetchName", children[i], &name);
      if (name && std::strcmp(name, "Tidemark") == 0) return children[i];
    }
    return 0;
  }

  std::pair<int, int> origin() const {
    int x = 0, y = 0;
    Window child = 0;
    X<decltype(&XTranslateCoordinates)>("XTranslateCoordinates", window_, root(), 0, 0, &x, &y,
                                        &child);
    return {x, y};
  }

  void fake_button(unsigned button, int is_down) {
    T<int (*)(Display*, unsigned, int, unsigned long)>("XTestFakeButtonEvent", button, is_down,
                                                       0UL);
    flush();
  }
  void fake_key(KeySym sign, int is_down) {
    const auto code = X<decltype(&XKeysymToKeycode)>("XKeysymToKeycode", sign);
    T<int (*)(Display*, unsigned, int, unsigned long)>("XTestFakeKeyEvent",
                                                       static_cast<unsigned>(code), is_down, 0UL);
    flush();
  }

  // A client message, which begins with who sends it.
  void tell(const char* what, std::array<long, 4> rest) const {
    XEvent event{};
    event.xclient.type = ClientMessage;
    event.xclient.window = window_;
    event.xclient.message_type = atom(what);
    event.xclient.format = 32;
    event.xclient.data.l[0] = static_cast<long>(source_);
    for (std::size_t i = 0; i < rest.size(); ++i) event.xclient.data.l[i + 1] = rest[i];
    X<decltype(&XSendEvent)>("XSendEvent", window_, False, NoEventMask, &event);
    flush();
  }

  void answer(const XSelectionRequestEvent& asked) {
    X<decltype(&XChangeProperty)>(
        "XChangeProperty", asked.requestor, asked.property, asked.target, 8, PropModeReplace,
        reinterpret_cast<const unsigned char*>(uri_.data()), static_cast<int>(uri_.size()));
    XEvent event{};
    event.xselection.type = SelectionNotify;
    event.xselection.requestor = asked.requestor;
    event.xselection.selection = asked.selection;
    event.xselection.target = asked.target;
    event.xselection.property = asked.property;
    event.xselection.time = asked.time;
    X<decltype(&XSendEvent)>("XSendEvent", asked.requestor, False, NoEventMask, &event);
    flush();
    gave_ = true;
  }

  Display* display_;
  Window window_ = 0, source_ = 0;
  std::string uri_;
  bool gave_ = false;
};

}  // namespace tidemark::gui
