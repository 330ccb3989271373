// The keys that the view knows. The numbers are GLFW's, which Dear ImGui takes as they are; without
// a window nothing else of GLFW is needed.
#pragma once

#include <array>

#include "base/names.h"

namespace tidemark::gui {

enum class Key : int {
  Space = 32,
  Comma = 44,
  Period = 46,
  Slash = 47,
  A = 65,
  B = 66,
  C = 67,
  D = 68,
  F = 70,
  H = 72,
  J = 74,
  K = 75,
  M = 77,
  N = 78,
  P = 80,
  Q = 81,
  R = 82,
  S = 83,
  T = 84,
  V = 86,
  W = 87,
  X = 88,
  Y = 89,
  Z = 90,
  Escape = 256,
  Enter = 257,
  Tab = 258,
  Backspace = 259,
  Insert = 260,
  Delete = 261,
  Right = 262,
  Left = 263,
  Down = 264,
  Up = 265,
  PageUp = 266,
  PageDown = 267,
  Home = 268,
  End = 269,
  Shift = 340,
  Control = 341,
};

/// As scripts write them; those that only edit text are not in it.
inline constexpr std::array key_names = {Named{Key::Space, std::string_view("space")},
                                         Named{Key::Comma, std::string_view("comma")},
                                         Named{Key::Period, std::string_view("period")},
                                         Named{Key::Slash, std::string_view("slash")},
                                         Named{Key::A, std::string_view("a")},
                                         Named{Key::B, std::string_view("b")},
                                         Named{Key::C, std::string_view("c")},
                                         Named{Key::D, std::string_view("d")},
                                         Named{Key::F, std::string_view("f")},
                                         Named{Key::H, std::string_view("h")},
                                         Named{Key::J, std::string_view("j")},
                                         Named{Key::K, std::string_view("k")},
                                         Named{Key::M, std::string_view("m")},
                                         Named{Key::N, std::string_view("n")},
                                         Named{Key::P, std::string_view("p")},
                                         Named{Key::Q, std::string_view("q")},
                                         Named{Key::R, std::string_view("r")},
                                         Named{Key::S, std::string_view("s")},
                                         Named{Key::T, std::string_view("t")},
                                         Named{Key::W, std::string_view("w")},
                                         Named{Key::X, std::string_view("x")},
                                         Named{Key::Y, std::string_view("y")},
                                         Named{Key::Z, std::string_view("z")},
                                         Named{Key::Escape, std::string_view("escape")},
                                         Named{Key::Enter, std::string_view("enter")},
                                         Named{Key::Tab, std::string_view("tab")},
                                         Named{Key::Backspace, std::string_view("backspace")},
                                         Named{Key::Down, std::string_view("down")},
                                         Named{Key::Up, std::string_view("up")},
                                         Named{Key::Left, std::string_view("left")},
                                         Named{Key::Right, std::string_view("right")},
                                         Named{Key::Shift, std::string_view("shift")},
                                         Named{Key::Control, std::string_view("control")}};

}  // namespace tidemark::gui
