// What other programs are told of a layout, option by option, and why one of them has no such
// layout.
#include "cli/reports/launch_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"
#include "traces/presets.h"

namespace tidemark::cli::launch_lines_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// A model of four blocks on nodes of eight GPUs, and one layout of it.
struct Asked {
  LayoutRequest request;
  MeshLayout layout;

  explicit Asked(const Sharding& sharding, std::string_view strategy = "vanilla") {
    request.scenario.model = small_llama(4);
    request.scenario.step.precision = Precision::Bf16;
    request.scenario.step.master_weights = true;
    request.scenario.device = device_of(find_cluster("dgx-h100"));
    request.scenario.strategies = {parse_strategy(strategy)};
    request.shardings = {sharding};
    request.schedules = {PipelineSchedule()};
    request.global_batch = 24;
    layout.batch = 3;
  }
  Asked& ranks(Axis axis, std::int64_t count) {
    layout.mesh[axis] = count;
    return *this;
  }
  Asked& precision(Precision one) {
    request.scenario.step.precision = one;
    return *this;
  }
  Asked& schedule(const PipelineSchedule& one) {
    request.schedules = {one};
    return *this;
  }
  Asked& micro_batches(std::int64_t count) {
    layout.micro_batches = count;
    return *this;
  }
  Asked& sequence_parallel() {
    layout.sequence_parallel = true;
    return *this;
  }
  LaunchLine of(std::string_view program) const {
    for (const LaunchLine& line : launch_lines(request, layout))
      if (line.program == program) return line;
    ADD_FAILURE() << "no " << program;
    return {};
  }
  /// What it is told, or why it is told nothing: one of both.
  std::string told(std::string_view program) const {
    const LaunchLine line = of(program);
    EXPECT_NE(line.line.empty(), line.why_not.empty()) << program;
    return line.line.empty() ? "none: " + line.why_not : line.line;
  }
  std::string megatron() const { return told("Megatron-LM"); }
  std::string titan() const { return told("torchtitan"); }
  std::string deepspeed() const { return told("DeepSpeed"); }
  std::string accelerate() const { return told("accelerate"); }
};

Sharding of(Sharding::Kind kind) {
  Sharding sharding;
  sharding.kind = kind;
  return sharding;
}

TEST(Launch, HasOnlySomeNetworks) {
  Asked asked(of(Sharding::Kind::Fsdp2));
  EXPECT_THAT(asked.ranks(Axis::Data, 8).titan(), HasSubstr("-m torchtitan.train"));
  asked.request.scenario.model = find_model("gpt2");
  EXPECT_EQ(asked.titan(), "none: it has no such network, but LLaMA 3, Qwen3 and DeepSeek-V3");
  EXPECT_THAT(asked.accelerate(), HasSubstr("accelerate launch"));
}

const Sharding ddp = of(Sharding::Kind::Ddp);
const Sharding fsdp1 = of(Sharding::Kind::Fsdp1);
const Sharding fsdp2 = of(Sharding::Kind::Fsdp2);
const Sharding megatron = of(Sharding::Kind::Megatron);
const Sharding zero1 = of(Sharding::Kind::Zero1);
const Sharding zero2 = of(Sharding::Kind::Zero2);
const Sharding zero3 = of(Sharding::Kind::Zero3);

TEST(Launch, SaysWhereProductsAddNoGradientsThemselves) {
  Sharding apart = megatron;
  apart.fuses_accumulation = false;
  EXPECT_THAT(Asked(apart).megatron(), HasSubstr(" --no-gradient-accumulation-fusion"));
  EXPECT_THAT(Asked(megatron).megatron(), Not(HasSubstr("accumulation-fusion")));
}

