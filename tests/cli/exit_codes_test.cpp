// Whatever is wrong gets one line that says what, where and what next, and its exit code.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace tidemark::cli::exit_codes_test {
namespace {

struct Mistake {
  const char* arguments;
  int exit_code;
  const char* message;  // a part of it
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, GetOneLineAndTheirExitCode) {
  const Outcome outcome = tidemark(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code);
  EXPECT_EQ(outcome.output, "");
  EXPECT_NE(outcome.errors.find(GetParam().message), std::string::npos) << outcome.errors;
  EXPECT_TRUE(outcome.errors.starts_with("tidemark: ")) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Mistakes,
    testing::Values(
        Mistake{"", 2, "no command"}, Mistake{"compar vit-b-16", 2, "did you mean 'compare'?"},
        Mistake{"--format json compare vit-b-16", 2, "before the command"},
        Mistake{"--versio", 2, "unknown option '--versio' (did you mean '--version'?)"},
        Mistake{"compare", 2, "no model"}, Mistake{"allocator", 2, "no script"},
        Mistake{"trace", 2, "no model"},
        Mistake{"compare vit-b-16 --bacth 64", 2, "did you mean '--batch'?"},
        Mistake{"compare vit-b-16 --bacth=64", 2, "did you mean '--batch'?"},
        Mistake{"devices --batch 2", 2, "devices: unknown option '--batch'"},
        Mistake{"compare vit-b-16 swin-t", 2, "'swin-t' is one operand too many"},
        Mistake{"explain vit-b-16 loss more", 2, "'more' is one operand too many"},
        Mistake{"compare vit-b-16 --batch", 2, "--batch needs a value"},
        Mistake{"compare vit-b-16 --batch 1 --batch 2", 2, "--batch is given more than once"},
        Mistake{"trace vit-b-16 --info x.trace.json", 2, "one operand too many"},
        Mistake{"compare vit-b-16 --ema --no-ema", 2, "contradict each other"},
        Mistake{"explain vit-b-16 --saved loss", 2, "leave out"},
        Mistake{"explain vit-b-16 --block 3", 2, "--block says which block --graph shows"},
        Mistake{"explain gpt2 h.0.ln_1 --graph x.dot --block 1", 2,
                "--block 1 and 'h.0.ln_1': the graph of one or the other is shown"},
        Mistake{"diff", 2, "diff needs two files"},
        Mistake{"compare examples/toy/mlp.trace.json --max-batch", 2,
                "--max-batch cannot change the batch of 'examples/toy/mlp.trace.json'"},
        Mistake{"view gpt2 --size 640", 2, "--size: 640 is not a size (need WIDTHxHEIGHT)"},
        Mistake{"view gpt2 --in-window", 2, "--in-window needs a --script to play"},
        Mistake{
            "view gpt2 other.json", 2,
            "other.json: after the first operand only timeline files (.timeline.json) and memory "
            "snapshots may follow"},
        Mistake{"compare vit-b-16 -o report.pdf", 2,
                "'report.pdf': .pdf is not written here (write .html and print it"},
        Mistake{"compare vit-b-16 -o report.PNG", 2, ".png is not written here (write .svg"},
        Mistake{"models -o models.pdf", 2,
                ".pdf is no format that is written here (known: .json, .csv, .md;"},
        Mistake{"compare vit-b-16 -o report.dat", 2,
                ".dat is no format that is written here (known: .json, .csv, .md, "
                ".html, .svg; --format writes any of them to any name)"},
        Mistake{"trace gpt2 -o gpt2.csv", 2,
                "'gpt2.csv': the name of a trace file ends in .trace.json or .trace.json.zst"},
        Mistake{"calibrate --backend null -o here.csv", 2,
                "the name of a device file ends in .json"},
        Mistake{"models -o models.html", 2,
                "'models.html': html is not available here (known: table, json, csv"},
        Mistake{"explain vit-b-16 loss -o loss.svg", 2, "svg is not available here"},
        Mistake{"explain vit-b-16 --format csv", 2,
                "not available here (known: table, json, html"}));

INSTANTIATE_TEST_SUITE_P(
    Names, Mistakes,
    testing::Values(
        Mistake{"compare vit-b-17", 2, "unknown model 'vit-b-17' (did you mean 'vit-b-16'?"},
        Mistake{"compare vit-b-16 --strategies vanila", 2, "did you mean 'vanilla'?"},
        Mistake{"compare vit-b-16 --device rtx4090", 2, "did you mean 'rtx-4090'?"},
        Mistake{"compare vit-b-16 --device a100", 2, "did you mean 'a100-40gb'?"},
        Mistake{"compare bert-base --drop-path 0.1", 2, "bert-base has no paths to drop"},
        Mistake{"compare vit-b-16 --framework torch1.13", 2, "did you mean 'torch-1.13'?"},
        Mistake{"compare vit-b-16 --precision fp23", 2, "did you mean 'fp32'?"},
        Mistake{"compare vit-b-16 --attention flsh", 2, "did you mean 'flash'?"},
        Mistake{"compare vit-b-16 --optimizer adam", 2, "did you mean 'adamw'?"},
        Mistake{"compare vit-b-16 --tuning lara:r=4", 2, "did you mean 'lora'?"},
        Mistake{"compare vit-b-16 --format jsn", 2, "did you mean 'json'?"},
        Mistake{"compare vit-b-16 --color red", 2, "known: auto, always, never"},
        Mistake{"compare vit-b-16 --strategies checkpoint:sqrt,every=2", 2,
                "strategy 'checkpoint': sqrt and every=K contradict each other: sqrt chooses the "
                "length of the segments itself"},
        Mistake{"compare vit-b-16 --strategies checkpoint:every=2,selective", 2,
                "selective and every=K contradict each other"},
        Mistake{"compare vit-b-16 --strategies checkpoint:every=2,every=3", 2,
                "every=K is named twice"},
        Mistake{"explain vit-b-16 --strategies vanilla,mesa", 2,
                "--strategy: one at a time here, and 'vanilla,mesa' names 2"},
        Mistake{"compare vit-b-16 --strategy vanilla --strategies mesa", 2, "more than once"},
        Mistake{"help compar", 2, "did you mean 'compare'?"},
        Mistake{"help compare explain", 2, "'explain' is one operand too many"},
        Mistake{"explain vit-b-16 --strategy chekpoint", 2, "did you mean 'checkpoint'?"},
        Mistake{"explain vit-b-16 blocks.3.mlp.gelo", 2, "did you mean 'blocks.3.mlp.gelu'?"},
        Mistake{"explain vit-b-16 mlp", 2, "it is part of: blocks.0.mlp.fc1"},
        Mistake{"explain vit-b-16 blocks.3.attn", 2, "blocks.3.attn.flash.lse, "},
        Mistake{"explain vit-b-16 blocks.3.attn", 2, " and 8 more)"},
        Mistake{"explain vit-b-16 no_such_thing_at_all", 2, "(tidemark trace MODEL lists all)"},
        Mistake{"devices rtx4090", 2, "did you mean 'rtx-4090'?"},
        Mistake{"strategies messa", 2, "did you mean 'mesa'?"},
        Mistake{"frameworks papr", 2, "did you mean 'paper'?"},
        Mistake{"models gpt3", 2, "did you mean 'gpt2'?"}));

INSTANTIATE_TEST_SUITE_P(
    Values, Mistakes,
    testing::Values(
        Mistake{"compare vit-b-16 --batch 0", 2, "--batch: '0' is not a whole number from 1"},
        Mistake{"compare vit-b-16 --batch -5", 2, "--batch: '-5' is not a whole number from 1"},
        Mistake{"compare vit-b-16 --batch 1e3", 2, "--batch: '1e3' is not a whole number"},
        Mistake{"compare vit-b-16 --batch 99999999999999999999", 2, "is not a whole number"},
        Mistake{"compare vit-b-16 --batch 1000000000000", 1, "use a smaller batch"},
        Mistake{"compare gpt2 --sequence 0", 2, "--sequence: '0'"},
        Mistake{"compare gpt2 --sequence 2048", 2, "1024 learned positions"},
        Mistake{"compare gpt2 --image 224", 2, "--image does not apply to 'gpt2'"},
        Mistake{"compare vit-b-16 --sequence 8", 2, "--sequence does not apply to 'vit-b-16'"},
        Mistake{"compare vit-b-16 --dropout 1", 2, "--dropout: '1' is not a probability"},
        Mistake{"compare vit-b-16 --dropout nan", 2, "--dropout: 'nan' is not a probability"},
        Mistake{"compare vit-b-16 --budget 12x", 2, "--budget: '12x' is not a size"},
        Mistake{"compare vit-b-16 --budget 24", 2,
                "--budget: '24' has no unit (write for example 24GiB, or 24B for bytes)"},
        Mistake{"compare vit-b-16 --budget 0", 2, "--budget: nothing fits in 0 bytes"},
        Mistake{"compare vit-b-16 --alloc-conf max_split:1", 2, "max_split_size_mb"},
        Mistake{"compare vit-b-16 --strategies vanilla,,mesa", 2, "unknown strategy ''"},
        Mistake{"compare vit-b-16 --strategies checkpoint:every=0", 2, "1 or more"},
        Mistake{"compare vit-b-16 --strategies checkpoint:ever=2", 2, "did you mean 'every=K'?"},
        Mistake{"explain vit-b-16 --top -1", 2, "--top: '-1'"}));

INSTANTIATE_TEST_SUITE_P(
    Files, Mistakes,
    testing::Values(
        Mistake{"allocator no/such/file", 1, "no/such/file: cannot open: No such file"},
        Mistake{"trace --info no/such/file", 1, "no/such/file: cannot open: No such file"},
        Mistake{"compare no/such.trace.json", 1, "no/such.trace.json: cannot open"},
        Mistake{"compare vit-b-16 --device no/such.json", 1, "no/such.json: cannot open"},
        Mistake{"compare vit-b-16 -o no/such/file", 1, "no/such/file: cannot write"},
        Mistake{"compare README.md", 1, "README.md:1:"}));

TEST(ExitCode, IsZeroWhenNothingFitsAndFourOnlyOnRequest) {
  const std::string scenario = "compare vit-b-16 --strategies vanilla --budget 100MiB";
  EXPECT_EQ(tidemark(scenario).exit_code, 0);
  EXPECT_NE(tidemark(scenario).output.find("Vanilla does not fit in 100 MiB"), std::string::npos);
  EXPECT_EQ(tidemark(scenario + " --require-fit").exit_code, 4);
  EXPECT_EQ(tidemark("explain vit-b-16 --budget 100MiB --require-fit").exit_code, 4);
  EXPECT_EQ(tidemark("compare vit-b-16 --strategies vanilla --require-fit").exit_code, 0);
}

TEST(ExitCode, IsZeroForAStrategyThatDoesNotApply) {
  const Outcome outcome = tidemark("compare vit-b-16 --strategies vanilla,reversible+mesa");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("Does not apply:\n  reversible+mesa"), std::string::npos);
  EXPECT_EQ(tidemark("explain vit-b-16 --strategy reversible+mesa").exit_code, 0);
}

