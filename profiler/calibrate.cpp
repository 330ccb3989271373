#include "profiler/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/replay_report.h"
#include "simulator/cost_model.h"
#include "simulator/simulate.h"
#include "traces/models/model_config.h"

namespace tidemark {
namespace {

/// A small network of one family: its width in units of 64 channels per head.
struct Experiment {
  std::string_view family;
  std::int64_t width, depth, tokens_or_image, batch;
  Precision precision;
};

Model model_of(const Experiment& e) {
  const std::int64_t heads = e.width / 64;
  ModelConfig config;
  if (e.family == "vit")
    config = VitConfig{.patch = 16,
                       .width = e.width,
                       .depth = e.depth,
                       .heads = heads,
                       .mlp = 4 * e.width,
                       .classes = 100,
                       .drop_path = 0.1};
  else if (e.family == "swin")
    config = SwinConfig{
        .width = e.width, .depths = {2, e.depth}, .heads = {heads, 2 * heads}, .classes = 100};
  else if (e.family == "bert")
    config = BertConfig{
        .width = e.width, .depth = e.depth, .heads = heads, .mlp = 4 * e.width, .vocabulary = 2000};
  else
    config = LlamaConfig{.width = e.width,
                         .depth = e.depth,
                         .heads = heads,
                         .mlp = 3 * e.width,
                         .key_heads = heads,
                         .head_width = 64,
                         .vocabulary = 2000};
  return {.name = std::string(e.family),
          .family = std::string(e.family),
          .title = "",
          .source = "",
          .config = config};
}

std::string name_of(const Experiment& e) {
  return fmt::format("{} of width {}, {} blocks, batch {}, {}", e.family, e.width, e.depth, e.batch,
                     to_string(e.precision));
}

Trace trace_of(const Experiment& e) {
  StepOptions step{.batch = e.batch, .precision = e.precision};
  if (e.family == "vit" || e.family == "swin")
    step.image = e.tokens_or_image;
  else
    step.sequence = e.tokens_or_image;
  return build_trace(model_of(e), step);
}

// Work of two steps apart by a factor of four each, from cache-sized operands to large ones.
std::vector<Experiment> experiments() {
  std::vector<Experiment> list;
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    list.push_back({"vit", 64, 1, 64, 1, precision});
    list.push_back({"vit", 128, 1, 128, 2, precision});
    list.push_back({"vit", 256, 1, 224, 2, precision});
    list.push_back({"vit", 384, 1, 224, 8, precision});
    list.push_back({"swin", 64, 2, 112, 2, precision});
    list.push_back({"swin", 128, 2, 224, 2, precision});
    list.push_back({"bert", 128, 1, 64, 2, precision});
    list.push_back({"bert", 256, 1, 256, 4, precision});
    list.push_back({"llama", 128, 1, 64, 2, precision});
    list.push_back({"llama", 256, 1, 256, 4, precision});
  }
  return list;
}

std::vector<Experiment> held_out_experiments() {
  return {{"vit", 192, 2, 160, 4, Precision::Fp32},
          {"swin", 64, 2, 224, 3, Precision::Fp32},
          {"bert", 192, 2, 128, 6, Precision::Fp32},
          {"llama", 192, 2, 192, 3, Precision::Bf16}};
}

/// Measured times by kind of run and by work, in bins that are half as wide as a doubling.
class Samples {
 public:
  void add(const std::string& key, double work, double time) {
    const auto bin = static_cast<int>(std::floor(2 * std::log2(work)));
    bins_[key][bin].push_back({work, time});
  }

  std::map<std::string, Curve, std::less<>> curves() && {
    std::map<std::string, Curve, std::less<>> result;
    for (auto& [key, bins] : bins_)
      for (auto& [bin, points] : bins) {
        std::ranges::sort(points, {}, [](const CurvePoint& p) { return p.time / p.work; });
        result[key].push_back(points[points.size() / 2]);
      }
    return result;
  }

 private:
  std::map<std::string, std::map<int, std::vector<CurvePoint>>> bins_;
};

ReplayAnswer replayed(const Experiment& experiment, const std::string& strategy,
                      const Device& device, Backend& backend) {
  ReplayQuestion question;
  question.trace = std::make_shared<const Trace>(trace_of(experiment));
  question.strategy = parse_strategy(strategy);
  question.device = device;
  question.steps = 3;
  question.checks_gradients = false;
  return replay(question, backend);
}

void sample(const ReplayAnswer& answer, const Device& device, Samples& samples) {
  const Schedule& schedule = answer.predicted.schedule;
  const CostModel costs(*answer.predicted.planned.trace, device);
  for (const TimedRun& timed : answer.measured->runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run) continue;
    const double work = CostModel::work_of(costs.of(schedule, *run));
    const auto time = static_cast<double>((timed.end - timed.begin).count());
    if (work > 0 && time > 0) samples.add(costs.curve_key(schedule, *run), work, time);
  }
}

}  // namespace

Calibration calibrate(Backend& backend,
                      const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<Experiment> list = experiments(), held_out = held_out_experiments();
  // Between them these run every kind of kernel.
  constexpr std::array strategies = {"vanilla", "mesa", "lowmemorybp", "reversible"};
  const std::size_t all = list.size() * strategies.size() + held_out.size();
  std::size_t done = 0;
  const auto advance = [&] {
    if (progress) progress(++done, all);
  };
  Calibration result{.device = measure_device(backend), .held_out = {}};
  Samples samples;
  for (const Experiment& experiment : list)
    for (const char* strategy : strategies) {
      const ReplayAnswer answer = replayed(experiment, strategy, result.device, backend);
      if (answer.measured) sample(answer, result.device, samples);
      advance();
    }
  result.device.curves = std::move(samples).curves();
  for (const Experiment& experiment : held_out) {
    const ReplayAnswer answer = replayed(experiment, "vanilla", result.device, backend);
    if (answer.measured)
      result.held_out.push_back(
          {name_of(experiment), answer.report.predicted.step, answer.report.measured.step});
    advance();
  }
  return result;
}

}  // namespace tidemark
