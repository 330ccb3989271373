// A search in parts, on whatever starts them, gives what one run gives; stopped ones go on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/interrupted.h"
#include "tests/cli/program.h"

namespace tidemark::cli::search_command_test {
namespace {

// A network of four small blocks on four GPUs: some hundred layouts.
constexpr const char* small_config =
    R"({"model_type": "gpt2", "n_embd": 32, "n_head": 4, "vocab_size": 64, "n_positions": 16, )"
    R"("n_layer": 4})";
constexpr const char* search_line =
    "search config.json --gpus 4 --cluster dgx-h100 --global-batch 8 --top 4 --strategies "
    "vanilla,checkpoint";

class SearchParts : public testing::Test {
 protected:
  SearchParts() {
    write_text(folder_ / "config.json", small_config);
    around_.folder = folder_.path();
  }

  Outcome run(const std::string& line) { return tidemark(line, around_); }

  std::string one_run() {
    const Outcome outcome = run(std::string(search_line) + " --format json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }

  void run_part(int part, int parts, const std::string& records = "r.jsonl") {
    const Outcome outcome =
        run(fmt::format("{} --part {}/{} --records {}", search_line, part, parts, records));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }

  std::string merged(const std::vector<std::string>& files) {
    const Outcome outcome =
        run(fmt::format("search merge {} --format json", fmt::join(files, " ")));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }

  static std::vector<std::string> names(int parts) {
    std::vector<std::string> files;
    for (int part = 1; part <= parts; ++part)
      files.push_back(fmt::format("r.{}-of-{}.jsonl", part, parts));
    return files;
  }

  std::string text(const std::string& name) { return file_text(folder_ / name); }

  // With what starts tasks, if this machine has it.
  Outcome shell(const std::string& line) {
    const std::string program = TIDEMARK_PROGRAM;
    Surroundings around = around_;
    around.environment.push_back(
        fmt::format("PATH=/usr/local/bin:/usr/bin:/bin:{}", program.substr(0, program.rfind('/'))));
    around.environment.emplace_back("HOME=" + folder_.path().string());
    return run_command({"/bin/sh", "-c", line}, around);
  }

  Folder folder_;
  Surroundings around_;
};

TEST_F(SearchParts, OneAndSevenOfThemGiveWhatOneRunGives) {
  const std::string expected = one_run();
  run_part(1, 1);
  EXPECT_EQ(merged({"r.jsonl"}), expected);
  for (int part = 7; part >= 1; --part) run_part(part, 7);
  std::vector<std::string> files = names(7);
  EXPECT_EQ(merged(files), expected);
  std::rotate(files.begin(), files.begin() + 3, files.end());
  files.push_back(files.front());  // one twice
  EXPECT_EQ(merged(files), expected);
}

// A program whose file differs by a byte, as another build's does, takes up and unites nothing.
TEST_F(SearchParts, OfAnotherBuildAreRefused) {
  run_part(1, 1);
  const std::string other = folder_ / "other";
  std::filesystem::copy_file(TIDEMARK_PROGRAM, other);
  std::ofstream(other, std::ios::app) << 'x';
  for (const std::string& line :
       {std::string("search merge r.jsonl"), fmt::format("{} --records r.jsonl", search_line)}) {
    const Outcome outcome = shell(fmt::format("./other {}", line));
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
    EXPECT_NE(outcome.errors.find("r.jsonl: is of tidemark "), std::string::npos) << outcome.errors;
  }
}

TEST_F(SearchParts, GoOnWhereTheyWere) {
  run_part(1, 1);
  const std::string whole = text("r.jsonl");
  run_part(1, 1);
  EXPECT_EQ(text("r.jsonl"), whole);
  // Torn in the middle of a row.
  write_text(folder_ / "r.jsonl", whole.substr(0, whole.size() / 2));
  run_part(1, 1);
  EXPECT_EQ(text("r.jsonl"), whole);
  write_text(folder_ / "r.jsonl", whole.substr(0, 10));
  run_part(1, 1);
  EXPECT_EQ(text("r.jsonl"), whole);
}

TEST_F(SearchParts, AreMissedByTheirNumbers) {
  run_part(2, 3);
  const Outcome outcome = run("search merge r.2-of-3.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "tidemark: of 3 parts these are missing: 1, 3\n");
}

TEST_F(SearchParts, ThatWereStoppedAreNotMerged) {
  run_part(1, 1);
  const std::string whole = text("r.jsonl");
  write_text(folder_ / "r.jsonl", whole.substr(0, whole.size() - 1));
  const Outcome outcome = run("search merge r.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors,
            "tidemark: r.jsonl: was stopped before its end (run it again: it goes on)\n");
}

TEST_F(SearchParts, OfAnotherSearchAreRefused) {
  run_part(1, 1);
  Outcome outcome = run("search config.json --gpus 2 --cluster dgx-h100 --records r.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("has the records of another search"), std::string::npos)
      << outcome.errors;
  std::string other = small_config;
  other.replace(other.find("64"), 2, "96");
  write_text(folder_ / "config.json", other);
  outcome = run("search merge r.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("is another one here"), std::string::npos) << outcome.errors;
}

TEST_F(SearchParts, AreKeptInNoOtherFile) {
  for (const char* other : {"my notes", "my notes\n", "{\"format\": 1"}) {
    write_text(folder_ / "notes.txt", other);
    const Outcome outcome = run(std::string(search_line) + " --records notes.txt");
    EXPECT_EQ(outcome.exit_code, 1) << other;
    EXPECT_EQ(text("notes.txt"), other);
  }
  write_text(folder_ / "notes.txt", "my notes");
  EXPECT_EQ(run(std::string(search_line) + " --records notes.txt").errors,
            "tidemark: notes.txt: holds no search (name another file)\n");
  for (const char* path : {"/dev/null", ".", "r.jsonl.zst"}) {
    const Outcome outcome = run(fmt::format("{} --records {}", search_line, path));
    EXPECT_EQ(outcome.exit_code, 1) << path;
    EXPECT_TRUE(outcome.errors.starts_with(fmt::format("tidemark: {}: is ", path)))
        << outcome.errors;
  }
}

TEST_F(SearchParts, AreMergedAsTheirFilesSay) {
  run_part(1, 1);
  for (const char* option : {"--top 3", "--batch 1", "--part 1/2", "--gpus 8"}) {
    const Outcome outcome = run(fmt::format("search merge r.jsonl {}", option));
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_NE(outcome.errors.find("asks what its files say (leave --"), std::string::npos)
        << outcome.errors;
  }
  EXPECT_EQ(run("search merge r.jsonl --require-fit --color never").exit_code, 0);
}

TEST_F(SearchParts, DoNotMoveTheCursor) {
  run_part(1, 1);
  std::string whole = text("r.jsonl");
  const std::string unit = R"("throughput_unit":")";
  whole.insert(whole.find(unit) + unit.size(), R"(\u001b[2J)");
  write_text(folder_ / "r.jsonl", whole);
  const Outcome outcome = run("search merge r.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("/throughput_unit"), std::string::npos) << outcome.errors;
  EXPECT_EQ(outcome.errors.find('\x1b'), std::string::npos);
}

TEST_F(SearchParts, OfTasksThatAreNotCountedOneByOneAreRefused) {
  const std::vector<std::string> task = {"SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_COUNT=9",
                                         "SLURM_ARRAY_TASK_MIN=1"};
  const std::array<std::vector<std::string>, 2> more = {
      {{"SLURM_ARRAY_TASK_STEP=2"}, {"SLURM_PROCID=1", "SLURM_NTASKS=4"}}};
  for (const auto& variables : more) {
    Surroundings around = around_;
    around.environment.insert(around.environment.end(), task.begin(), task.end());
    around.environment.insert(around.environment.end(), variables.begin(), variables.end());
    const Outcome outcome =
        tidemark(std::string(search_line) + " --part auto --records r.jsonl", around);
    EXPECT_EQ(outcome.exit_code, 2) << variables.front();
    EXPECT_NE(outcome.errors.find("give --part I/N"), std::string::npos) << outcome.errors;
  }
}

TEST_F(SearchParts, AreThoseOfTheTask) {
  struct Task {
    std::vector<std::string> variables;
    const char* file;
  };
  const std::array tasks = {
      Task{{"SLURM_ARRAY_TASK_ID=6", "SLURM_ARRAY_TASK_COUNT=9", "SLURM_ARRAY_TASK_MIN=5"},
           "r.2-of-9.jsonl"},
      Task{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=9"}, "r.1-of-9.jsonl"},
      Task{{"PMI_RANK=8", "PMI_SIZE=9"}, "r.9-of-9.jsonl"},
      Task{{"SLURM_PROCID=3", "SLURM_NTASKS=9"}, "r.4-of-9.jsonl"}};
  for (const Task& task : tasks) {
    Surroundings around = around_;
    around.environment.insert(around.environment.end(), task.variables.begin(),
                              task.variables.end());
    const Outcome outcome =
        tidemark(std::string(search_line) + " --part auto --records r.jsonl", around);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_TRUE(std::filesystem::exists(folder_ / task.file)) << task.file;
  }
  const Outcome outcome = run(std::string(search_line) + " --part auto --records r.jsonl");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("give --part 1/7"), std::string::npos) << outcome.errors;
}

TEST_F(SearchParts, AreReadWithCare) {
  for (const char* part : {"0/3", "4/3", "1", "1/", "/2", "a/b", "1/2x"}) {
    const Outcome outcome = run(fmt::format("{} --part {} --records r.jsonl", search_line, part));
    EXPECT_EQ(outcome.exit_code, 2) << part;
    EXPECT_NE(outcome.errors.find("1/7 is the first of seven"), std::string::npos) << part;
  }
  EXPECT_EQ(run(std::string(search_line) + " --part 1/2").exit_code, 2);
  EXPECT_EQ(run("search merge").exit_code, 2);
  write_text(folder_ / "no.jsonl", "{\"format\": \"something\"}\n");
  const Outcome outcome = run("search merge no.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("no.jsonl: line 1: /format"), std::string::npos) << outcome.errors;
}

TEST_F(SearchParts, RunUnderMpi) {
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "no mpirun here";
  const std::string start =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 4 ";
  if (const Outcome probe = shell(start + "true"); probe.exit_code != 0)
    GTEST_SKIP() << "mpirun starts nothing here: " << probe.errors.substr(0, 400);
  const Outcome outcome = shell(
      fmt::format("{}tidemark {} --part auto --records r.jsonl -o /dev/null", start, search_line));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(merged(names(4)), one_run());
}

TEST_F(SearchParts, RunUnderGnuParallel) {
  const Outcome version = shell("parallel --version < /dev/null");
  if (version.output.find("GNU parallel") == std::string::npos) GTEST_SKIP() << "no GNU parallel";
  const Outcome outcome = shell(
      fmt::format("seq 7 | parallel -j 2 tidemark {} --part {{}}/7 --records r.jsonl -o /dev/null",
                  search_line));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(merged(names(7)), one_run());
}

TEST_F(SearchParts, ShowAStrategyOnce) {
  const std::string once = "search config.json --gpus 1 --global-batch 2 --strategies vanilla";
  EXPECT_EQ(run(once + ",vanilla").output, run(once).output);
  EXPECT_NE(run(once).output.find(" on 1 GPU ("), std::string::npos) << run(once).output;
}

// Its bounds take some tenths of a second, before anything is simulated.
TEST(StoppedSearch, DoesNotSayThatNothingFits) {
  const Outcome outcome = interrupted(
      "search llama-13b --gpus 1024 --cluster dgx-h100 --global-batch 65536 --strategies "
      "vanilla,checkpoint,mesa,lowmemorybp,offload,mesa+checkpoint,lowmemorybp+checkpoint",
      1);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.output.find("Nothing that fits was found before the search was stopped.\n"),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("The nearest"), std::string::npos) << outcome.output;
}

// What other programs are told of a LLaMA, which all of them have; one sample per GPU.
class LaunchLines : public SearchParts {
 protected:
  LaunchLines() {
    write_text(folder_ / "config.json",
               R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512,
                   "max_position_embeddings": 16})");
  }

  std::string lines(const std::string& options, std::string_view format = "csv") {
    const Outcome outcome =
        run(fmt::format("search config.json --cluster dgx-h100 --strategies vanilla --format {} {}",
                        format, options));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }
};

bool says(const std::string& lines, std::string_view words) {
  return lines.find(words) != std::string::npos;
}

// Twelve processes on nodes of eight are six on each of two.
TEST_F(LaunchLines, StartAsManyProcessesAsThereAreGpus) {
  const std::string all = lines("--gpus 12 --precision bf16 --shard fsdp2");
  EXPECT_TRUE(says(all, "--nnodes 2 --nproc-per-node 6 ")) << all;
  EXPECT_FALSE(says(all, "--nproc-per-node 8 ")) << all;
}

TEST_F(LaunchLines, SayThePrecision) {
  EXPECT_TRUE(says(lines("--gpus 2 --precision fp32 --shard fsdp2"),
                   " --training.mixed_precision_param float32"));
  EXPECT_FALSE(says(lines("--gpus 2 --precision tf32 --shard fsdp2"), "torchtitan.train"));
  const std::string wide = lines("--gpus 2 --precision bf16 --master-weights --shard megatron");
  EXPECT_TRUE(says(wide, " --bf16")) << wide;
  EXPECT_FALSE(says(wide, "--grad-reduce-in-bf16")) << wide;
  const std::string narrow =
      lines("--gpus 2 --precision bf16 --master-weights --shard megatron:narrow-gradients");
  EXPECT_TRUE(says(narrow, " --bf16 --grad-reduce-in-bf16")) << narrow;
  EXPECT_FALSE(says(lines("--gpus 2 --precision amp-bf16 --shard megatron"), "pretrain_gpt.py"));
}

// Its options are JSON.
TEST_F(LaunchLines, SayDeepSpeedsZero) {
  const std::string options = "--gpus 2 --precision bf16 --master-weights --shard ";
  const std::string three = lines(options + "zero3:prefetch=5e6", "json");
  EXPECT_TRUE(says(three, R"(\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, )"
                          R"(\"overlap_comm\": true, \"reduce_bucket_size\": 500000000, )"
                          R"(\"stage3_prefetch_bucket_size\": 5000000, )"))
      << three;
  EXPECT_TRUE(says(three, "deepspeed --num_nodes 1 --num_gpus 2 train.py")) << three;
  const std::string two = lines(options + "zero2", "json");
  EXPECT_TRUE(says(two, R"(\"stage\": 2, \"overlap_comm\": false, )")) << two;
  EXPECT_FALSE(says(lines(options + "fsdp1"), "deepspeed --num_nodes"));
}

TEST_F(LaunchLines, SayGroupsThatShare) {
  const std::string all = lines("--gpus 4 --precision bf16 --master-weights --shard fsdp2:shard=2");
  EXPECT_TRUE(
      says(all, "data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2"))
      << all;
  EXPECT_TRUE(says(all, "--parallelism_config_dp_replicate_size 2")) << all;
  const std::string flat =
      lines("--gpus 4 --precision bf16 --master-weights --shard fsdp1:shard=2");
  EXPECT_FALSE(says(flat, "--fsdp_sharding_strategy")) << flat;  // whose groups are whole nodes
}

TEST_F(LaunchLines, SayContextRanks) {
  const std::string all =
      lines("--gpus 4 --mesh cp=2 --precision bf16 --master-weights --shard fsdp2");
  EXPECT_TRUE(says(all, "--parallelism.context_parallel_degree 2")) << all;
  EXPECT_FALSE(says(all, "data_parallel_shard_degree 4")) << all;  // they are not counted there
  const std::string megatron =
      lines("--gpus 4 --mesh cp=2 --precision bf16 --master-weights --shard megatron");
  EXPECT_TRUE(says(megatron, "--context-parallel-size 2 --cp-comm-type all_gather")) << megatron;
}

TEST_F(LaunchLines, SayWhoPassesKeysAroundAndWhoDoesNot) {
  const std::string ring = lines(
      "--gpus 4 --mesh cp=2 --cp-form ring --precision bf16 --master-weights --shard megatron");
  EXPECT_TRUE(says(ring, "--context-parallel-size 2 --cp-comm-type p2p")) << ring;
  const std::string titan =
      lines("--gpus 4 --mesh cp=2 --cp-form ring --precision bf16 --master-weights --shard fsdp2");
  EXPECT_FALSE(says(titan, "torchtitan.train")) << titan;
}

TEST_F(LaunchLines, SayExpertRanks) {
  write_text(folder_ / "config.json",
             R"({"model_type": "megatron-gpt", "num_layers": 2, "hidden_size": 64,
                 "num_attention_heads": 4, "vocab_size": 128, "max_position_embeddings": 32,
                 "add_bias_linear": false, "num_experts": 2})");
  const std::string all = lines(
      "--gpus 2 --precision bf16 --master-weights --framework megatron --shard megatron --top 9");
  EXPECT_TRUE(says(all, " --expert-model-parallel-size 2 ")) << all;
  EXPECT_FALSE(says(all, "--expert-tensor-parallel-size")) << all;
  const std::string whole = lines(
      "--gpus 2 --mesh etp=1 --precision bf16 --master-weights --framework megatron --shard "
      "megatron "
      "--top 9");
  EXPECT_TRUE(says(whole, "--tensor-model-parallel-size 2")) << whole;
  EXPECT_TRUE(says(whole, " --moe-grouped-gemm --expert-tensor-parallel-size 1 ")) << whole;
  const std::string halves = lines(
      "--gpus 8 --mesh etp=2 --precision bf16 --master-weights --framework megatron --shard "
      "megatron --top 99");
  EXPECT_TRUE(says(halves, " --expert-tensor-parallel-size 2 ")) << halves;
  EXPECT_FALSE(says(halves, " --expert-tensor-parallel-size 1 ")) << halves;
}

TEST_F(LaunchLines, SayWhichScriptAndProductsExpertsHave) {
  write_text(folder_ / "config.json",
             R"({"model_type": "megatron-hybrid", "hybrid_layer_pattern": "M*-E",
                 "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128,
                 "max_position_embeddings": 32, "add_bias_linear": false, "num_experts": 2,
                 "mamba_num_groups": 1, "moe_grouped_gemm": false})");
  const std::string all = lines(
      "--gpus 2 --precision bf16 --master-weights --framework megatron --shard megatron --top 9");
  EXPECT_TRUE(says(all, " pretrain_hybrid.py ")) << all;
  EXPECT_TRUE(says(all, " --moe-token-dispatcher-type alltoall ")) << all;
  EXPECT_FALSE(says(all, "--moe-grouped-gemm")) << all;
}

TEST_F(SearchParts, TryAllAxesButContextRanks) {
  const Outcome outcome = run(std::string(search_line) + " --mesh cp=2,tp=2");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("(give --mesh cp=2)"), std::string::npos) << outcome.errors;
  EXPECT_EQ(run(std::string(search_line) + " --mesh ep=2").errors,
            "tidemark: search: --mesh ep=2: other axes than cp and etp are what it tries (leave "
            "--mesh out)\n");
  EXPECT_NE(run(std::string(search_line) + " --mesh etp=5").errors.find("(nearest: etp=4)"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark::cli::search_command_test
