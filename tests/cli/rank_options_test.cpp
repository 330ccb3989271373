// A rank that is named where there is one stage, and traces of ranks, which say what the model's
// own step says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tidemark::cli::rank_options_test {
namespace {

TEST(NamedRank, OfOneStageChangesNothing) {
  const std::string line = "explain gpt2 -s 128 -b 1 --precision bf16 --strategy checkpoint";
  const Outcome plain = tidemark(line), named = tidemark(line + " --rank pp0");
  EXPECT_EQ(named.exit_code, 0);
  EXPECT_THAT(named.output, testing::HasSubstr(plain.output.substr(plain.output.find("\nfits"))));
}

// Its user buffers lie outside, as those of the model's own step do.
TEST(TraceOfARank, SaysOfUserBuffersWhatTheModelSays) {
  const Folder folder;
  write_text(folder / "config.json",
             R"({"model_type": "megatron-gpt", "num_layers": 2, "hidden_size": 64,
                 "num_attention_heads": 4, "vocab_size": 512, "max_position_embeddings": 64})");
  const std::string step =
      " -b 2 --precision bf16 --framework megatron --mesh tp=2 --sp --tp-overlap";
  const std::string config = folder / "config.json", trace = folder / "x.trace.json";
  const std::string rest = " --strategies vanilla --cluster dgx-h100 --format csv";
  ASSERT_EQ(tidemark("trace " + config + step + " --compute-capability 90 -o " + trace).exit_code,
            0);
  const Outcome of_model = tidemark("compare " + config + step + rest);
  const Outcome of_trace = tidemark("compare " + trace + rest);
  EXPECT_EQ(of_trace.exit_code, 0) << of_trace.errors;
  EXPECT_EQ(of_trace.output.substr(of_trace.output.find("\nvanilla")),
            of_model.output.substr(of_model.output.find("\nvanilla")));
}

TEST(TraceOfARank, SaysWhichStageItHoldsWhereNoneIsNamed) {
  const Folder folder;
  const std::string trace =
      "trace gpt2 -b 1 -s 16 --accumulate 2 --mesh pp=2 -o " + std::string(folder / "x.trace.json");
  const char* const line =
      "the step of pp0: a trace holds that of one stage (--rank names another)\n";
  EXPECT_THAT(tidemark(trace).errors, testing::HasSubstr(line));
  EXPECT_THAT(tidemark(trace + " --rank pp1").errors, testing::Not(testing::HasSubstr(line)));
}

TEST(NetworksOfMegatron, AreNotedUnderOtherRules) {
  const Folder folder;
  const std::string config = folder / "config.json";
  const std::string step = "compare " + config + " -b 1 --strategies vanilla";
  const auto note = [&](std::string_view framework) {
    return config + " is a network of Megatron-LM's, and " + std::string(framework) +
           " are rules for other code (take --framework megatron)\n";
  };
  for (const char* type : {"megatron-gpt", "megatron-core-bert"}) {
    write_text(config, R"({"num_layers": 1, "hidden_size": 64, "num_attention_heads": 4,
                           "vocab_size": 128, "model_type": ")" +
                           std::string(type) + "\"}");
    EXPECT_THAT(tidemark(step).output, testing::HasSubstr(note("transformers-4.57"))) << type;
    EXPECT_THAT(tidemark(step + " --framework megatron-local").output,
                testing::Not(testing::HasSubstr("rules for other code")));
  }
}

// Codes that one product of two reads as they lie, from compute capability 10.0 on.
TEST(TraceOfKernels, SaysOfWhichCapabilityTheyAreWhereNoneIsNamed) {
  const Folder folder;
  const std::string trace = "trace gpt2 -b 1 -s 16 -o " + std::string(folder / "x.trace.json");
  const char* const line =
      "kernels are those of compute capability 8.0 (--compute-capability names another)\n";
  EXPECT_THAT(tidemark(trace).errors, testing::StartsWith(line));
  EXPECT_THAT(tidemark(trace + " -q").errors, "");
  EXPECT_THAT(tidemark(trace + " --compute-capability 90").errors,
              testing::Not(testing::HasSubstr("capability")));
  EXPECT_THAT(tidemark(trace + " --framework torch-1.13").errors,
              testing::Not(testing::HasSubstr("capability")));
}

