// Makes the calls of a graph: what a call reads, casts, what is made once, and what is found again.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <map>

#include "simulator/compiled/fx_graph.h"

namespace tidemark {

class FxBuilder {
 public:
  FxBuilder(const Trace& trace, const FxRegion& region)
      : trace_(trace), region_(region), has_gradient_(requires_gradient(trace)) {
    graph_.by_tensor.assign(trace.tensors.size(), no_fx);
  }

 protected:
  static constexpr std::string_view casts = "convert_element_type";

  /// Calls are those of this op from here on.
  void begin(OpId op) {
    op_ = op;
    wanted_ = inputs_with_gradient(trace_, trace_[op], has_gradient_);
  }
  const Op& op() const { return trace_[op_]; }
  bool wants(int input) const { return (wanted_ >> input & 1) != 0; }
  bool wants_any() const { return wanted_ != 0; }
  bool has_input(int i) const { return i < op().inputs && operand(trace_, op(), i) != no_tensor; }
  const Tensor& output(int i) const { return trace_[operand(trace_, op(), 16 + i)]; }
  const FxNode& operator[](FxId id) const { return graph_[id]; }

  /// The op's i-th input, which is a graph's input or made here if no call made it.
  FxId input(int i);
  FxId full(double value, const Tensor& like) {
    return pointwise(fmt::format("full {}", value), {}, like.shape, like.dtype, "full");
  }

  /// Or what the same call made before, unless it is random.
  FxId add(std::string_view name, FxNode call);
  FxId pointwise(std::string_view name, std::initializer_list<FxId> reads, const Shape& shape,
                 DType dtype, std::string_view suffix = {}) {
    return add(name, {.kind = FxKind::Pointwise,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = reads,
                      .suffix = suffix.empty() ? name : suffix});
  }
  /// Of the first operand's shape and dtype.
  FxId pointwise(std::string_view name, std::initializer_list<FxId> reads,
                 std::string_view suffix = {}) {
    const FxNode& first = (*this)[*reads.begin()];
    return pointwise(name, reads, Shape(first.shape), first.dtype, suffix);
  }
  FxId cast(FxId x, DType dtype) {
    if ((*this)[x].dtype == dtype) return x;
    return pointwise(casts, {x}, Shape((*this)[x].shape), dtype);
  }
  FxId cast(FxId x, FxId as) { return cast(x, (*this)[as].dtype); }
  /// One number per row of x.
  FxId reduced(std::string_view name, FxId x, std::string_view suffix = {}) {
    return pointwise(name, {x}, (*this)[x].shape.with_back(1), (*this)[x].dtype, suffix);
  }
  FxId view(std::string_view name, FxId x, const Shape& shape) {
    return add(name, {.kind = FxKind::View,
                      .shape = shape,
                      .dtype = (*this)[x].dtype,
                      .reads = {x},
                      .suffix = "view"});
  }
  FxId kernel(std::string_view name, std::vector<FxId> reads, const Shape& shape, DType dtype,
              FxKind kind = FxKind::Kernel, std::string_view suffix = {}) {
    return add(name, {.kind = kind,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = std::move(reads),
                      .suffix = suffix});
  }
  FxId element(std::string_view name, FxId of, const Shape& shape, DType dtype) {
    return add(name, {.kind = FxKind::Element,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = {of},
                      .suffix = name == "mean" ? name : std::string_view()});
  }
  FxId random(const Shape& shape) {
    return add(
        "inductor_random",
        {.kind = FxKind::Kernel, .shape = shape, .suffix = "inductor_random", .is_random = true});
  }
  static Shape stacked(const Shape& s) {
    const std::int64_t rows = s[s.rank() - 2], matrix = rows * s.back();
    return {numel(s) / matrix, rows, s.back()};
  }
  FxId stacked(FxId x) { return view("view", x, stacked((*this)[x].shape)); }
  /// What is made meanwhile are calls of the backward, of forward values alone.
  template <typename Make>
  auto made_later(Make make) {
    is_later_ = true;
    const auto made = make();
    is_later_ = false;
    return made;
  }
  /// A call of the backward, of forward values alone.
  FxId later(std::string_view name, FxId x, DType dtype) {
    return made_later([&] { return pointwise(name, {x}, Shape((*this)[x].shape), dtype); });
  }
  /// In fp32, of an op whose backward widens it by itself.
  FxId widened_input();
  /// As a product of the backward reads it.
  FxId as_autocast_reads(FxId x);
  /// At the end: casts of casts that nobody else reads are one.
  void fold_casts();

  /// The op's backward reads it, fused or by a library's kernel.
  void read(FxId value) { graph_.backward.push_back({value, op_, false}); }
  void read_by_kernel(FxId value) { graph_.backward.push_back({value, op_, true}); }

  /// The op's i-th output.
  void make(int i, FxId value);
  /// So that calls of other attributes are other calls.
  std::string with_attributes(std::string name) const;

  const Trace& trace_;
  const FxRegion& region_;
  FxGraph graph_;

 private:
  FxId external(TensorId id);
  FxId made_here(const InputFill& fill, const Tensor& tensor);
  FxId last() const { return static_cast<FxId>(graph_.calls.size() - 1); }

  std::vector<std::uint8_t> has_gradient_;
  OpId op_{};
  std::uint32_t wanted_ = 0;
  bool is_later_ = false;
  std::vector<FxId> cast_again_;
  std::map<std::string, FxId> known_;
};

}  // namespace tidemark
