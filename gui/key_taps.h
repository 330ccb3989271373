// The keys of a real keyboard between two frames: who taps a key faster than a frame is drawn is
// heard all the same.
#pragma once

#include <bitset>
#include <cstddef>

namespace tidemark::gui {

class KeyTaps {
 public:
  /// As many as Dear ImGui knows, by GLFW's numbers. Others are not noted.
  static constexpr std::size_t most = 512;

  void press(int key) {
    if (is_known(key)) held_.set(position(key)), tapped_.set(position(key));
  }
  void release(int key) {
    if (is_known(key)) held_.reset(position(key));
  }

  /// What is down in the frame that begins now: held, or pressed since the one before.
  std::bitset<most> next_frame() {
    const std::bitset<most> down = held_ | tapped_;
    tapped_.reset();
    return down;
  }

 private:
  static bool is_known(int key) { return key >= 0 && position(key) < most; }
  static std::size_t position(int key) { return static_cast<std::size_t>(key); }

  std::bitset<most> held_, tapped_;
};

}  // namespace tidemark::gui
