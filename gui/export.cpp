#include "gui/export.h"

#include "simulator/export/chrome_trace.h"
#include "simulator/export/pictures.h"
#include "traces/files.h"
#include "traces/quoted.h"

namespace tidemark {

void write_export(const std::string& path, const Opened& opened) {
  if (path.ends_with(".svg")) return write_file(path, memory_svg(opened.recording));
  if (path.ends_with(".chrome.json")) return write_file(path, chrome_trace({&opened.recording, 1}));
  if (path.ends_with(".timeline.json") || path.ends_with(".timeline.json.zst"))
    return write_recording(path, opened.recording);
  throw UsageError(quoted(path) +
                   ": unknown kind of file (known: .png, .svg, .chrome.json, .timeline.json, "
                   ".timeline.json.zst)");
}

}  // namespace tidemark
