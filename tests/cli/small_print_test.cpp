// What reports say beside their numbers: marks, notes and what was assumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/interrupted.h"
#include "tests/cli/program.h"

namespace tidemark::cli::small_print_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* launch_bound =
    "launch-bound: for more than a tenth of the step, the device waits for the host";

std::string answer_to(const std::string& line) {
  const Outcome outcome = tidemark(line);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome.output;
}

// One image: 3 ms of launches. 128 of a larger model: kernels of milliseconds.
TEST(SmallPrint, MarksTimesThatTheHostDecides) {
  const std::string small = answer_to("compare vit-ti-16 -b 1 --strategies vanilla"),
                    large = answer_to("compare vit-b-16 -b 128 --strategies vanilla");
  EXPECT_THAT(small, HasSubstr("  *3"));
  EXPECT_THAT(small, HasSubstr(std::string("\n* ") + launch_bound + "\n"));
  EXPECT_THAT(large, Not(HasSubstr("*")));
  EXPECT_THAT(large, Not(HasSubstr("launch-bound")));
}

// What was recorded is no prediction, and says so; of other steps and devices nothing was recorded.
TEST(SmallPrint, SaysWhatACaptureHasRecorded) {
  const std::string line =
      "compare " TIDEMARK_TESTS_DIR "/reference/captures/gpt2-fp32.trace.json.zst";
  const auto note = HasSubstr("note: allocated and reserved of vanilla repeat what the capture");
  EXPECT_THAT(tidemark(line).errors, note);
  const auto heading = HasSubstr(
      "All numbers are predicted but allocated and reserved of vanilla, which the capture has "
      "recorded.");
  for (const char* format : {"", " --format markdown", " --format html"}) {
    EXPECT_THAT(answer_to(line + format), heading) << format;
    EXPECT_THAT(answer_to(line + " --device h100" + format),
                HasSubstr("All numbers are predicted."))
        << format;
  }
  for (const char* format : {"", " --format markdown", " --format html"})
    EXPECT_THAT(answer_to(line + " --device a100-80gb,h100" + format),
                HasSubstr("but allocated and reserved of vanilla where the capture has recorded"))
        << format;
  EXPECT_THAT(tidemark(line + " --device h100").errors, Not(note));
  EXPECT_THAT(tidemark(line + " --accumulate 2").errors, Not(note));
}

// A step that is compiled as a whole has no blocks; Whisper reads sound and writes words.
TEST(SmallPrint, SaysHowManyTokensAStepHas) {
  const auto step = [](const std::string& options) {
    const std::string text = answer_to("compare " + options + " --strategies vanilla");
    const std::size_t begin = text.find("\nbatch") + 1;
    return text.substr(begin, text.find(" · ", begin) - begin);
  };
  EXPECT_EQ(step("gpt2 -b 2 -s 64 --framework torch-compile-2.6"), "batch 2 × 64 tokens");
  EXPECT_EQ(step("vit-ti-16 -b 2 --framework torch-compile-2.6"), step("vit-ti-16 -b 2"));
  EXPECT_EQ(step("whisper-small"), "batch 1 × 1500 tokens to 448");
  EXPECT_EQ(step("whisper-small --sequence 20"), "batch 1 × 1500 tokens to 20");
}

// The first strategy's search is finished, and the others' rows have all but that.
TEST(SmallPrint, SaysThatTheSearchForBatchesWasStopped) {
  const Outcome outcome = interrupted(
      "compare vit-ti-16 --budget 2GiB --strategies vanilla,checkpoint,mesa --max-batch "
      "--format csv",
      1);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("stopped: largest batches of the strategies so far\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nmesa,"));
}

