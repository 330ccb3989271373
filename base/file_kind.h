// What files are for. A limit that no sound file of its kind comes near ends a wrong one (weights
// named as a config, an endless pipe) before it fills the memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace tidemark {

enum class FileKind : std::uint8_t {
  Config,
  Device,
  Plan,
  Check,
  AllocatorScript,
  WindowScript,
  Settings,
  Result,
  Trace,
  Recording,
  TrainingData,
};

struct FileKindRow {
  FileKind value;
  std::string_view name;    ///< with its article, as messages say it
  Bytes limit;              ///< of the text, after decompression
  std::string_view remedy;  ///< what to do about a larger one
};

const FileKindRow& row_of(FileKind kind);

}  // namespace tidemark
