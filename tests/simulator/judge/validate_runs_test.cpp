// The judge is judged: each rule about work is broken once in a small schedule.
#include "tests/simulator/judge/judged_example.h"

namespace tidemark::validate_runs_test {
namespace {

using testing::IsEmpty;

// --- rule 6: each piece of work once ------------------------------------------------------------

TEST(Validate, NoticesAForwardThatRunsTwice) {
  Example e;
  e.repeat(e.run(Task::Forward, "drop"));
  EXPECT_COMPLAINT(e, "(forward of drop): runs again or out of order");
}

TEST(Validate, NoticesAForwardThatDoesNotRun) {
  Example e;
  e.erase(e.run(Task::Forward, "drop"));
  EXPECT_COMPLAINT(e, "drop did not run");
}

TEST(Validate, NoticesARecomputationOfWhatHasNotRun) {
  Example e;
  e.at(e.run(Task::Forward, "drop")).task = Task::Recompute;
  EXPECT_COMPLAINT(e, "(recompute of drop): has not run a first time");
}

TEST(Validate, NoticesASecondSeedAndNone) {
  Example e;
  e.repeat(e.run(Task::Seed, "loss"));
  EXPECT_COMPLAINT(e, "(seed of loss): runs again");
  e.erase(e.run(Task::Seed, "loss")), e.erase(e.run(Task::Seed, "loss"));
  EXPECT_COMPLAINT(e, "the seed did not run");
}

TEST(Validate, NoticesABackwardThatRunsTwiceOrNot) {
  Example e;
  e.repeat(e.run(Task::Backward, "drop"));
  EXPECT_COMPLAINT(e, "(backward of drop): runs again");
  e.erase(e.run(Task::Backward, "drop")), e.erase(e.run(Task::Backward, "drop"));
  EXPECT_COMPLAINT(e, "the backward of drop did not run");
}

TEST(Validate, NoticesABackwardOfAnOpWhoseGradientIsAnAlias) {
  Example e;
  e.at(e.run(Task::Backward, "drop")).op = op_named(e.trace, "add");
  EXPECT_COMPLAINT(e, "(backward of add): has no gradient to write");
}

TEST(Validate, NoticesARunOfAView) {
  Example e;
  e.trace = small_trace();
  e.plan = keep_everything(e.trace);
  e.lower_again();
  e.at(e.run(Task::Forward, "head")).op = op_named(e.trace, "flat");
  EXPECT_COMPLAINT(e, "(forward of flat): is a view; nothing runs");
}

TEST(Validate, NoticesAParameterThatIsNotUpdatedOrTwice) {
  Example e;
  const std::size_t step = e.run(Task::Optimizer, "");
  e.repeat(step);
  EXPECT_COMPLAINT(e, "updates fc.weight again");
  e.erase(step), e.erase(step);
  EXPECT_COMPLAINT(e, "fc.weight was not updated");
}

// --- rule 7: the right operands -----------------------------------------------------------------

TEST(Validate, NoticesAWrongInput) {
  Example e;
  e.read(e.run(Task::Forward, "gelu"), 0) = BufferId{0};  // x
  EXPECT_COMPLAINT(e, "(forward of gelu): does not read the value of fc");
  EXPECT_COMPLAINT(e, "(forward of gelu): reads value of x (buffer 0) for nothing");
}

TEST(Validate, NoticesAWrongOutput) {
  Example e;
  e.written(e.run(Task::Forward, "gelu")) = e.written(e.run(Task::Forward, "fc"));
  EXPECT_COMPLAINT(e, "(forward of gelu): does not write its value of gelu");
}

TEST(Validate, NoticesAnIncompleteGradient) {
  Example e;
  e.erase(e.run(Task::Accumulate, "gelu"));
  EXPECT_COMPLAINT(e, "(backward of fc): does not read the complete gradient of fc");
}

TEST(Validate, NoticesAContributionThatIsAddedTwice) {
  Example e;
  e.repeat(e.run(Task::Accumulate, "gelu"));
  EXPECT_COMPLAINT(e, "(backward of fc): does not read the complete gradient of fc");
}

/// h + gelu(h) + tanh(h), summed from the left: all branches get the same gradient, in one memory.
Trace branches() {
  TraceBuilder b("branches", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId h = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  const TensorId sum = b.add("add1", h, b.gelu("gelu", h));
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  return b.finish(b.cross_entropy("loss", b.add("add2", sum, b.tanh("tanh", h)), targets));
}

// Whoever adds to that memory too early spoils it for the next reader.
TEST(Validate, NoticesAnAliasedGradientThatIsAddedToWhileItIsStillRead) {
  Example e;
  e.trace = branches();
  e.plan = keep_everything(e.trace);
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
  const std::size_t sum = e.run(Task::Accumulate, "add1");
  const BufferId of_h = e.written(sum);
  const BufferId shared = e.read(sum, 0) == of_h ? e.read(sum, 1) : e.read(sum, 0);
  e.written(sum) = shared;
  EXPECT_COMPLAINT(e, "(backward of gelu): does not read the complete gradient of gelu");
}

// a + b, twice: the gradients of a and of b are equal sums in memories named after others.
TEST(Validate, AcceptsASumThatIsTheGradientOfTwoInputs) {
  TraceBuilder b("twins", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId h = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  const TensorId a = b.tanh("tanh", h);
  const TensorId inner = b.add("add2", h, b.gelu("gelu", b.add("add1", a, h)));
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  Example e;
  e.trace = b.finish(b.cross_entropy("loss", b.add("add3", a, inner), targets));
  e.plan = keep_everything(e.trace);
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
}

TEST(Validate, NoticesASumOfGradientsOfDifferentTensors) {
  Example e;
  e.read(e.run(Task::Accumulate, "gelu"), 0) = e.written(e.run(Task::Backward, "fc"));
  EXPECT_COMPLAINT(e, "adds up what are no parts of one input's gradient");
}

// Gradients that outlive the step begin as zeros, and so does what an optimizer remembers.
TEST(Validate, NoticesAStateThatIsAddedToItsGradient) {
  Example e;
  e.trace.step.framework = "torch-1.13";
  e.lower_again();
  ASSERT_THAT(e.judged(), IsEmpty());
  const std::size_t step = e.run(Task::Accumulate, "fc");
  const TensorId parameter = e.schedule[e.written(step)].tensor;
  BufferId& read = e.schedule[e.read(step, 0)].persistent ? e.read(step, 0) : e.read(step, 1);
  for (std::size_t b = 0; b < e.schedule.buffers.size(); ++b)
    if (e.schedule.buffers[b].role == Role::OptimizerState &&
        e.schedule.buffers[b].tensor == parameter)
      read = static_cast<BufferId>(b);
  EXPECT_COMPLAINT(e, "adds up what are no parts of one input's gradient");
}

TEST(Validate, NoticesABackwardWithoutWhatItNeeds) {
  Example e;
  e.read(e.run(Task::Backward, "gelu"), 1) = BufferId{0};
  EXPECT_COMPLAINT(e, "(backward of gelu): does not read the value of fc");
}

TEST(Validate, NoticesAGradientInAnotherTensorsMemory) {
  Example e;
  const std::size_t step = e.run(Task::Backward, "fc");
  std::swap(e.written(step, 0), e.written(step, 1));  // dW and db by their names, so harmless
  EXPECT_THAT(e.judged(), IsEmpty());
  e.written(step, 0) = e.written(e.run(Task::Backward, "gelu"));
  EXPECT_COMPLAINT(e, "(backward of fc): does not write its gradient of fc.bias");
}

TEST(Validate, NoticesAnUpdateFromAnotherGradient) {
  Example e;
  const std::size_t step = e.run(Task::Optimizer, "");
  e.read(step, 1) = e.read(step, 0);
  EXPECT_COMPLAINT(e, "(optimizer): does not read the complete gradient of fc.bias");
}

TEST(Validate, NoticesAnUpdateWithoutItsState) {
  Example e;
  e.written(e.run(Task::Optimizer, ""), 1) = e.written(e.run(Task::Optimizer, ""), 0);
  EXPECT_COMPLAINT(e, "(optimizer): does not write its optimizer state of fc.weight");
}

/// The output of `fc` in eight bits; a product reads it.
struct CodesOfAProduct : Example {
  CodesOfAProduct() {
    TraceBuilder b("codes", "toy", {.batch = 2, .precision = Precision::Fp32});
    const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
    const TensorId targets = b.input("targets", {2}, DType::Int64);
    trace = b.finish(b.cross_entropy("loss", b.linear("fc2", x, 4), targets));
    plan = keep_everything(trace);
    decide(plan, x, Action::Quantize, "to test");
    lower_again();
  }
};

TEST(Validate, NoticesWrongCodes) {
  CodesOfAProduct e;
  EXPECT_THAT(e.judged(), IsEmpty());
  e.read(e.run(Task::Dequantize, "fc"), 0) = BufferId{0};
  EXPECT_COMPLAINT(e, "(dequantize of fc): reads no codes");
}

TEST(Validate, NoticesRangesOfSomethingElse) {
  CodesOfAProduct e;
  const BufferId ranges = e.read(e.run(Task::Dequantize, "fc"), 1);
  ASSERT_EQ(e.schedule[ranges].role, Role::Ranges);
  e.read(e.run(Task::Dequantize, "fc"), 1) = BufferId{0};
  EXPECT_COMPLAINT(e, "(dequantize of fc): does not read the ranges of codes of fc");
}

// Eight elements of 8 bits are eight bytes, and one group has 16.
TEST(Validate, NoticesCodesAndRangesThatDoNotFit) {
  CodesOfAProduct few;
  const BufferId codes = few.read(few.run(Task::Dequantize, "fc"), 0);
  few.schedule.buffers[index(codes)].size.count /= 2;
  EXPECT_THAT(few.judged(), testing::Contains(testing::HasSubstr("has 4 bytes; need 8")));
  CodesOfAProduct many;
  const BufferId ranges = many.read(many.run(Task::Dequantize, "fc"), 1);
  many.schedule.buffers[index(ranges)].size.count *= 2;
  EXPECT_THAT(many.judged(), testing::Contains(testing::HasSubstr("has 32 bytes; need 16")));
}

TEST(Validate, NoticesCodesThatTheOpCannotDecode) {
  CodesOfAProduct e;
  const BufferId codes = e.read(e.run(Task::Dequantize, "fc"), 0);
  const std::size_t backward = e.run(Task::Backward, "fc2");
  const BufferId value = e.written(e.run(Task::Dequantize, "fc"));
  for (std::size_t i = 0; i < e.at(backward).reads; ++i)
    if (e.read(backward, i) == value) e.read(backward, i) = codes;
  EXPECT_COMPLAINT(e, "(backward of fc2): does not read the value of fc");
}

// Eight elements and one magnitude. No backward decodes floats while it loads.
TEST(Validate, NoticesFloatsThatDoNotFit) {
  Example e;
  quantize(e.plan, tensor_named(e.trace, "fc"), float8_encoding_of_tensor(), "to test");
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
  const BufferId codes = e.read(e.run(Task::Dequantize, "fc"), 0);
  const std::size_t backward = e.run(Task::Backward, "gelu");
  const BufferId value = e.written(e.run(Task::Dequantize, "fc"));
  for (std::size_t i = 0; i < e.at(backward).reads; ++i)
    if (e.read(backward, i) == value) e.read(backward, i) = codes;
  EXPECT_COMPLAINT(e, "(backward of gelu): does not read the value of fc");
  e.schedule.buffers[index(codes)].size.count -= 4;
  EXPECT_THAT(e.judged(), testing::Contains(testing::HasSubstr("has 8 bytes; need 12")));
}

// An activation's backward decodes while it loads, but not the codes of another tensor.
TEST(Validate, AcceptsTheCodesOfAnOpThatDecodes) {
  Example e;
  decide(e.plan, tensor_named(e.trace, "fc"), Action::Quantize, "to test");
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
  const std::size_t backward = e.run(Task::Backward, "gelu");
  const BufferId codes = e.written(e.run(Task::Quantize, "fc"));
  ASSERT_EQ(e.read(backward, 1), codes);
  e.schedule.buffers[index(codes)].tensor = tensor_named(e.trace, "gelu");
  EXPECT_THAT(e.judged(), testing::Not(IsEmpty()));
}

TEST(Validate, NoticesAnUnfitBuffer) {
  Example e;
  e.schedule.buffers[index(e.written(e.run(Task::Forward, "gelu")))].size.count -= 1;
  EXPECT_COMPLAINT(e, "value of gelu (buffer 7) has 31 bytes; need 32");
}

TEST(Validate, NoticesAnInverseOfWhatIsNoCoupling) {
  Example e;
  const std::size_t step = e.run(Task::Forward, "add");
  e.at(step).task = Task::Reconstruct;
  EXPECT_COMPLAINT(e, "(reconstruct of add): does not read the value of add");
  e.at(step).op = op_named(e.trace, "gelu");
  EXPECT_COMPLAINT(e, "(reconstruct of gelu): is not the add of a coupling");
}

// --- rule 8: randomness -------------------------------------------------------------------------

TEST(Validate, NoticesARandomOpThatRunsAgainWithoutItsKey) {
  Example e;
  e.plan.regions = {{op_named(e.trace, "drop"), op_named(e.trace, "drop"),
                     op_named(e.trace, "loss.log_softmax"), 0}};
  decide(e.plan, tensor_named(e.trace, "drop.mask"), Action::Recompute, "to test");
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
  e.trace.ops[index(op_named(e.trace, "drop"))].rng_key = 0;
  EXPECT_COMPLAINT(e, "(recompute of drop): is random without a key; it cannot run again");
}

}  // namespace
}  // namespace tidemark::validate_runs_test
