// The colours of ops agree with what the table of ops says of them.
#include "gui/drawing/kind_class.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tidemark::gui::kind_class_test {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The row of an op knows whether it multiplies matrices or goes to other ranks, and its name says
// what family it is of.
KindClass expected(const OpRow& row) {
  const std::string_view name = row.name;
  if (row.work == Work::Opaque) return KindClass::Opaque;
  if (row.work == Work::Exchange || is_one_of(name, {"replicate", "scatter", "receive"}))
    return KindClass::Data;
  if (name.find("attention") != name.npos || is_one_of(name, {"softmax", "rope", "repeat_heads"}))
    return KindClass::Attention;
  if (is_product(row.work)) return KindClass::Matrix;
  if (name.ends_with("_norm")) return KindClass::Norm;
  if (name.ends_with("_loss") || name == "log_softmax") return KindClass::Loss;
  if (name.find("elu") != name.npos || name.find("silu") != name.npos ||
      is_one_of(name, {"tanh", "sigmoid"}))
    return KindClass::Activation;
  if (is_one_of(name, {"view", "select", "split", "copy", "concat", "embedding", "mean_pool",
                       "max_pool"}))
    return KindClass::Data;
  return KindClass::Elementwise;
}

TEST(KindClass, IsWhatTheTableOfOpsSays) {
  for (const OpRow& row : op_rows) EXPECT_EQ(class_of(row.value), expected(row)) << row.name;
}

// Eight names, eight colours, and each is in use.
TEST(KindClass, HasAColourOfItsOwn) {
  std::set<std::uint32_t> colours;
  std::set<std::string_view> names;
  std::set<KindClass> used;
  for (const KindClassRow& row : kind_classes) {
    colours.insert(std::uint32_t{row.color.red} << 16 | std::uint32_t{row.color.green} << 8 |
                   row.color.blue);
    names.insert(row.name);
  }
  for (const OpRow& row : op_rows) used.insert(class_of(row.value));
  EXPECT_EQ(colours.size(), kind_classes.size());
  EXPECT_EQ(names.size(), kind_classes.size());
  EXPECT_EQ(used.size(), kind_classes.size());
}

}  // namespace
}  // namespace tidemark::gui::kind_class_test
