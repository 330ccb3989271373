// `tidemark view`: what to show, and how. The one door into this folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gui/loading.h"
#include "gui/newest_diff.h"
#include "gui/what_if.h"

namespace tidemark::gui {

struct ViewRequest {
  std::vector<std::string> files = {};  ///< timeline files, or whatever else `read` takes
  Loading::Reader read = {};
  std::optional<WhatIf> what_if = {};  ///< shown before them
  std::string session = {};            ///< a file: opened before all of them
  std::string baseline = {};           ///< a check file
  int width = 1280, height = 800;      ///< pixels
  bool has_size = false;               ///< asked for: else the settings' own
  std::optional<float> scale = {};
  std::string screenshot = {};  ///< a picture of the view instead of a window
  std::string script = {};      ///< a file of input to play first
  bool in_window = false;       ///< the script plays in a window all the same
  /// Of names and files that hold a model or a plan; see ViewModel.
  std::function<std::optional<WhatIf>(const std::string& subject, const WhatIf* now)> inputs_of =
      {};
  /// Why a file's run needs another amount than was predicted.
  CausesOf causes_of = {};
  /// The inputs as one types them.
  std::function<std::string(const WhatIf&)> command_of = {};
  /// For sessions; see ViewModel.
  std::function<std::string(const WhatIf&)> lasting_command_of = {};
  std::function<WhatIf(const std::string& command)> inputs_typed = {};
};

/// Throws NoDisplay if there must be a window and cannot be one. Returns what to tell at the end.
std::string show(const ViewRequest& request);

}  // namespace tidemark::gui
