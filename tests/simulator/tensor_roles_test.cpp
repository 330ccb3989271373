// Roles have stars for numbers, and a list of names is as short as the chosen tensors allow.
#include "simulator/tensor_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::tensor_roles_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Role, HasStarsForNumbers) {
  EXPECT_EQ(role_of("blocks.11.mlp.gelu"), "blocks.*.mlp.gelu");
  EXPECT_EQ(role_of("stages.0.blocks.12.attn"), "stages.*.blocks.*.attn");
  EXPECT_EQ(role_of("blocks.0.norm1.mean"), "blocks.*.norm1.mean");  // norm1 is a name
  EXPECT_EQ(role_of("loss"), "loss");
  EXPECT_EQ(role_of(""), "");
  EXPECT_EQ(role_of("a..7"), "a..*");
  EXPECT_EQ(role_of("7"), "*");
}

Trace trace_with(std::initializer_list<const char*> names) {
  Trace trace;
  for (const char* name : names) {
    Tensor& tensor = trace.tensors.emplace_back();
    tensor.name = trace.names.add(name);
  }
  return trace;
}

TensorId id(std::size_t t) { return static_cast<TensorId>(t); }

TEST(TensorRoles, FindANameOrWhatItsStarsStandFor) {
  const Trace trace = trace_with({"x", "s.0.b.0.y", "s.0.b.1.y", "s.1.b.0.y", "s.0.b.0.y.z"});
  const TensorRoles roles(trace);
  EXPECT_THAT(roles.find("x"), ElementsAre(id(0)));
  EXPECT_THAT(roles.find("s.0.b.1.y"), ElementsAre(id(2)));
  EXPECT_THAT(roles.find("s.*.b.*.y"), ElementsAre(id(1), id(2), id(3)));
  EXPECT_THAT(roles.find("s.0.b.*.y"), ElementsAre(id(1), id(2)));
  EXPECT_THAT(roles.find("s.*.b.0.y"), ElementsAre(id(1), id(3)));
  for (const char* unknown : {"", "*", "s.2.b.0.y", "s.2.b.*.y", "s.*", "*.0.b.0.y", "s.0.b.*"})
    EXPECT_THAT(roles.find(unknown), IsEmpty()) << unknown;
}

// Whoever calls a tensor so means that one.
TEST(TensorRoles, FindATensorThatIsCalledLikeARole) {
  const Trace trace = trace_with({"b.0", "b.*", "b.1"});
  const TensorRoles roles(trace);
  EXPECT_THAT(roles.find("b.*"), ElementsAre(id(1)));
  EXPECT_THAT(roles.names_for({true, false, true}), ElementsAre("b.0", "b.1"));
}

TEST(TensorRoles, NameAllOfARoleByTheRole) {
  const Trace trace = trace_with({"x", "b.0.y", "b.0.z", "b.1.y", "b.1.z", "only.3"});
  const TensorRoles roles(trace);
  EXPECT_THAT(roles.names_for({true, true, true, true, false, true}),
              ElementsAre("x", "b.*.y", "b.0.z", "only.3"));
  EXPECT_THAT(roles.names_for(std::vector<bool>(6)), IsEmpty());
}

}  // namespace
}  // namespace tidemark::tensor_roles_test
