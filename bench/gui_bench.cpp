// What looking costs with five million events: opening, and a frame at any zoom. The pictures
// themselves are drawn by the GPU and are not counted. Each checks its answer before it is timed.
// A larger file (scripts/make_large_timeline.py) instead:
// TIDEMARK_BENCH_TIMELINE=large.timeline.json
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "analysis/recording/predicted_recording.h"
#include "gui/navigation.h"
#include "gui/stage.h"
#include "traces/presets.h"

namespace tidemark {
namespace {

// A narrow LLaMA so deep that its step has five million runs and memory events.
gui::WhatIf deep_llama() {
  Model model = find_model("llama-7b");
  auto& config = std::get<DecoderConfig>(model.config);
  config.depth = 31'000, config.width = 64, config.head_width = 16;
  config.heads = config.key_heads = 4, config.mlp = 128;
  return {.scenario = {.model = model,
                       .step = {.batch = 1, .sequence = 16, .precision = Precision::Bf16},
                       .device = find_device("a100-80gb"),
                       .strategies = {}},
          .strategies = {parse_strategy("vanilla")}};
}

std::size_t events_of(const gui::Opened& opened) {
  return opened.timeline().runs.size() + opened.timeline().memory.size();
}

// "VmRSS" is what the process has now, "VmHWM" the most that it ever had.
double gib_of(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / (1 << 20);
  return 0;
}

// "" = none was named.
std::string named_timeline() {
  const char* const path = std::getenv("TIDEMARK_BENCH_TIMELINE");
  return path ? path : "";
}

// The indices alone: the step is in memory.
void index_five_million_events(benchmark::State& state) {
  const gui::Prediction made = predict(deep_llama()).front();
  for (auto _ : state) {
    const gui::Opened opened(made.opened->recording);
    if (opened.memory().total_of(opened.peak()) != made.report.live_peak)
      state.SkipWithError("wrong peak");
    state.counters["events"] = static_cast<double>(events_of(opened));
  }
}
BENCHMARK(index_five_million_events)->Unit(benchmark::kMillisecond)->Iterations(1);

// From a file to what can be drawn.
void open_file(benchmark::State& state) {
  const std::string made_here = "tidemark_bench.timeline.json.zst", named = named_timeline();
  if (named.empty()) write_recording(made_here, predict(deep_llama()).front().opened->recording);
  for (auto _ : state) {
    const gui::Opened opened(read_recording(named.empty() ? made_here : named));
    state.counters["events"] = static_cast<double>(events_of(opened));
    state.counters["GiB"] = gib_of("VmRSS");
    state.counters["most_GiB"] = gib_of("VmHWM");
  }
  std::remove(made_here.c_str());
}
BENCHMARK(open_file)->Unit(benchmark::kMillisecond)->Iterations(1);

Recording large_recording() {
  const std::string named = named_timeline();
  return named.empty() ? predict(deep_llama()).front().opened->recording : read_recording(named);
}

// A window on that step, which is opened once for all benchmarks.
class DeepWindow {
 public:
  /// Zoomed in by so many halvings, with the mouse at this height.
  explicit DeepWindow(std::int64_t halvings, float mouse_y = -1) {
    if (model().is_empty()) model().add(large_recording());
    show_all(opened(), view);
    for (std::int64_t i = 0; i < halvings; ++i)
      view.visible = zoomed(view.visible, 0.7 * opened().end(), 0.5, {opened().end()});
    if (mouse_y >= 0) input_.x = 600, input_.y = mouse_y;
  }

  static gui::ViewModel& model() {
    static gui::ViewModel only;
    return only;
  }
  static const gui::Opened& opened() { return *model().recordings().front().opened; }

  void frame() { stage_.frame(model(), view, input_, {1920, 1080}); }
  /// What comes beside the drawing is waited for.
  void settle() {
    for (int i = 0; i < 3 || !model().live().is_complete(); ++i) {
      frame();
      model().wait();
    }
  }

  gui::ViewState view;

 private:
  gui::Stage stage_{1};
  gui::Input input_;
};

// The argument is the zoom: how many halvings of the whole.
void frame_at_zoom(benchmark::State& state) {
  DeepWindow window(state.range(0), 65);
  window.settle();
  const gui::FrameFacts& facts = window.view.facts;
  if (state.range(0) == 0 && facts.runs != DeepWindow::opened().timeline().runs.size())
    state.SkipWithError("runs are missing");
  for (auto _ : state) window.frame();
  state.counters["cells"] = static_cast<double>(facts.cells);
  state.counters["runs"] = static_cast<double>(facts.runs);
  state.counters["GiB"] = gib_of("VmRSS");
}
BENCHMARK(frame_at_zoom)
    ->Arg(0)
    ->Arg(4)
    ->Arg(8)
    ->Arg(12)
    ->Arg(16)
    ->Arg(20)
    ->Unit(benchmark::kMillisecond);

// The stack by category, module or tensor, whole and zoomed in.
void frame_of_bands(benchmark::State& state) {
  DeepWindow window(state.range(1), 300);
  window.view.curve.by = static_cast<gui::CurveBy>(state.range(0));
  window.settle();
  for (auto _ : state) window.frame();
  state.counters["boxes"] = static_cast<double>(window.view.facts.bands);
}
BENCHMARK(frame_of_bands)->ArgsProduct({{0, 1, 2}, {0, 8, 16}})->Unit(benchmark::kMillisecond);

// The cursor moves by a thousand states each frame, so that the live set is made anew all the time.
void frame_with_moving_cursor(benchmark::State& state) {
  DeepWindow window(0);
  gui::ViewState& view = window.view;
  const gui::Opened& opened = DeepWindow::opened();
  for (auto _ : state) {
    put_cursor(opened, view.cursor > 1000 ? view.cursor - 1000 : opened.peak(), view);
    window.frame();
  }
}
BENCHMARK(frame_with_moving_cursor)->Unit(benchmark::kMillisecond);

// The largest tensor there is: of a file that repeats a step, one that each repetition uses.
void frame_with_a_tensor_selected(benchmark::State& state) {
  DeepWindow window(state.range(0));
  select_buffer(DeepWindow::opened(), DeepWindow::opened().buffers().by_size()[0], window.view);
  window.settle();
  for (auto _ : state) window.frame();
}
BENCHMARK(frame_with_a_tensor_selected)->Arg(0)->Arg(12)->Unit(benchmark::kMillisecond);

// From a changed input to indices that can be drawn.
void what_if_llama_13b(benchmark::State& state) {
  const gui::WhatIf what_if{
      .scenario = {.model = find_model("llama-13b"),
                   .step = {.batch = 8, .sequence = 2048, .precision = Precision::AmpBf16},
                   .device = find_device("a100-80gb"),
                   .strategies = {}},
      .strategies = {parse_strategy("lowmemorybp")}};
  if (!predict(what_if).front().opened) state.SkipWithError("no answer");
  for (auto _ : state) benchmark::DoNotOptimize(predict(what_if));
}
BENCHMARK(what_if_llama_13b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tidemark