TEST(Launch, DealsOutProcessesInWholeTensorGroups) {
  const auto processes = [](std::int64_t tensor, std::int64_t data) {
    const std::string line =
        Asked(megatron).ranks(Axis::Tensor, tensor).ranks(Axis::Data, data).megatron();
    return line.substr(0, line.find(" pretrain_gpt.py"));
  };
  EXPECT_EQ(processes(1, 1), "torchrun --nnodes 1 --nproc-per-node 1");
  EXPECT_EQ(processes(1, 8), "torchrun --nnodes 1 --nproc-per-node 8");
  EXPECT_EQ(processes(1, 9), "torchrun --nnodes 3 --nproc-per-node 3");
  EXPECT_EQ(processes(1, 11), "torchrun --nnodes 11 --nproc-per-node 1");
  EXPECT_EQ(processes(1, 16), "torchrun --nnodes 2 --nproc-per-node 8");
  EXPECT_EQ(processes(2, 5), "torchrun --nnodes 5 --nproc-per-node 2");  // ten, but not five each
  EXPECT_EQ(processes(2, 6), "torchrun --nnodes 2 --nproc-per-node 6");
  EXPECT_EQ(processes(8, 3), "torchrun --nnodes 3 --nproc-per-node 8");
}

TEST(Launch, SaysAllAxesToMegatron) {
  Sharding sharding = megatron;
  sharding.overlaps = true;
  sharding.instances = 2;
  Asked asked(sharding, "checkpoint:every=2");
  asked.ranks(Axis::Tensor, 2).ranks(Axis::Pipeline, 2).ranks(Axis::Data, 4).micro_batches(2);
  asked.schedule({PipelineSchedule::Kind::Interleaved, 2}).sequence_parallel();
  EXPECT_EQ(asked.megatron(),
            "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py … "
            "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 3 "
            "--global-batch-size 24 --bf16 --sequence-parallel "
            "--num-layers-per-virtual-pipeline-stage 1 --use-distributed-optimizer "
            "--overlap-grad-reduce --num-distributed-optimizer-instances 2 "
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2");
}

TEST(Launch, SaysNothingThatIsMegatronsDefault) {
  Sharding whole = megatron;
  whole.cuts_states = false;
  EXPECT_EQ(Asked(whole).megatron(),
            "torchrun --nnodes 1 --nproc-per-node 1 pretrain_gpt.py … "
            "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --micro-batch-size 3 "
            "--global-batch-size 24 --bf16");
  EXPECT_THAT(Asked(megatron, "checkpoint").megatron(), HasSubstr("--recompute-num-layers 1"));
  const std::string fp32 = Asked(megatron).precision(Precision::Fp32).megatron();
  EXPECT_THAT(fp32, HasSubstr("--global-batch-size 24 --use-distributed-optimizer"));
}

TEST(Launch, SaysWhatMegatronHasNot) {
  EXPECT_EQ(Asked(fsdp2).ranks(Axis::Data, 2).megatron(),
            "none: its data parallelism is --shard megatron");
  EXPECT_EQ(Asked(megatron, "mesa").megatron(), "none: it has no options for mesa");
  EXPECT_EQ(Asked(megatron, "mesa+checkpoint").megatron(),
            "none: it has no options for mesa+checkpoint");
  EXPECT_EQ(Asked(megatron).precision(Precision::AmpFp16).megatron(),
            "none: it has no options for amp-fp16");
  Asked piped(megatron);
  piped.ranks(Axis::Pipeline, 2).micro_batches(2);
  EXPECT_EQ(piped.schedule({PipelineSchedule::Kind::GPipe}).megatron(), "none: it has no GPipe");
  const auto dealt_out = [&piped](std::vector<std::int64_t> blocks) {
    return piped.schedule({PipelineSchedule::Kind::OneForwardOneBackward, 1, std::move(blocks)})
        .megatron();
  };
  EXPECT_THAT(dealt_out({0, 4}), HasSubstr("none: stages dealt out by hand"));
  EXPECT_THAT(dealt_out({4, 0}), HasSubstr("none: stages dealt out by hand"));
  piped.ranks(Axis::Pipeline, 4);
  EXPECT_THAT(dealt_out({1, 2, 1, 1}), HasSubstr("none: stages dealt out by hand"));
}

TEST(Launch, SaysUnevenEndsToMegatron) {
  Asked asked(megatron);
  asked.ranks(Axis::Pipeline, 3).micro_batches(8);
  EXPECT_THAT(asked.megatron(), testing::Not(HasSubstr("-pipeline-num-layers")));
  asked.layout.uneven = 4;
  EXPECT_THAT(asked.megatron(), HasSubstr(" --decoder-first-pipeline-num-layers 1 "
                                          "--decoder-last-pipeline-num-layers 1 "));
  asked.ranks(Axis::Pipeline, 2);
  asked.layout.uneven = 0;
  EXPECT_THAT(
      asked.schedule({PipelineSchedule::Kind::OneForwardOneBackward, 1, {1, 3}}).megatron(),
      HasSubstr(" --decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 3 "));
}

TEST(Launch, SaysStagesToTorchtitan) {
  Asked asked(ddp);
  asked.ranks(Axis::Pipeline, 2).micro_batches(4);
  EXPECT_EQ(asked.titan(),
            "torchrun --nnodes 1 --nproc-per-node 2 -m torchtitan.train … "
            "--training.local_batch_size 12 --training.global_batch_size 24 "
            "--parallelism.data_parallel_replicate_degree 1 "
            "--parallelism.data_parallel_shard_degree 1 --parallelism.pipeline_parallel_degree 2 "
            "--parallelism.pipeline_parallel_schedule 1F1B "
            "--parallelism.pipeline_parallel_microbatch_size 3 "
            "--parallelism.pipeline_parallel_layers_per_stage 2 "
            "--parallelism.pipeline_parallel_first_stage_less_layers 0 "
            "--parallelism.pipeline_parallel_last_stage_less_layers 0 "
            "--activation_checkpoint.mode none");
  EXPECT_THAT(asked.schedule({PipelineSchedule::Kind::GPipe}).titan(),
              HasSubstr("pipeline_parallel_schedule GPipe "));
  const std::string chunks = asked.schedule({PipelineSchedule::Kind::Interleaved, 2}).titan();
  EXPECT_THAT(chunks, HasSubstr("pipeline_parallel_schedule Interleaved1F1B "));
  EXPECT_THAT(chunks, HasSubstr("pipeline_parallel_layers_per_stage 1 "));
  EXPECT_EQ(asked.schedule({PipelineSchedule::Kind::OneForwardOneBackward, 1, {1, 3}}).titan(),
            "none: stages dealt out by hand need module_fqns_per_model_part");
}

// torchtitan compiles each block where it compiles at all.
TEST(Launch, SaysCompiledBlocksToTorchtitan) {
  const auto compiled = [](const Sharding& sharding) {
    Asked asked(sharding);
    asked.ranks(Axis::Data, 4).request.scenario.step.framework = "torch-compile-blocks-2.6";
    return asked;
  };
  EXPECT_THAT(compiled(fsdp2).titan(), EndsWith(" --compile.enable"));
  Asked coded = compiled(fsdp2);
  coded.request.scenario.step.linears = CodedLinears{LinearMath::Fp8};
  EXPECT_THAT(coded.titan(),
              EndsWith(" --compile.enable --model.converters quantize.linear.float8"));
  EXPECT_THAT(Asked(fsdp2).ranks(Axis::Data, 4).titan(), Not(HasSubstr("compile")));
  EXPECT_EQ(compiled(fsdp2).told("accelerate"), "none: what is compiled is written in the script");
  EXPECT_EQ(compiled(zero3).told("DeepSpeed"), "none: what is compiled is written in the script");
}

TEST(Launch, SaysMegatronsOwnNetworkToMegatronAlone) {
  Asked asked(fsdp2);
  asked.ranks(Axis::Data, 4).request.scenario.step.framework = "megatron";
  for (const char* other : {"accelerate", "torchtitan"})
    EXPECT_EQ(asked.told(other), "none: the network is Megatron-LM's own code") << other;
}

// Which is whose network it is.
TEST(Launch, SaysTorchtitansOwnNetworkToTorchtitanAlone) {
  Asked asked(fsdp2);
  asked.ranks(Axis::Data, 4).request.scenario.step.framework = "torchtitan";
  EXPECT_THAT(asked.titan(), EndsWith("--activation_checkpoint.mode none"));
  for (const char* other : {"accelerate", "DeepSpeed", "Megatron-LM"})
    EXPECT_EQ(asked.told(other), "none: the network is torchtitan's own code") << other;
  asked.request.scenario.step.framework = "torchtitan-compiled";
  EXPECT_THAT(asked.titan(), EndsWith(" --compile.enable"));
}

TEST(Launch, SaysFusedLossesToMegatron) {
  Asked asked(megatron);
  asked.ranks(Axis::Data, 4).request.scenario.step.loss = parse_token_loss("fused");
  EXPECT_THAT(asked.megatron(),
              HasSubstr(" --cross-entropy-loss-fusion --cross-entropy-fusion-impl te"));
  asked.request.scenario.step.loss = parse_token_loss("native");
  EXPECT_THAT(asked.megatron(),
              HasSubstr(" --cross-entropy-loss-fusion --cross-entropy-fusion-impl native"));
}

TEST(Launch, SaysWhatLinearsMultiplyToMegatron) {
  const auto line = [](std::string_view linears) {
    Asked asked(megatron);
    asked.request.scenario.step.linears = parse_coded_linears(linears);
    asked.request.scenario.step.framework = "megatron";
    asked.request.scenario.step.sequence = 128;
    asked.request.scenario.device = find_device("b200");
    return asked.megatron();
  };
  EXPECT_THAT(line("fp8"), HasSubstr(" --fp8-format hybrid --fp8-recipe tensorwise --use"));
  EXPECT_THAT(line("fp8-blockwise"), HasSubstr(" --fp8-format e4m3 --fp8-recipe blockwise --use"));
  EXPECT_THAT(line("mxfp8"), HasSubstr(" --fp8-format e4m3 --fp8-recipe mxfp8 --use"));
  EXPECT_THAT(line("nvfp4"), HasSubstr(" --fp4-format e2m1 --fp4-recipe nvfp4 --use"));
  EXPECT_THAT(
      line("nvfp4:last=1"),
      HasSubstr(" --fp4-recipe nvfp4 --first-last-layers-bf16 --num-layers-at-start-in-bf16 "
                "0 --num-layers-at-end-in-bf16 1 --use"));
}

TEST(Launch, SaysUserBuffersToMegatronWhereSequencesAreCut) {
  Asked asked(megatron);
  asked.request.scenario.step.tp_overlap = true;
  EXPECT_THAT(asked.sequence_parallel().megatron(), Not(HasSubstr("sequence-parallel")));
  asked = Asked(megatron);
  asked.ranks(Axis::Tensor, 2).request.scenario.step.tp_overlap = true;
  EXPECT_THAT(asked.megatron(), Not(HasSubstr("overlap")));
  EXPECT_THAT(asked.sequence_parallel().megatron(),
              HasSubstr(" --sequence-parallel --tp-comm-overlap"));
}

TEST(Launch, NamesMegatronsScriptLayersAndOptimizer) {
  Asked asked(megatron);
  const auto line = [&] { return asked.megatron(); };
  StepOptions& step = asked.request.scenario.step;
  EXPECT_THAT(line(), Not(HasSubstr("--transformer-impl")));
  step.framework = "megatron-local";
  EXPECT_THAT(line(), HasSubstr(" --transformer-impl local"));
  step.framework = "megatron-deterministic";
  EXPECT_THAT(line(), HasSubstr(" --deterministic-mode"));
  step.optimizer = Optimizer::Muon;
  EXPECT_THAT(line(), HasSubstr(" --optimizer muon"));
  ModelConfig& config = asked.request.scenario.model.config;
  std::get<DecoderConfig>(config).family = "nemotron-h";
  EXPECT_THAT(line(), HasSubstr(" pretrain_hybrid.py "));
  config = BertConfig();
  EXPECT_THAT(line(), HasSubstr(" examples/bert/pretrain_bert.py "));
  config = MegatronT5Config();
  EXPECT_THAT(line(), HasSubstr(" examples/t5/pretrain_t5.py "));
}

TEST(Launch, SaysPoliciesToTorchtitanAlone) {
  Asked asked(fsdp2, "checkpoint:op");
  asked.ranks(Axis::Data, 4);
  EXPECT_THAT(asked.titan(), EndsWith("--activation_checkpoint.mode selective "
                                      "--activation_checkpoint.selective_ac_option op"));
  EXPECT_EQ(Asked(fsdp2, "checkpoint:sqrt").ranks(Axis::Data, 4).titan(),
            "none: it has no options for checkpoint:sqrt");
  EXPECT_EQ(Asked(megatron, "checkpoint:op").ranks(Axis::Data, 4).megatron(),
            "none: it has no options for checkpoint:op");
}

// Without stages, micro-batches are what the global batch makes of them.
TEST(Launch, SaysReplicasToTorchtitan) {
  Asked asked(ddp, "checkpoint");
  asked.ranks(Axis::Data, 4).micro_batches(2);
  EXPECT_EQ(asked.titan(),
            "torchrun --nnodes 1 --nproc-per-node 4 -m torchtitan.train … "
            "--training.local_batch_size 3 --training.global_batch_size 24 "
            "--parallelism.data_parallel_replicate_degree 4 "
            "--parallelism.data_parallel_shard_degree 1 --activation_checkpoint.mode full");
  Sharding keeps = fsdp2;
  keeps.reshards = false;
  const std::string cut = Asked(keeps).ranks(Axis::Data, 4).titan();
  EXPECT_THAT(cut, HasSubstr("shard_degree 4 --parallelism.fsdp_reshard_after_forward never"));
  EXPECT_THAT(cut, Not(HasSubstr("replicate")));
  Sharding groups = fsdp2;
  groups.shard_ranks = 2;
  EXPECT_THAT(Asked(groups).ranks(Axis::Data, 4).titan(),
              HasSubstr("replicate_degree 2 --parallelism.data_parallel_shard_degree 2 "
                        "--parallelism.fsdp_reshard_after_forward always"));
  Asked tensor(fsdp2);
  tensor.ranks(Axis::Tensor, 2).ranks(Axis::Data, 2).sequence_parallel();
  EXPECT_THAT(tensor.titan(), HasSubstr(" --parallelism.tensor_parallel_degree 2 "));
}

TEST(Launch, SaysWhatTorchtitanHasNot) {
  const auto replicas = [](const Sharding& sharding, std::string_view strategy = "vanilla") {
    return Asked(sharding, strategy).ranks(Axis::Data, 2).titan();
  };
  EXPECT_THAT(replicas(megatron), HasSubstr("none: it has fully_shard and replicas, no buffers"));
  for (const Sharding& sharding : {fsdp1, zero1, zero2, zero3})
    EXPECT_EQ(replicas(sharding), "none: it has fully_shard and replicas only");
  EXPECT_EQ(replicas(fsdp2, "checkpoint:every=2"),
            "none: it has no options for checkpoint:every=2");
  EXPECT_EQ(replicas(fsdp2, "checkpoint:selective"),
            "none: it has no options for checkpoint:selective");
  EXPECT_EQ(replicas(fsdp2, "mesa"), "none: it has no options for mesa");
  EXPECT_EQ(Asked(ddp).ranks(Axis::Tensor, 2).titan(), "none: its tensor parallelism is with --sp");
  EXPECT_EQ(Asked(ddp).ranks(Axis::Data, 2).precision(Precision::Tf32).titan(),
            "none: it has no options for tf32");
}

// All context ranks share parameters there: not with replicas, nor in groups.
TEST(Launch, SaysContextRanksToTorchtitanWhereAllShare) {
  const std::string refused = "none: there all context ranks share parameters, as with fully_shard";
  Sharding groups = fsdp2;
  groups.shard_ranks = 2;
  const auto context = [](const Sharding& sharding) {
    return Asked(sharding).ranks(Axis::Context, 2).ranks(Axis::Data, 2).titan();
  };
  EXPECT_EQ(context(ddp), refused);
  EXPECT_EQ(context(groups), refused);
  EXPECT_THAT(context(fsdp2), HasSubstr(" --parallelism.data_parallel_shard_degree 2 "));
  EXPECT_THAT(context(fsdp2), HasSubstr(" --parallelism.context_parallel_degree 2 "));
}

TEST(Launch, SaysZeroToDeepSpeedInJson) {
  Sharding sharding = zero3;
  sharding.reduce_bucket = 1;
  sharding.prefetch = 2;
  sharding.max_live = 3;
  sharding.reuse_distance = 4;
  sharding.persistence = 5;
  EXPECT_EQ(
      Asked(sharding).ranks(Axis::Data, 16).micro_batches(2).deepspeed(),
      "echo '{\"train_micro_batch_size_per_gpu\": 3, \"gradient_accumulation_steps\": 2, "
      "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": "
      "false, \"reduce_bucket_size\": 1, \"stage3_prefetch_bucket_size\": 2, "
      "\"stage3_max_live_parameters\": 3, \"stage3_max_reuse_distance\": 4, "
      "\"stage3_param_persistence_threshold\": 5}}' > ds.json && deepspeed --num_nodes 2 "
      "--num_gpus 8 train.py … --deepspeed --deepspeed_config ds.json");
  EXPECT_THAT(Asked(zero2).ranks(Axis::Data, 2).deepspeed(), HasSubstr("\"stage\": 2, "));
  const std::string one = Asked(zero1).ranks(Axis::Data, 2).precision(Precision::Fp32).deepspeed();
  EXPECT_THAT(one, HasSubstr("_steps\": 1, \"zero_optimization\": {\"stage\": 1, "));
  EXPECT_THAT(one, Not(HasSubstr("stage3")));
}

TEST(Launch, SaysWhatDeepSpeedLeavesToTheScript) {
  const auto two = [](std::string_view strategy = "vanilla") {
    return Asked(zero1, strategy).ranks(Axis::Data, 2);
  };
  EXPECT_EQ(Asked(fsdp2).ranks(Axis::Data, 2).deepspeed(),
            "none: its data parallelism is --shard zero1 to 3");
  EXPECT_EQ(two().ranks(Axis::Tensor, 2).deepspeed(),
            "none: its tensor parallelism is the model's own");
  EXPECT_EQ(two().ranks(Axis::Context, 2).deepspeed(),
            "none: its ranks exchange heads where they share a sequence");
  EXPECT_EQ(two("checkpoint").deepspeed(), "none: checkpoint is written in the script");
  for (const Precision precision : {Precision::AmpBf16, Precision::AmpFp16})
    EXPECT_EQ(two().precision(precision).deepspeed(), "none: autocast is written in the script");
}

TEST(Launch, SaysReplicasToAccelerate) {
  EXPECT_EQ(Asked(ddp).ranks(Axis::Data, 16).micro_batches(2).accelerate(),
            "accelerate launch --num_machines 2 --num_processes 16 --mixed_precision bf16 "
            "--gradient_accumulation_steps 2 --multi_gpu train.py …");
  EXPECT_EQ(Asked(ddp).accelerate(),
            "accelerate launch --num_machines 1 --num_processes 1 --mixed_precision bf16 "
            "--gradient_accumulation_steps 1 train.py …");
  const auto precision = [](Precision one) {
    const std::string line = Asked(ddp).precision(one).accelerate();
    const std::string_view option = "--mixed_precision ";
    const std::size_t begin = line.find(option) + option.size();
    return line.substr(begin, line.find(' ', begin) - begin);
  };
  EXPECT_EQ(precision(Precision::AmpBf16), "bf16");
  EXPECT_EQ(precision(Precision::AmpFp16), "fp16");
  EXPECT_EQ(precision(Precision::Fp32), "no");
  EXPECT_EQ(precision(Precision::Tf32), "no");
}

TEST(Launch, SaysFsdpToAccelerate) {
  EXPECT_EQ(Asked(fsdp2, "checkpoint").ranks(Axis::Data, 4).accelerate(),
            "accelerate launch --num_machines 1 --num_processes 4 --mixed_precision bf16 "
            "--gradient_accumulation_steps 1 --use_fsdp --fsdp_auto_wrap_policy "
            "TRANSFORMER_BASED_WRAP --fsdp_version 2 --fsdp_reshard_after_forward true "
            "--fsdp_activation_checkpointing true train.py …");
  Sharding groups = fsdp2;
  groups.shard_ranks = 2;
  const std::string hybrid = Asked(groups).ranks(Axis::Data, 8).accelerate();
  EXPECT_THAT(hybrid,
              HasSubstr(" --use_parallelism_config --parallelism_config_dp_replicate_size 4 "
                        "--parallelism_config_dp_shard_size 2 "));
  EXPECT_THAT(hybrid, Not(HasSubstr("activation_checkpointing")));
  groups.shard_ranks = 8;  // of eight: that is all
  EXPECT_THAT(Asked(groups).ranks(Axis::Data, 8).accelerate(),
              Not(HasSubstr("parallelism_config")));
}

// FSDP1's groups are the ranks of a node.
TEST(Launch, SaysFsdp1sGroupsToAccelerateWhereTheyAreNodes) {
  const auto strategy = [](std::int64_t ranks, std::int64_t shard_ranks, bool reshards) {
    Sharding sharding = fsdp1;
    sharding.shard_ranks = shard_ranks;
    sharding.reshards = reshards;
    const std::string line = Asked(sharding).ranks(Axis::Data, ranks).accelerate();
    const std::string_view option = "--fsdp_version 1 --fsdp_sharding_strategy ";
    const std::size_t at = line.find(option);
    if (at == std::string::npos) return line;
    const std::size_t begin = at + option.size();
    return line.substr(begin, line.find(' ', begin) - begin);
  };
  EXPECT_EQ(strategy(16, 0, true), "FULL_SHARD");
  EXPECT_EQ(strategy(16, 0, false), "SHARD_GRAD_OP");
  EXPECT_EQ(strategy(16, 8, true), "HYBRID_SHARD");
  EXPECT_EQ(strategy(16, 8, false), "HYBRID_SHARD_ZERO2");
  EXPECT_EQ(strategy(16, 4, true),
            "none: FSDP1's groups are nodes there, others are written in the script");
}

TEST(Launch, SaysWhatAccelerateLeavesToTheScript) {
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline})
    EXPECT_EQ(Asked(ddp).ranks(axis, 2).accelerate(),
              "none: of these layouts it launches replicas only");
  EXPECT_EQ(Asked(megatron).accelerate(), "none: it has no buffers of Megatron-LM in its own loop");
  EXPECT_EQ(Asked(zero2).ranks(Axis::Data, 2).accelerate(),
            "none: of ZeRO it reads DeepSpeed's JSON");
  EXPECT_EQ(Asked(fsdp2, "checkpoint:every=2").ranks(Axis::Data, 2).accelerate(),
            "none: checkpoint:every=2 is written in the script");
  EXPECT_EQ(Asked(ddp, "checkpoint").ranks(Axis::Data, 2).accelerate(),
            "none: checkpoint is written in the script");
}

