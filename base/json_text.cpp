// Names are nearly always plain and copied as they are; the JSON library escapes the others.
#include "base/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tidemark {
namespace {

bool needs_no_escape(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  if (!std::ranges::all_of(text, needs_no_escape)) {
    using nlohmann::json;
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return;
  }
  out.append(1, '"').append(text).append(1, '"');
}

std::string json_text(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

}  // namespace tidemark
