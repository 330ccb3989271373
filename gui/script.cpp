// Parses a window script line by line and plays a frame's lines into the input.
#include "gui/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/quoted.h"

namespace tidemark::gui {
namespace {

using Verb = ScriptLine::Verb;

constexpr std::array verbs = {Named{Verb::Mouse, std::string_view("mouse")},
                              Named{Verb::Down, std::string_view("down")},
                              Named{Verb::Up, std::string_view("up")},
                              Named{Verb::Wheel, std::string_view("wheel")},
                              Named{Verb::Press, std::string_view("press")},
                              Named{Verb::Hold, std::string_view("hold")},
                              Named{Verb::Release, std::string_view("release")},
                              Named{Verb::Type, std::string_view("type")},
                              Named{Verb::Drop, std::string_view("drop")}};
static_assert(is_in_order(verbs));

enum class Button : unsigned char { Left, Right, Middle };
constexpr std::array buttons = {Named{Button::Left, std::string_view("left")},
                                Named{Button::Right, std::string_view("right")},
                                Named{Button::Middle, std::string_view("middle")}};

// Half an hour at 60 frames a second: more is a typing error.
constexpr int most_frames = 100'000;

// Takes the first word off the text.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

float number(std::string_view word, float least, float most) {
  float value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() ||
      !(value >= least && value <= most))
    throw InputError(fmt::format("{} is not a number from {} to {}", quoted(word), least, most));
  return value;
}

ScriptLine parse_line(std::string_view text) {
  ScriptLine line;
  line.frame = static_cast<int>(number(next_word(text), 0, most_frames));
  line.verb = parse_name(verbs, "verb", next_word(text));
  switch (line.verb) {
    case Verb::Mouse:
      line.x = number(next_word(text), -1, 1e6F);
      line.y = number(next_word(text), -1, 1e6F);
      break;
    case Verb::Wheel:
      line.x = number(next_word(text), -1000, 1000);
      break;
    case Verb::Down:
    case Verb::Up:
      line.button = static_cast<std::size_t>(parse_name(buttons, "button", next_word(text)));
      break;
    case Verb::Press:
    case Verb::Hold:
    case Verb::Release:
      line.key = parse_name(key_names, "key", next_word(text));
      break;
    case Verb::Type:
    case Verb::Drop:
      line.text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
      return line;
  }
  if (const std::string_view more = next_word(text); !more.empty())
    throw InputError(fmt::format("{} is one word too many", quoted(more)));
  return line;
}

}  // namespace

Script::Script(std::string_view text, std::string_view file) {
  std::size_t number_of_line = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number_of_line;
    if (line.find_first_not_of(' ') == line.npos || line.starts_with('#')) continue;
    try {
      lines_.push_back(parse_line(line));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}:{}: {}", printable(file), number_of_line, error.what()));
    }
  }
  // Lines may be written in any order; those of one frame keep theirs.
  std::ranges::stable_sort(lines_, {}, &ScriptLine::frame);
}

// One frame more for what the last event did to show: widgets answer in the frame after.
int Script::frames() const { return lines_.empty() ? 0 : lines_.back().frame + 2; }

void Script::play(int frame, Input& input) const {
  for (const ScriptLine& line : lines_) {
    // A press is down for one frame, as a short touch of a key is.
    if (line.verb == Verb::Press && line.frame + 1 == frame) input.keys.erase(line.key);
    if (line.frame != frame) continue;
    switch (line.verb) {
      case Verb::Mouse:
        input.x = line.x, input.y = line.y;
        break;
      case Verb::Down:
      case Verb::Up:
        input.buttons[line.button] = line.verb == Verb::Down;
        break;
      case Verb::Wheel:
        input.wheel += line.x;
        break;
      case Verb::Press:
      case Verb::Hold:
        input.keys.insert(line.key);
        break;
      case Verb::Release:
        input.keys.erase(line.key);
        break;
      case Verb::Type:
        input.text += line.text;
        break;
      case Verb::Drop:
        input.drops.push_back(line.text);
        break;
    }
  }
}

}  // namespace tidemark::gui
