// What must hold for lines of code: each is named by an op, in that order, and none stands twice.
#include "base/name_index.h"
#include "traces/trace_check.h"

namespace tidemark {

void check_lines(const Trace& trace, Defects& defects) {
  std::size_t named = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const LineId line = trace.ops[i].line;
    if (line == no_line) continue;
    if (index(line) > named || index(line) >= trace.lines.size())
      return defects.add(pointer_to("ops", i, "/line"),
                         "found line number {} of {}; need at most {}", index(line),
                         trace.lines.size(), named);
    if (index(line) == named) ++named;
  }
  if (named < trace.lines.size())
    return defects.add("/ops", "{} of {} lines of code are named by no op",
                       trace.lines.size() - named, trace.lines.size());
  NameIndex known;
  for (std::size_t i = 0; i < trace.lines.size(); ++i)
    if (trace.lines[i].empty() || known.add(trace.lines[i]) != i)
      return defects.add("/ops", "line of code {} is {}; need a text of its own", i,
                         trace.lines[i].empty() ? "empty" : "there twice");
}

}  // namespace tidemark
