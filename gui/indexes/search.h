// Finds ops and tensors by a part of their name, a slice of them per frame.
#pragma once

#include "gui/opened.h"

namespace tidemark::gui {

struct Hit {
  OpId op = no_op;
  TensorId tensor = no_tensor;  ///< if no op
};

class Search {
 public:
  static constexpr std::size_t most_listed = 200;

  /// In any case of letters; an empty text finds nothing.
  void look_for(std::shared_ptr<const Opened> opened, std::string_view text);
  /// Examines that many names. True when nothing is left to do.
  bool advance(std::size_t names);

  bool is_complete() const { return next_ == end_; }
  const std::vector<Hit>& hits() const { return hits_; }  ///< ops, then tensors; the first ones
  std::size_t count() const { return count_; }            ///< all

 private:
  std::shared_ptr<const Opened> opened_;
  std::string text_;
  std::size_t next_ = 0, end_ = 0, count_ = 0;
  std::vector<Hit> hits_;
};

}  // namespace tidemark::gui
