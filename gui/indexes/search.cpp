// Looks for a part of each name without regard to case, ops first, then tensors.
#include "gui/indexes/search.h"

#include <algorithm>

namespace tidemark::gui {
namespace {

// Names are ASCII; letters beyond are compared as they are.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool has_part(std::string_view name, std::string_view part) {
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == b; }) != name.end();
}

}  // namespace

void Search::look_for(std::shared_ptr<const Opened> opened, std::string_view text) {
  std::string wanted(text);
  std::ranges::transform(wanted, wanted.begin(), lower);
  if (opened == opened_ && wanted == text_) return;
  opened_ = std::move(opened);
  text_ = std::move(wanted);
  next_ = count_ = 0;
  hits_.clear();
  // Ops first, then tensors, in one row of numbers: a slice may end anywhere.
  end_ = text_.empty() ? 0 : opened_->trace().ops.size() + opened_->trace().tensors.size();
}

bool Search::advance(std::size_t names) {
  if (is_complete()) return true;
  const Trace& trace = opened_->trace();
  for (const std::size_t stop = std::min(end_, next_ + names); next_ < stop; ++next_) {
    const bool is_op = next_ < trace.ops.size();
    const std::size_t tensor = next_ - trace.ops.size();
    if (!has_part(is_op ? trace.ops[next_].name : trace.tensors[tensor].name, text_)) continue;
    ++count_;
    if (hits_.size() == most_listed) continue;
    hits_.push_back(is_op ? Hit{static_cast<OpId>(next_), no_tensor}
                          : Hit{no_op, static_cast<TensorId>(tensor)});
  }
  return is_complete();
}

}  // namespace tidemark::gui
