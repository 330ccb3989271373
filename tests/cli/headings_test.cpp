// The first three lines of a comparison: which model, which step, which device. Each option that is
// given is said, and what was not given is not.
#include <gmock/gmock.h>

#include "tests/cli/program.h"

namespace tidemark::cli::headings_test {
namespace {

struct Heading {
  const char* arguments;
  const char* model;
  const char* step;
  const char* device;
};

class Headings : public testing::TestWithParam<Heading> {};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_P(Headings, SayWhatWasAskedFor) {
  const auto& [arguments, model, step, device] = GetParam();
  const Outcome outcome =
      tidemark(std::string("compare ") + arguments + " --strategies vanilla,checkpoint");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::vector<std::string> lines = lines_of(outcome.output);
  ASSERT_GT(lines.size(), 3u);
  EXPECT_EQ(lines[0], model);
  EXPECT_EQ(lines[1], step);
  EXPECT_EQ(lines[2], device);
}

// What is proposed at the end is about the same step on the same device: its options are all there.
TEST_P(Headings, AreThoseOfTheNextCommand) {
  const Outcome outcome =
      tidemark(std::string("compare ") + GetParam().arguments + " --strategies vanilla,checkpoint");
  const std::string start = "Next: tidemark ";
  const std::size_t next = outcome.output.find(start);
  ASSERT_NE(next, std::string::npos) << outcome.output;
  const std::size_t begin = next + start.size();
  const std::string command =
      outcome.output.substr(begin, outcome.output.find('\n', begin) - begin);
  // By a shell, because names with stars are quoted for one.
  const Outcome explained =
      run_command({"/bin/bash", "-c", std::string("exec ") + TIDEMARK_PROGRAM + ' ' + command});
  ASSERT_EQ(explained.exit_code, 0) << explained.errors;
  const std::vector<std::string> lines = lines_of(explained.output);
  ASSERT_GT(lines.size(), 3u);
  EXPECT_THAT(std::vector<std::string>(lines.begin(), lines.begin() + 3),
              testing::ElementsAre(GetParam().model, GetParam().step, GetParam().device));
}

INSTANTIATE_TEST_SUITE_P(
    Options, Headings,
    testing::Values(
        Heading{"vit-ti-16", "ViT-Ti/16: 5.7 M parameters, all trained",
                "batch 1 × 197 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"vit-ti-16 -b 8 --precision amp-fp16 --attention math",
                "ViT-Ti/16: 5.7 M parameters, all trained",
                "batch 8 × 197 tokens · amp-fp16 · math attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"vit-ti-16 --image 384 --dropout 0.1 --drop-path 0.2",
                "ViT-Ti/16: 5.8 M parameters, all trained",
                "batch 1 × 577 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57 "
                "· dropout 0.1 · drop path 0.2",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"vit-ti-16 --tuning frozen:patch_embed.*,blocks.0.*",
                "ViT-Ti/16: 5.7 M parameters, 5.1 M trained (frozen:patch_embed.*,blocks.0.*)",
                "batch 1 × 197 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{
            "vit-ti-16 --optimizer sgd --ema", "ViT-Ti/16: 5.7 M parameters, all trained",
            "batch 1 × 197 tokens · fp32 · mem-efficient attention · sgd · transformers-4.57 · ema",
            "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"deit-ti --no-ema --framework torch-1.13", "DeiT-Ti: 5.7 M parameters, all trained",
                "batch 1 × 197 tokens · fp32 · flash attention · adamw · torch-1.13 · no ema",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{
            "swin-t --ddp --optimizer adamw-8bit", "Swin-T: 28.3 M parameters, all trained",
            "batch 1 × 3136 tokens · fp32 · math attention · adamw-8bit · transformers-4.57 · ddp",
            "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"mvitv2-t --framework torch-1.7-amp", "MViTv2-T: 24.2 M parameters, all trained",
                "batch 1 × 3136 tokens · amp-fp16 · math attention · adamw · torch-1.7-amp",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --accumulate 4 -b 2", "GPT-2 124M: 124 M parameters, all trained",
                "batch 2 × 4 micro-batches × 128 tokens · fp32 · mem-efficient attention · adamw · "
                "transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --tuning lora:r=4,targets=qkv --precision bf16",
                "GPT-2 124M: 125 M parameters, 147 k trained (lora:r=4,targets=qkv)",
                "batch 1 × 128 tokens · bf16 · flash attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --tuning lora-fa:r=2 --precision amp-bf16",
                "GPT-2 124M: 125 M parameters, 55.3 k trained (lora-fa:r=2,targets=qkv)",
                "batch 1 × 128 tokens · amp-bf16 · flash attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --head sequence-classification",
                "GPT-2 124M: 124 M parameters, all trained, head sequence-classification",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --padded --attention sdpa",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57 "
                "· padded",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --loss chunked:4", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57 "
                "· chunked:4 loss",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --loss fused-linear --precision bf16",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · bf16 · flash attention · adamw · transformers-4.57 · "
                "fused-linear loss",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --optimizer adafactor --optimizer-form for-loop",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adafactor · "
                "transformers-4.57 · for-loop update",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --optimizer lion --l2-decay",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · lion · transformers-4.57 "
                "· l2 decay",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --optimizer-form fused --update-in-backward",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57 "
                "· fused update · update in backward",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --precision bf16 --master-weights --keep-gradients",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · bf16 · flash attention · adamw · transformers-4.57 · "
                "master weights · keep gradients",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --precision tf32 -d h100", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · tf32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA H100 SXM5 80 GB: 79.2 GiB, of which 78.8 GiB for tensors"},
        Heading{"gpt2 -s 128 --precision fp32 -d t4", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA T4: 14.6 GiB, of which 14.2 GiB for tensors"},
        Heading{"bert-base -s 64 --head token-classification",
                "BERT-base, uncased: 109 M parameters, all trained, head token-classification",
                "batch 1 × 64 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"roberta-base -s 64 --framework transformers-4.51",
                "RoBERTa-base: 125 M parameters, all trained",
                "batch 1 × 64 tokens · fp32 · mem-efficient attention · adamw · transformers-4.51",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"olmoe-1b-7b -s 16 --precision bf16", "OLMoE 1B-7B: 6.9 B parameters, all trained",
                "batch 1 × 16 tokens · bf16 · flash attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"examples/llama-7b/config.json -s 64",
                "examples/llama-7b/config.json: 6.7 B parameters, all trained",
                "batch 1 × 64 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, of which 78.9 GiB for tensors"},
        Heading{"gpt2 -s 128 --budget 8GiB", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, a budget of 8.00 GiB for tensors"},
        Heading{"gpt2 -s 128 --budget 24GB -d rtx-4090",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA GeForce RTX 4090: 23.5 GiB, a budget of 24 GB = 22.35 GiB for tensors"},
        Heading{"gpt2 -s 128 --budget 800MB --alloc-conf max_split_size_mb:64",
                "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA A100 SXM4 80 GB: 79.3 GiB, a budget of 800 MB = 762.94 MiB for tensors · "
                "allocator set by --alloc-conf"},
        Heading{"gpt2 -s 128 -d v100-16gb", "GPT-2 124M: 124 M parameters, all trained",
                "batch 1 × 128 tokens · fp32 · mem-efficient attention · adamw · transformers-4.57",
                "NVIDIA V100 SXM2 16 GB: 15.8 GiB, of which 15.4 GiB for tensors"}));

}  // namespace
}  // namespace tidemark::cli::headings_test
