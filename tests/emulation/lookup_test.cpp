// CUDA kernels that look elements up, emulated, against their CPU twins: embedding, rotary
// embedding, pooling, the loss, the optimizer.
#include "kernels/embedding/embedding.cu"
#include "kernels/loss/loss.cu"
#include "kernels/optimizer/optimizer.cu"
#include "kernels/optimizer/update.cu"
#include "kernels/pooling/pooling.cu"
#include "kernels/rope/rope.cu"
#include "tests/emulation/twin.h"

namespace tidemark::lookup_test {
namespace {

Values numbers_below(const Shape& shape, std::int64_t end, unsigned seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(numel(shape)));
  for (double& x : values) x = static_cast<double>(random() % static_cast<unsigned>(end));
  return values;
}

TEST(EmbeddingTwins, Forward) {
  for (const std::int64_t width : {1, 31, 64})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        CallMaker maker;
        maker.input_of({2, 9}, numbers_below({2, 9}, 13, 3), DType::Int64);
        maker.input({13, width}, dtype, lie).output({2, 9, width}, dtype);
        expect_twins(maker.finish(0), cpu::embedding_forward, cuda::embedding_forward);
      }
}

TEST(EmbeddingTwins, BackwardWithRareAndFrequentRows) {
  for (const std::int64_t width : {1, 31, 264})
    for (const DType dtype : data_dtypes)
      // 2 rows: each is named by more ids than one block sorts. 200: more than a device has
      // processors.
      for (const std::int64_t rows : {200, 2}) {
        const Shape ids{2, 300};
        CallMaker maker;
        maker.input_of(ids, numbers_below(ids, rows, 5), DType::Int64);
        maker.absent_input({rows, width}, dtype).absent_output({2, 300, width}, dtype);
        maker.d_output({2, 300, width}, dtype).absent_d_input().d_input({rows, width}, dtype);
        expect_twins(maker.finish(1000), cpu::embedding_backward, cuda::embedding_backward);
      }
}

TEST(EmbeddingTwins, AnIdOutsideOfTheTableStopsTheKernel) {
  CallMaker maker;
  maker.input_of({2}, {1, 4}, DType::Int64).input({4, 8}).output({2, 8});
  TwinCase test = maker.finish(0);
  EXPECT_THROW(run_emulated(test, cuda::embedding_forward), std::runtime_error);
}

void expect_rope_twins(const Shape& x, const Shape& table, DType dtype, Lie lie, bool neighbours) {
  CallMaker up;
  up.call.settings.neighbours = neighbours;
  up.input(x, dtype, lie).input(table).input(table).output(x, dtype);
  expect_twins(up.finish(), cpu::rope_forward, cuda::rope_forward);
  CallMaker down;
  down.call.settings.neighbours = neighbours;
  down.absent_input(x, dtype).input(table, dtype).input(table, dtype);
  down.absent_output(x, dtype).d_output(x, dtype, lie).d_input(x, dtype, lie);
  expect_twins(down.finish(), cpu::rope_backward, cuda::rope_backward);
}

TEST(RopeTwins, WholeAndHalfTables) {
  for (const std::int64_t d : {2, 6, 64})
    for (const std::int64_t columns : {d / 2, d})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : {Lie::Dense, Lie::Swapped, Lie::Padded})
          for (const bool neighbours : {false, true})
            expect_rope_twins({2, 3, 5, d}, {5, columns}, dtype, lie, neighbours);
}

TEST(PoolingTwins, Means) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      CallMaker up;
      up.input({2, 7, 33}, dtype, lie).output({2, 33}, dtype);
      expect_twins(up.finish(8), cpu::mean_pool_forward, cuda::mean_pool_forward);
      CallMaker down;
      down.absent_input({2, 7, 33}, dtype).absent_output({2, 33}, dtype);
      down.d_output({2, 33}, dtype).d_input({2, 7, 33}, dtype, lie);
      expect_twins(down.finish(), cpu::mean_pool_backward, cuda::mean_pool_backward);
    }
}

