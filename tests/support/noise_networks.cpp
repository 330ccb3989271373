// Steps of whole networks on real kernels, with and without codes.
#include "tests/support/noise_networks.h"

#include "profiler/gradient_difference.h"
#include "profiler/initial_values.h"
#include "profiler/numbers.h"
#include "profiler/replay.h"
#include "profiler/replay_report.h"
#include "simulator/cost/usual_device.h"
#include "tests/support/small_models.h"

namespace tidemark {
namespace {

constexpr std::int64_t width = 64, depth = 4, head = 32, tokens = 64, words = 256;

std::vector<Model> measured_models() {
  return {small_model("vit", VitConfig{.image = 32,
                                       .patch = 4,
                                       .width = width,
                                       .depth = depth,
                                       .heads = width / head,
                                       .mlp = 4 * width,
                                       .classes = 10}),
          small_model("swin", SwinConfig{.image = 32,
                                         .patch = 2,
                                         .width = width / 2,
                                         .depths = {depth / 2, depth / 2},
                                         .heads = {1, 2},
                                         .window = 4,
                                         .classes = 10,
                                         .drop_path = 0}),
          small_model("bert", BertConfig{.width = width,
                                         .depth = depth,
                                         .heads = width / head,
                                         .mlp = 4 * width,
                                         .vocabulary = words,
                                         .positions = tokens}),
          small_model("gpt2", Gpt2Config{.width = width,
                                         .depth = depth,
                                         .heads = width / head,
                                         .mlp = 4 * width,
                                         .vocabulary = words,
                                         .positions = tokens}),
          small_model("llama", DecoderConfig{.width = width,
                                             .depth = depth,
                                             .heads = width / head,
                                             .mlp = 3 * width,
                                             .key_heads = width / head,
                                             .head_width = head,
                                             .vocabulary = words,
                                             .positions = tokens})};
}

std::vector<NoiseNetwork> networks_with(double dropout) {
  std::vector<NoiseNetwork> networks;
  for (const Model& model : measured_models()) {
    const StepOptions step{.batch = 4, .attention = Attention::Math, .dropout = dropout};
    networks.push_back(
        {model.name, model, std::make_shared<const Trace>(build_trace(model, step))});
  }
  return networks;
}

// Of the parameters and inputs that follow from the seed.
profiler::NamedValues gradients_of(const PlannedStep& planned, Backend& backend, std::uint64_t seed,
                                   std::uint64_t draw) {
  profiler::Replay replay(planned, backend);
  const Trace& trace = replay.trace();
  const profiler::NamedValues parameters = profiler::initial_parameters(trace, seed);
  const auto for_each_storage = [&](Category category, auto visit) {
    for (std::size_t t = 0; t < trace.tensors.size(); ++t)
      if (const auto id = static_cast<TensorId>(t);
          trace[id].category == category && trace[id].storage == id)
        visit(id, trace[id]);
  };
  const auto write = [&](TensorId id, const std::vector<double>& numbers) {
    replay.write(id, profiler::bytes_of(numbers, trace[id].dtype).data());
  };
  for_each_storage(Category::Parameter,
                   [&](TensorId id, const Tensor& t) { write(id, parameters.at(t.name)); });
  for_each_storage(Category::Input, [&](TensorId id, const Tensor&) {
    write(id, profiler::synthetic_input(trace, id, seed));
  });
  replay.keep_gradients();
  replay.step({.seed = draw});
  profiler::NamedValues gradients;
  for_each_storage(Category::Parameter, [&](TensorId id, const Tensor& t) {
    if (std::vector<double> gradient = replay.gradient(id); !gradient.empty())
      gradients[t.name] = std::move(gradient);
  });
  return gradients;
}

}  // namespace

std::vector<NoiseNetwork> noise_networks() { return networks_with(0); }

std::vector<NoiseNetwork> noise_network_variants() {
  std::vector<NoiseNetwork> networks = networks_with(0.1);
  for (NoiseNetwork& network : networks) network.name += "+dropout";
  for (NoiseNetwork& network : noise_networks()) {
    const PlannedStep step = plan_step(network.trace, parse_strategy("ms-bp"));
    if (step.refusal.empty())
      networks.push_back({network.name + "+ms-bp", network.model, step.trace});
  }
  return networks;
}

double measured_noise(const Trace& trace, const std::vector<TensorId>& coded, int bits,
                      std::uint64_t seeds, std::uint64_t draws) {
  const auto shared = std::make_shared<const Trace>(trace);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const PlannedStep exact{shared, keep_everything(trace), ""};
  PlannedStep noisy = exact;
  for (const TensorId storage : coded)
    quantize(noisy.plan, storage, mesa_encoding(trace[storage].shape, bits), "measured");
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (std::uint64_t draw = 1; draw <= draws; ++draw) {
      // The draw is dropout's, too.
      const profiler::NamedValues reference = gradients_of(exact, *backend, seed, draw);
      const double error =
          profiler::gradient_difference(gradients_of(noisy, *backend, seed, draw), reference)
              .overall;
      sum += error * error;
    }
  }
  return sum / static_cast<double>(seeds * draws);
}

double measured_noise(std::shared_ptr<const Trace> trace, const std::string& strategy) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  profiler::ReplayScenario scenario{.trace = std::move(trace),
                                    .strategy = parse_strategy(strategy),
                                    .device = find_device(std::string(usual_device)),
                                    .steps = 0,
                                    .warm_up = 1};
  const double error = profiler::replay(scenario, *backend).report.gradients->difference.overall;
  return error * error;
}

}  // namespace tidemark