TEST(ExitCode, OfConfigsThatEndEarlyIsOneAtEveryByte) {
  const Folder folder;
  const std::string text =
      file_text(std::string(TIDEMARK_SOURCE_DIR) + "/examples/gpt2/config.json");
  for (std::size_t size = 0; size + 2 < text.size(); size += 97) {
    write_text(folder / "config.json", text.substr(0, size));
    const Outcome outcome = tidemark_with({"compare", folder / "config.json"});
    EXPECT_EQ(outcome.exit_code, 1) << size;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  }
}

TEST(ExitCode, IsOneWhereMemoryRunsOut) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer needs all addresses for itself";
  const Folder folder;
  write_text(folder / "large.trace.json", "");
  std::filesystem::resize_file(folder / "large.trace.json", 400 << 20);  // no disk is used
  const std::string script = std::string("ulimit -v 200000; exec ") + TIDEMARK_PROGRAM +
                             " trace --info " + (folder / "large.trace.json");
  const Outcome outcome = run_command({"/bin/bash", "-c", script});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "tidemark: out of memory (use a smaller model or trace)\n");
}

TEST(ExitCode, OfADeviceWithoutRoomIsTwo) {
  const Folder folder;
  std::string device = tidemark("devices t4 --format json").output;
  const std::size_t value = device.find("\"value\": ", device.find("\"capacity\"")) + 9;
  write_text(folder / "tiny.json",
             device.replace(value, device.find(',', value) - value, "2000000"));
  const Outcome outcome = tidemark_with({"compare", "vit-ti-16", "-d", folder / "tiny.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("leaves no memory for tensors"), std::string::npos)
      << outcome.errors;
}

// As of a shell's variable that is not set: nobody gets an error about a file without a name.
TEST(ExitCode, OfAnEmptyNameForTheOutputIsTwo) {
  const Outcome outcome = tidemark_with({"models", "-o", ""});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.errors,
            "tidemark: --output: the name is empty (leave the option out for standard output)\n");
}

TEST(ExitCode, OfNamesWithControlCharactersShowsNone) {
  const Outcome outcome = tidemark_with({"compare", "\x1b[31mred"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.errors.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace tidemark::cli::exit_codes_test