TEST(PoolingTwins, Maxima) {
  struct Case {
    std::int64_t window, stride, padding;
  };
  for (const Case& c : {Case{2, 2, 0}, Case{3, 2, 1}, Case{3, 1, 1}})
    for (const DType dtype : data_dtypes) {
      const std::int64_t h = (9 + 2 * c.padding - c.window) / c.stride + 1;
      const std::int64_t w = (7 + 2 * c.padding - c.window) / c.stride + 1;
      CallMaker up;
      up.call.settings.window = c.window, up.call.settings.stride = c.stride;
      up.call.settings.padding = c.padding;
      Values x = random_values({2, 3, 9, 7}, 3, 1, dtype);
      x[5] = std::nan(""), x[9] = x[10];
      up.input_of({2, 3, 9, 7}, x, dtype).output({2, 3, h, w}, dtype);
      up.output({2, 3, h, w}, DType::Int64);
      const TwinCase forward = up.finish(0);
      expect_twins(forward, cpu::max_pool_forward, cuda::max_pool_forward);
      const Values places = run_emulated(forward, cuda::max_pool_forward)[2].values();
      CallMaker down;
      down.call.settings = up.call.settings;
      down.absent_input({2, 3, 9, 7}, dtype).absent_output({2, 3, h, w}, dtype);
      down.saved({2, 3, h, w}, places, DType::Int64);
      down.d_output({2, 3, h, w}, dtype).d_input({2, 3, 9, 7}, dtype, Lie::Swapped);
      expect_twins(down.finish(0), cpu::max_pool_backward, cuda::max_pool_backward);
    }
}

TEST(LossTwins, ForwardAndBackwardWithIgnoredRows) {
  for (const std::int64_t classes : {1, 31, 1000})
    for (const DType dtype : data_dtypes) {
      const Shape shape{3, 21, classes}, rows{3, 21};
      Values targets = numbers_below(rows, classes, 5);
      targets[4] = targets[20] = -100;
      CallMaker up;
      up.input(shape, dtype).input_of(rows, targets, DType::Int64);
      up.output({}, dtype).output({}, DType::Float32);
      expect_twins(up.finish(), cpu::nll_loss_forward, cuda::nll_loss_forward);
      for (const bool has_weight : {true, false}) {
        CallMaker down;
        down.absent_input(shape, dtype).input_of(rows, targets, DType::Int64);
        down.absent_output({}, dtype);
        if (has_weight)
          down.saved({}, {61}, dtype);
        else
          down.absent_output({}, dtype);
        down.d_output({}, dtype).d_input(shape, dtype);
        expect_twins(down.finish(1), cpu::nll_loss_backward, cuda::nll_loss_backward);
      }
    }
}

TEST(LossTwins, WithoutRowsThatCountTheLossIsNotANumber) {
  CallMaker maker;
  maker.input({2, 3}).input_of({2}, {-100, -100}, DType::Int64).output({}).output({});
  expect_twins(maker.finish(0), cpu::nll_loss_forward, cuda::nll_loss_forward);
}

/// A gradient, a parameter and a state that hold numbers already.
TwinCase update_case(const Shape& shape, DType dtype, DType of_state, Lie lie, bool adamw) {
  const Shape twice{2 * numel(shape)};
  Values state = random_values(twice, 3, 0.1, of_state);
  for (double& x : state) x = std::abs(x);
  CallMaker maker;
  maker.input(shape, dtype, lie);
  maker.saved(shape, random_values(shape, 8, 1, dtype), dtype).saved(twice, state, of_state);
  maker.test.state.number = 4;
  maker.call.optimizer = adamw ? Optimizer::AdamW : Optimizer::Sgd;
  maker.test.state.learning_rate = 0.05;
  return maker.finish(8);
}

// 8200 are two blocks of whole vectors in 16 bits, and a part of a third.
TEST(OptimizerTwins, AdamWAndSgd) {
  for (const Shape& shape : {Shape{1}, Shape{31}, Shape{3, 1023}, Shape{8, 16}, Shape{8200}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Reversed})
        for (const bool adamw : {true, false}) {
          expect_twins(update_case(shape, dtype, dtype, lie, adamw), cpu::update, cuda::update);
          expect_twins(update_case(shape, dtype, DType::Float32, lie, adamw), cpu::update,
                       cuda::update);
        }
}

