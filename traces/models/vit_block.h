// What vision transformers share: the block of ViT, which DeiT, DINOv2 and ViTMAE have, too.
#pragma once

#include "traces/models/model_config.h"
#include "traces/trace_builder.h"

namespace tidemark {

/// x [batch, tokens, width] → the same. `stack` as in Block.
TensorId vit_block(TraceBuilder& builder, const std::string& name, TensorId x,
                   const VitConfig& config, double drop_path, int stack = 0);

/// x[:, …] takes all samples first, and that has a gradient of its own.
TensorId all_samples(TraceBuilder& builder, const std::string& name, TensorId x);

/// How often a path is dropped grows evenly from 0 in the first block to `last` in the last one.
double depth_rate(double last, std::int64_t block, std::int64_t depth);

}  // namespace tidemark