TEST(SmallPrint, SaysWherePagedStatesAre) {
  EXPECT_THAT(
      answer_to("compare vit-ti-16 --optimizer paged-adamw-8bit --strategies vanilla"),
      HasSubstr("\nstates of paged-adamw-8bit lie in unified memory, outside of PyTorch's numbers: "
                "where they do not fit beside a step, all of them cross the host link to and "
                "fro\n"));
  EXPECT_THAT(answer_to("compare vit-ti-16 --optimizer adamw-8bit --strategies vanilla"),
              Not(HasSubstr("unified memory")));
}

TEST(SmallPrint, OfAPageHasEachNoteOnceWithItsStrategies) {
  const std::string page = answer_to(
      "compare vit-ti-16 -b 1 --strategies vanilla,checkpoint,reversible+mesa --format html");
  EXPECT_THAT(page, HasSubstr(std::string("<li><b>vanilla, checkpoint</b>: ") + launch_bound));
  EXPECT_THAT(page, HasSubstr("<li><b>reversible+mesa</b> does not apply: "));
}

TEST(SmallPrint, OfAPageSaysWhereRoomAndAllocatorCameFrom) {
  const std::string line = "compare vit-ti-16 --strategies vanilla --format html";
  const std::string usual = answer_to(line);
  EXPECT_THAT(usual, HasSubstr("Room for tensors: 78.9 GiB, the device&#39;s 79.3 GiB less 400 MiB "
                               "for the CUDA context."));
  EXPECT_THAT(usual, HasSubstr("caching allocator with its default settings."));
  EXPECT_THAT(usual,
              HasSubstr("cast, copied and kept: PyTorch 2.6, eager; transformers 4.53 to 4.57"));
  const std::string asked = answer_to(
      line + " --budget 2GiB --alloc-conf expandable_segments:True --framework torch-1.13");
  EXPECT_THAT(asked, HasSubstr("Room for tensors: 2.00 GiB, a budget."));
  EXPECT_THAT(asked, HasSubstr("caching allocator as set by --alloc-conf."));
  EXPECT_THAT(asked, HasSubstr("cast, copied and kept: PyTorch 1.11 to 1.13, eager ("));
}

TEST(SmallPrint, SaysThatNoBlockSavesAnything) {
  const Folder folder;
  write_text(folder / "sum.trace.json", R"({"format": "tidemark-trace", "version": 3, "loss": "l",
    "tensors": [{"name": "x", "shape": [2], "dtype": "float32", "category": "parameter",
                 "trainable": true},
                {"name": "l", "shape": [], "dtype": "float32", "category": "activation"}],
    "ops": [{"name": "o", "kind": "opaque", "inputs": ["x"], "outputs": ["l"],
             "row": {"operation": "sum", "gradients": ["in0"]}}]})");
  EXPECT_THAT(answer_to("compare --units --strategies vanilla " + (folder / "sum.trace.json")),
              HasSubstr("\nNo block saves activations.\n"));
}

TEST(SmallPrint, OfAModelHasThePrecisionOfItsWeights) {
  const Folder folder;
  const std::string config = R"({"model_type": "vit", "hidden_size": 48, "num_attention_heads": 2,)"
                             R"( "num_hidden_layers": 1, "intermediate_size": 96)";
  write_text(folder / "config.json", config + R"(, "torch_dtype": "bfloat16"})");
  EXPECT_THAT(answer_to("models " + (folder / "config.json") + " --format csv"),
              HasSubstr("\nprecision of its weights,bf16\n"));
  write_text(folder / "config.json", config + "}");
  EXPECT_THAT(answer_to("models " + (folder / "config.json") + " --format csv"),
              Not(HasSubstr("precision of its weights")));
}

TEST(SmallPrint, OfAFrameworkNamesItsOptimizersLoop) {
  EXPECT_THAT(answer_to("frameworks torch-2 --format csv"), HasSubstr("\noptimizer_form,foreach,"));
  EXPECT_THAT(answer_to("frameworks torch-1.10 --format csv"),
              HasSubstr("\noptimizer_form,for-loop,"));
}

}  // namespace
}  // namespace tidemark::cli::small_print_test
