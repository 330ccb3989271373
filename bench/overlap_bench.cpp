// Is the recovery of a reversible network hidden by a second stream? Steps of `reversible` and of
// `pareprop` alternate on the CPU backend, one core per stream; their gradients must agree to the
// bit before anything is timed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "analysis/report.h"
#include "profiler/backends.h"
#include "profiler/calibrate.h"
#include "profiler/initial_values.h"
#include "profiler/measured_timeline.h"
#include "profiler/numbers.h"
#include "profiler/replay.h"
#include "traces/presets.h"

namespace tidemark {
namespace {

constexpr std::int64_t rounds = 9;

std::unique_ptr<profiler::Replay> prepared(const std::shared_ptr<const Trace>& trace,
                                           std::string_view strategy, Backend& backend) {
  auto replay =
      std::make_unique<profiler::Replay>(plan_step(trace, parse_strategy(strategy)), backend);
  const Trace& rewritten = replay->trace();
  for (std::size_t t = 0; t < rewritten.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const Tensor& tensor = rewritten[id];
    if (tensor.storage != id) continue;
    if (tensor.category == Category::Parameter)
      replay->write(
          id,
          profiler::bytes_of(profiler::initial_parameter(rewritten, id, 1), tensor.dtype).data());
    else if (tensor.category == Category::Input)
      replay->write(
          id, profiler::bytes_of(profiler::synthetic_input(rewritten, id, 1), tensor.dtype).data());
  }
  replay->keep_gradients();
  return replay;
}

bool agree(const profiler::Replay& a, const profiler::Replay& b) {
  for (std::size_t t = 0; t < a.trace().tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (a.trace()[id].category == Category::Parameter && a.gradient(id) != b.gradient(id))
      return false;
  }
  return true;
}

Timeline median(std::vector<Timeline> timelines) {
  std::ranges::sort(timelines, {}, &Timeline::duration);
  return timelines[timelines.size() / 2];
}

double milliseconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

Nanoseconds predicted_step(const std::shared_ptr<const Trace>& trace, std::string_view strategy,
                           const Device& device) {
  return evaluate(trace, parse_strategy(strategy), device, {.capacity = device.capacity})
      .report.step;
}

/// False if the gradients differ.
bool run(std::string_view model, const StepOptions& step, const Device& device, Backend& backend) {
  const auto trace = std::make_shared<const Trace>(build_trace(find_model(model), step));
  const auto alone = prepared(trace, "reversible", backend);
  const auto beside = prepared(trace, "pareprop", backend);
  std::vector<Timeline> one, two;
  for (std::int64_t i = 0; i <= rounds; ++i) {
    Timeline a = alone->step({.number = i, .seed = 1}).timeline;
    Timeline b = beside->step({.number = i, .seed = 1}).timeline;
    if (!agree(*alone, *beside)) return false;
    if (i == 0) continue;  // the first ones touch the memory
    one.push_back(std::move(a)), two.push_back(std::move(b));
  }
  const Timeline reversible = median(std::move(one)), pareprop = median(std::move(two));
  const Nanoseconds predicted = predicted_step(trace, "reversible", device);
  const Nanoseconds predicted_beside = predicted_step(trace, "pareprop", device);
  const RecoveryTime recovered = recovery_time(alone->schedule(), reversible, pareprop);
  fmt::print(
      "{}, batch {}: reversible {:.1f} ms, pareprop {:.1f} ms, {:.2f} times as fast (predicted "
      "{:.2f}); recovery {:.1f} ms, of which {:.0f} % hidden; gradients equal to the bit\n",
      model, step.batch, milliseconds(reversible.duration), milliseconds(pareprop.duration),
      milliseconds(reversible.duration) / milliseconds(pareprop.duration),
      milliseconds(predicted) / milliseconds(predicted_beside), milliseconds(recovered.alone),
      100 * milliseconds(recovered.hidden) / milliseconds(recovered.alone));
  return true;
}

}  // namespace
}  // namespace tidemark

int main() {
  using namespace tidemark;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Device device = profiler::measure_device(*backend);
  fmt::print("{}; medians of {} steps each, alternating\n", backend->description(), rounds);
  const bool swin = run("swin-t", {.batch = 1, .precision = Precision::Fp32}, device, *backend);
  const bool vit = run("vit-s-16", {.batch = 2, .precision = Precision::Fp32}, device, *backend);
  if (swin && vit) return EXIT_SUCCESS;
  fmt::print("the gradients differ\n");
  return EXIT_FAILURE;
}
