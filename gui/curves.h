// The bands of the curves that a frame draws: made at once where that takes no time, else beside
// the drawing, which shows what was known before.
#pragma once

#include <future>

#include "gui/indexes/bands.h"

namespace tidemark::gui {

class Curves {
 public:
  using Shown = std::shared_ptr<const Opened>;

  /// Steps of models have thousands of events; this many are sorted into bands in a third of a
  /// frame.
  static constexpr std::size_t most_at_once = 100'000;

  /// Never null: until they are known, what was known about the recording before, or categories.
  std::shared_ptr<const Bands> of(const Shown& opened, const CurveChoice& choice, Range visible);
  /// Forgets recordings that nobody asked about since the last call.
  void begin_frame();
  bool is_catching_up() const;
  void wait() const;

 private:
  struct Wanted {
    CurveChoice choice;
    Range visible;  ///< of choices that depend on it

    bool operator==(const Wanted&) const = default;
  };
  struct Entry {
    Shown opened;
    std::optional<Wanted> wanted = {};  ///< is there, or comes
    std::shared_ptr<const Bands> bands = {};
    std::future<std::shared_ptr<const Bands>> coming = {};
    bool is_used = true;
  };

  Entry& entry_of(const Shown& opened);

  std::vector<Entry> entries_;
};

}  // namespace tidemark::gui