Asked of_further_tokens(std::int64_t count, bool repeats, std::string_view strategy = "vanilla") {
  Asked asked({.kind = Sharding::Kind::Megatron}, strategy);
  asked.request.scenario.step.framework = "megatron";
  auto& config = std::get<DecoderConfig>(asked.request.scenario.model.config);
  config.further_tokens = count, config.repeats_further = repeats;
  return asked;
}

// Stages share the four blocks alone.
TEST(LaunchLinesOfFurtherTokens, SayHowMany) {
  Asked two = of_further_tokens(2, false);
  two.ranks(Axis::Pipeline, 2).micro_batches(2).schedule(parse_schedule("interleaved:v=2"));
  EXPECT_THAT(two.of("Megatron-LM").line,
              AllOf(HasSubstr(" --mtp-num-layers 2"), Not(HasSubstr("repeated")),
                    HasSubstr(" --num-layers-per-virtual-pipeline-stage 1")));
  EXPECT_THAT(of_further_tokens(2, true).of("Megatron-LM").line,
              HasSubstr(" --mtp-num-layers 2 --mtp-use-repeated-layer"));
  EXPECT_THAT(of_further_tokens(1, true).of("Megatron-LM").line, Not(HasSubstr("repeated")));
  EXPECT_THAT(of_further_tokens(0, false).of("Megatron-LM").line, Not(HasSubstr("mtp")));
  EXPECT_EQ(of_further_tokens(1, false, "checkpoint:every=2").of("Megatron-LM").why_not,
            "what predicts further tokens is recomputed layer by layer only");
  Asked elsewhere = of_further_tokens(1, false);
  elsewhere.request.scenario.step.framework = "transformers-5";
  EXPECT_THAT(elsewhere.of("Megatron-LM").line, Not(HasSubstr("mtp")));
}

}  // namespace
}  // namespace tidemark::cli::launch_lines_test