/// State as `numbers` of numbers per element, or of eight bits.
TwinCase otherwise_case(Optimizer optimizer, const Shape& shape, DType dtype, Lie lie) {
  const std::int64_t count = numel(shape);
  CallMaker maker;
  maker.call.optimizer = optimizer, maker.call.settings.l2_decay = true;
  maker.input(shape, dtype, lie).saved(shape, random_values(shape, 8, 1, dtype), dtype, lie);
  const OptimizerRow& row = row_of(optimizer);
  const bool is_factored = row.state == StateKind::Factored || row.state == StateKind::FactoredFp32;
  if (row.state == StateKind::Blocks8bit) {
    // Factors of 2^-9 by their bytes, and codes.
    const std::int64_t blocks = (count + 255) / 256, factors = 4 * row.states * blocks;
    Values bytes = numbers_below({factors + row.states * count}, 256, 3);
    for (std::int64_t i = 0; i < factors; ++i)
      bytes[static_cast<std::size_t>(i)] = i % 4 == 3 ? 0x3b : 0;
    maker.saved({static_cast<std::int64_t>(bytes.size())}, bytes, DType::UInt8);
  } else {
    std::int64_t numbers = row.states * count;
    if (is_factored && shape.rank() > 1) numbers = count / shape.back() + count / shape.back(1);
    Values state = random_values({numbers}, 3, 0.1);
    for (double& x : state) x = std::abs(x) + 0.01;
    maker.saved({numbers}, state, DType::Float32);
  }
  maker.test.state.number = 4, maker.test.state.learning_rate = 0.05;
  return maker.finish(16);
}

TEST(OptimizerTwins, AllOthersOfTheTable) {
  for (const OptimizerRow& row : optimizers) {
    using enum Optimizer;
    if (row.value == Sgd || row.value == AdamW || row.value == Muon) continue;
    for (const Shape& shape : {Shape{31}, Shape{3, 100}, Shape{2, 8, 16}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : {Lie::Dense, Lie::Reversed})
          expect_twins(otherwise_case(row.value, shape, dtype, lie), cpu::update, cuda::update);
  }
}

TEST(OptimizerTwins, MasterWeightsFromTheFirstStepOn) {
  for (const std::int64_t number : {0, 3}) {
    CallMaker maker;
    maker.call.settings.masters = true;
    maker.input({5, 33}, DType::BFloat16).saved({5, 33}, Values(165, 1.5), DType::BFloat16);
    maker.saved({3 * 165}, Values(3 * 165, 0.25));
    maker.test.state.number = number;
    expect_twins(maker.finish(8), cpu::update, cuda::update);
  }
}

// One launch for as many as its arguments hold, a kernel each for those that are not dense or whose
// moments begin in the middle of 16 bytes.
TEST(OptimizerTwins, ManyParametersToALaunch) {
  static std::size_t kernels = 0;
  const auto counted = [](const Call& call, cuda::Launch& launch) {
    const std::size_t before = emulation::kernels_run();
    cuda::update(call, launch);
    kernels = emulation::kernels_run() - before;
  };
  for (const DType dtype : data_dtypes) {
    CallMaker maker;
    for (unsigned i = 0; i < 90; ++i) {
      const std::int64_t count = i == 7 ? 5000 : 8 * (1 + i % 3);
      const Shape shape{count}, twice{2 * count};
      maker.input(shape, dtype);
      maker.saved(shape, random_values(shape, 100 + i, 1, dtype), dtype);
      maker.saved(twice, Values(static_cast<std::size_t>(2 * count), 0.25), dtype);
    }
    maker.test.state.number = 2;
    expect_twins(maker.finish(8), cpu::update, counted);
    EXPECT_EQ(kernels, 2u);
  }
  CallMaker odd;
  for (const Lie lie : {Lie::Dense, Lie::Reversed}) {
    odd.input({31}, DType::BFloat16, lie).saved({31}, Values(31, 1), DType::BFloat16);
    odd.saved({62}, Values(62, 0.25), DType::BFloat16);
  }
  expect_twins(odd.finish(8), cpu::update, counted);
  EXPECT_EQ(kernels, 2u);
}

}  // namespace
}  // namespace tidemark::lookup_test