TEST(SavedTensors, AreThoseOfTheDevice) {
  const std::string saved =
      "explain gpt2 --saved --format json -b 1 -s 16 --precision bf16 --framework megatron "
      "--linears fp8 ";
  const std::string of_b200 = tidemark(saved + "--compute-capability 100").output;
  EXPECT_EQ(tidemark(saved + "--device b200").output, of_b200);
  EXPECT_EQ(tidemark(saved + "--cluster dgx-b200").output, of_b200);
  EXPECT_NE(tidemark(saved + "--device h100").output, of_b200);
}

// As a model's step of that device does.
TEST(TraceOfARank, AsksForUnitsThatItsLinearsNeed) {
  const Folder folder;
  const std::string trace = folder / "x.trace.json";
  const std::string step = " -b 1 -s 64 --precision bf16 --framework megatron --linears nvfp4";
  ASSERT_EQ(tidemark("trace llama-3.2-1b" + step + " -o " + trace).exit_code, 0);
  EXPECT_THAT(
      tidemark("compare " + trace + " --device a100-80gb").errors,
      testing::HasSubstr("--linears nvfp4: NVIDIA A100 SXM4 80 GB (compute capability 8.0) "
                         "has no units for such products (use --device b200, b300, gb200, gb300)"));
}

TEST(TraceOfARank, OfAPipelineWaitsForNobody) {
  const Folder folder;
  const std::string trace = folder / "x.trace.json";
  const std::string step = " -b 1 -s 16 --accumulate 2 --mesh pp=2 --rank pp1";
  ASSERT_EQ(tidemark("trace gpt2" + step + " -o " + trace).exit_code, 0);
  const std::string words = "its time has no waits for others (name the model for those)";
  EXPECT_THAT(tidemark("compare " + trace + " --strategies vanilla").output,
              testing::HasSubstr(words));
  EXPECT_THAT(tidemark("compare gpt2 --strategies vanilla" + step).output,
              testing::Not(testing::HasSubstr(words)));
}

TEST(FurtherTokens, AreSaidToBeMegatrons) {
  const Folder folder;
  const std::string config = folder / "config.json";
  write_text(config, R"({"model_type": "megatron-gpt", "num_layers": 2, "hidden_size": 64,
                         "num_attention_heads": 4, "vocab_size": 512, "mtp_num_layers": 2,
                         "max_position_embeddings": 64})");
  const std::string line = "compare " + config + " --strategies vanilla --cluster dgx-h100";
  const std::string words = "(2) are trained with --framework megatron alone";
  EXPECT_THAT(tidemark(line).output, testing::HasSubstr(words));
  EXPECT_THAT(tidemark(line + " --framework megatron").output,
              testing::Not(testing::HasSubstr(words)));
}

TEST(Search, RefusesOptionsThatCompareRefuses) {
  const Outcome outcome =
      tidemark("search llama-3.2-1b --framework megatron --liger --gpus 8 --cluster dgx-h100");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, testing::HasSubstr("--liger: Liger patches transformers' code"));
}

TEST(Search, TriesShardingsOfTheFrameworkAlone) {
  const Outcome outcome = tidemark(
      "search llama-3-8b -s 512 --framework torchtitan --precision bf16 --gpus 8 --cluster "
      "dgx-h100 "
      "--format csv --strategies checkpoint");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, testing::HasSubstr("fsdp2"));
  for (const char* other : {"zero", ",megatron"})
    EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr(other)));
}

}  // namespace
}  // namespace tidemark::cli::rank_options_test
