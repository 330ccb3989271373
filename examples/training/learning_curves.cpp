// Draws smoothed losses on the left, and on the right a dot per seed on vanilla's noise band.
#include "examples/training/learning_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/export/axis.h"
#include "analysis/export/svg.h"
#include "examples/training/noise.h"

namespace tidemark::training {
namespace {

constexpr double width = 960, height = 330, top = 50, plot_height = 230;
constexpr double curves_left = 50, curves_width = 420;
constexpr double ends_left = 690, ends_width = 240;

constexpr Color band_color{0xD8, 0xD8, 0xD8};

// The mean over seeds and over the steps around each: a single batch is noise.
std::vector<double> smoothed(const Trained& trained) {
  const std::vector<double>& first = trained.runs.front().losses;
  const auto steps = std::ssize(first), reach = steps / 50;
  std::vector<double> curve(first.size());
  for (std::ptrdiff_t i = 0; i < steps; ++i) {
    const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(0, i - reach),
                         end = std::min(steps, i + reach + 1);
    const double count =
        static_cast<double>(end - begin) * static_cast<double>(trained.runs.size());
    for (const TrainedRun& run : trained.runs)
      for (std::ptrdiff_t k = begin; k < end; ++k)
        curve[static_cast<std::size_t>(i)] += run.losses[static_cast<std::size_t>(k)] / count;
  }
  return curve;
}

class Picture {
 public:
  Picture(std::string_view title, std::span<const Trained> all) : svg_(width, height, title) {
    for (const Trained& trained : all)
      if (trained.refusal.empty()) strategies_.push_back(&trained);
    svg_.text(curves_left, 20, title, {.kind = "title", .size = 13});
  }

  std::string draw() && {
    draw_curves();
    draw_ends();
    return std::move(svg_).finish();
  }

 private:
  static Color color_of(std::size_t strategy) { return line_colors[strategy % line_colors.size()]; }
  static std::string_view kind_of(std::size_t strategy) {
    return strategy < line_colors.size() ? "front" : "front dashed";
  }

  void draw_curves() {
    std::vector<std::vector<double>> curves;
    double most = 0;
    for (const Trained* trained : strategies_) {
      curves.push_back(smoothed(*trained));
      most = std::max(most, std::ranges::max(curves.back()));
    }
    const exports::Axis losses = exports::count_axis(most, 5);
    const exports::Axis steps = exports::count_axis(static_cast<double>(curves.front().size()), 6);
    const auto y_of = [&](double loss) { return top + plot_height * (1 - losses.place(loss)); };
    const auto x_of = [&](double step) { return curves_left + curves_width * steps.place(step); };
    svg_.text(curves_left, 37, "training loss, measured, mean over seeds", {.kind = "dim"});
    for (const exports::Axis::Tick& tick : losses.ticks) {
      svg_.line(curves_left, y_of(tick.value), curves_left + curves_width, y_of(tick.value),
                "grid");
      svg_.text(curves_left - 6, y_of(tick.value) + 4, tick.text, {.anchor = exports::Anchor::End});
    }
    for (const exports::Axis::Tick& tick : steps.ticks)
      svg_.text(x_of(tick.value), top + plot_height + 18, tick.text,
                {.anchor = exports::Anchor::Middle});
    svg_.text(curves_left + curves_width / 2, top + plot_height + 34, "step",
              {.kind = "dim", .anchor = exports::Anchor::Middle});
    // Vanilla lies on top. A point every other pixel is enough.
    const std::size_t stride = std::max<std::size_t>(1, curves.front().size() / 200);
    for (std::size_t c = curves.size(); c-- > 0;) {
      std::string path;
      for (std::size_t i = 0; i < curves[c].size(); i += stride)
        path += fmt::format("{}{} {}", i == 0 ? "M" : "L",
                            exports::svg_number(x_of(static_cast<double>(i + 1))),
                            exports::svg_number(y_of(curves[c][i])));
      svg_.stroke(path, color_of(c), kind_of(c));
    }
  }

  // A row per strategy: a dot per seed on the band that is within noise.
  void draw_ends() {
    const Spread vanilla = spread(*strategies_.front(), Measure::HeldOutLoss);
    const double reach = noise_limit * vanilla.deviation;
    double low = vanilla.mean - reach, high = vanilla.mean + reach;
    for (const Trained* trained : strategies_)
      for (const TrainedRun& run : trained->runs) {
        low = std::min(low, run.held_out_loss);
        high = std::max(high, run.held_out_loss);
      }
    const double margin = std::max(1e-6, (high - low) / 20);
    const auto x_of = [&](double loss) {
      return ends_left + ends_width * (loss - low + margin) / (high - low + 2 * margin);
    };
    const double row = plot_height / static_cast<double>(strategies_.size());
    svg_.text(ends_left, 37, "held-out loss: a dot per seed, a line at the mean", {.kind = "dim"});
    svg_.rect({x_of(vanilla.mean - reach), top,
               x_of(vanilla.mean + reach) - x_of(vanilla.mean - reach), plot_height},
              band_color, "within noise: vanilla's mean ± 2 standard deviations over its seeds");
    for (std::size_t s = 0; s < strategies_.size(); ++s) {
      const double y = top + row * (static_cast<double>(s) + 0.5);
      svg_.text(ends_left - 12, y + 4, strategies_[s]->strategy, {.anchor = exports::Anchor::End});
      svg_.stroke(fmt::format("M{} {}h28", exports::svg_number(curves_left + curves_width + 14),
                              exports::svg_number(y)),
                  color_of(s), kind_of(s));
      for (const TrainedRun& run : strategies_[s]->runs)
        svg_.circle(x_of(run.held_out_loss), y, 4, color_of(s),
                    fmt::format("{}: {:.4f}", strategies_[s]->strategy, run.held_out_loss));
      const double mean = x_of(spread(*strategies_[s], Measure::HeldOutLoss).mean);
      svg_.line(mean, y - 7, mean, y + 7, "mark");
    }
    for (const double loss : {low, vanilla.mean, high})
      svg_.text(x_of(loss), top + plot_height + 18, fmt::format("{:.3f}", loss),
                {.anchor = exports::Anchor::Middle});
    svg_.text(x_of(vanilla.mean), top + plot_height + 34, "grey: vanilla's mean ± 2 deviations",
              {.kind = "dim", .anchor = exports::Anchor::Middle});
  }

  exports::Svg svg_;
  std::vector<const Trained*> strategies_;
};

}  // namespace

std::string learning_curves(std::string_view title, std::span<const Trained> strategies) {
  return Picture(title, strategies).draw();
}

}  // namespace tidemark::training
