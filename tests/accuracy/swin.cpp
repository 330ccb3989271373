// Swin on the A100: the author's logs of reversible and PaReprop training beside predictions.
#include <algorithm>
#include <optional>

#include "tests/accuracy/page.h"

namespace tidemark {
namespace {

struct SwinRow {
  std::string size;
  std::int64_t batch;
  JsonView published;
};

struct SwinPrediction {
  Report vanilla, reversible, pareprop;
};

std::string model_of(std::string_view size) { return size == "Ti" ? "swin-t" : "swin-l"; }

SwinPrediction predict_swin(std::string_view size, std::int64_t batch, const char* framework) {
  const StepOptions step{.batch = batch,
                         .precision = Precision::Tf32,
                         .attention = Attention::Math,
                         .framework = framework,
                         .ddp = true};
  const std::string model = model_of(size);
  return {predict(model, step, "a100-80gb", "vanilla"),
          predict(model, step, "a100-80gb", "reversible:released"),
          predict(model, step, "a100-80gb", "pareprop:released")};
}

std::optional<double> published_number(const JsonView& row, const char* group, const char* key) {
  const auto values = row.find(group);
  if (!values) return std::nullopt;
  const auto value = values->find(key);
  if (!value) return std::nullopt;
  return value->number(0, 1e9);
}

std::string cell(std::optional<double> published, double predicted) {
  if (!published) return fmt::format("– / {:.2f}", predicted);
  return fmt::format("{:.2f} / {:.2f} ({})", *published, predicted, percent(predicted, *published));
}

void swin_memory(Page& page, const JsonView& reference, const char* framework) {
  page.line("### Memory, framework {}: published / predicted GiB", framework);
  page.line("");
  page.line(
      "| size | batch | vanilla allocated | reversible allocated | pareprop allocated | "
      "reversible reserved | pareprop reserved |");
  page.line("|---|---|---|---|---|---|---|");
  for (const JsonView row : reference.at("rows").items()) {
    const std::string size(row.at("size").text());
    const std::int64_t batch = row.at("batch").integer(1, 1 << 20);
    const SwinPrediction p = predict_swin(size, batch, framework);
    page.line(
        "| {} | {} | {} | {} | {} | {} | {} |", size, batch,
        cell(published_number(row, "allocated_gib", "vanilla"), in(p.vanilla.allocated_peak, gib)),
        cell(published_number(row, "allocated_gib", "reversible"),
             in(p.reversible.allocated_peak, gib)),
        cell(published_number(row, "allocated_gib", "pareprop"),
             in(p.pareprop.allocated_peak, gib)),
        cell(published_number(row, "reserved_gib", "reversible"),
             in(p.reversible.reserved_peak, gib)),
        cell(published_number(row, "reserved_gib", "pareprop"), in(p.pareprop.reserved_peak, gib)));
  }
  page.line("");
}

struct Slope {
  const char* what;
  const char* group;
  const char* key;
  Bytes (*of)(const SwinPrediction&);
};

constexpr Slope slopes[] = {{"vanilla allocated", "allocated_gib", "vanilla",
                             [](const SwinPrediction& p) { return p.vanilla.allocated_peak; }},
                            {"reversible allocated", "allocated_gib", "reversible",
                             [](const SwinPrediction& p) { return p.reversible.allocated_peak; }},
                            {"pareprop allocated", "allocated_gib", "pareprop",
                             [](const SwinPrediction& p) { return p.pareprop.allocated_peak; }},
                            {"reversible reserved", "reserved_gib", "reversible",
                             [](const SwinPrediction& p) { return p.reversible.reserved_peak; }},
                            {"pareprop reserved", "reserved_gib", "pareprop",
                             [](const SwinPrediction& p) { return p.pareprop.reserved_peak; }}};

void swin_introduction(Page& page) {
  page.line("## Swin on one A100 80 GB: reversible and PaReprop (the author's logs)");
  page.line("");
  page.line(
      "`tidemark compare swin-t --batch B --precision tf32 --attention math --optimizer adamw "
      "--ddp --framework torch-1.10 --strategies vanilla,reversible:released,pareprop:released "
      "--device a100-80gb`. `:released` keeps what the public code's variables and "
      "retain_graph keep.");
  page.line("");
  page.line(
      "**Which PyTorch made the logs?** They do not say. With the rules of 1.13, where a softmax "
      "keeps only its output, ordinary Swin needs 7.5 % less than logged, at every size. With "
      "those of 1.8 to 1.10, where it keeps its input too, the same model is within 0.5 %, and "
      "a stage-3 block saves 19.07 units of B·L·C·4 bytes, as the logs say (19.0); with 1.13 it "
      "is 17.5. So the logs were made with PyTorch before 1.11. Both are listed; under "
      "torch-1.13 vanilla and reversible miss the 5 % aim for this reason.");
  page.line("");
  page.line(
      "**What PaReprop's peak is.** Not two blocks at once, but the forward part of the second "
      "recovery: the attention function's local variables (packed qkv, scaled q, the normed "
      "input) are alive while the tuple of the first recovery still holds states and branches. "
      "Its 6.0 units above plain reversible follow from that; see Tensor::held_until.");
  page.line("");
}

std::optional<JsonView> find_row(const JsonView& reference, std::string_view size,
                                 std::int64_t batch) {
  for (const JsonView row : reference.at("rows").items())
    if (row.at("size").text() == size && row.at("batch").integer(1, 1 << 20) == batch) return row;
  return std::nullopt;
}

void swin_slopes(Page& page, const JsonView& reference) {
  page.line("### Memory per image, MiB (slope between two batches of the same size)");
  page.line("");
  page.line("| size | batches | number | published | torch-1.10 | error | torch-1.13 | error |");
  page.line("|---|---|---|---|---|---|---|---|");
  for (const auto& [size, low, high] :
       {std::tuple{"Ti", 64, 128}, std::tuple{"Ti", 256, 512}, std::tuple{"L", 64, 128}}) {
    const auto a = find_row(reference, size, low), b = find_row(reference, size, high);
    const SwinPrediction a10 = predict_swin(size, low, "torch-1.10");
    const SwinPrediction b10 = predict_swin(size, high, "torch-1.10");
    const SwinPrediction a13 = predict_swin(size, low, "torch-1.13");
    const SwinPrediction b13 = predict_swin(size, high, "torch-1.13");
    for (const Slope& slope : slopes) {
      const double images = high - low;
      const double published = (*published_number(*b, slope.group, slope.key) -
                                *published_number(*a, slope.group, slope.key)) *
                               1024 / images;
      const double with10 = in(slope.of(b10) - slope.of(a10), mib) / images;
      const double with13 = in(slope.of(b13) - slope.of(a13), mib) / images;
      page.line("| {} | {}–{} | {} | {:.1f} | {:.1f} | {} | {:.1f} | {} |", size, low, high,
                slope.what, published, with10, percent(with10, published), with13,
                percent(with13, published));
    }
  }
  page.line("");
}

void swin_times(Page& page, const JsonView& reference) {
  page.line("### Throughput ratios and launch-bound batches (framework torch-1.10)");
  page.line("");
  page.line(
      "| size | batch | reversible/vanilla published | predicted | points | "
      "pareprop/reversible published | predicted | points | predicted launch-bound |");
  page.line("|---|---|---|---|---|---|---|---|---|");
  for (const JsonView row : reference.at("rows").items()) {
    const std::string size(row.at("size").text());
    const std::int64_t batch = row.at("batch").integer(1, 1 << 20);
    const auto n = published_number(row, "images_per_s", "vanilla");
    const auto v = published_number(row, "images_per_s", "reversible");
    const auto p = published_number(row, "images_per_s", "pareprop");
    const SwinPrediction predicted = predict_swin(size, batch, "torch-1.10");
    const auto ratio = [](std::optional<double> published, const Report& a, const Report& b) {
      const double predicted_ratio = a.samples_per_second / b.samples_per_second;
      if (!published) return fmt::format("– | {:.3f} | –", predicted_ratio);
      return fmt::format("{:.3f} | {:.3f} | {:+.1f}", *published, predicted_ratio,
                         (predicted_ratio - *published) * 100);
    };
    const auto over = [](std::optional<double> a, std::optional<double> b) {
      return a && b ? std::optional(*a / *b) : std::nullopt;
    };
    page.line("| {} | {} | {} | {} | {} |", size, batch,
              ratio(over(v, n), predicted.reversible, predicted.vanilla),
              ratio(over(p, v), predicted.pareprop, predicted.reversible),
              predicted.vanilla.launch_bound ? "yes" : "no");
  }
  page.line("");
}

void swin_explanation(Page& page) {
  page.line(
      "Reserved memory: PaReprop's per-stream pools are reproduced by giving both streams pools "
      "of their own, beside the one of the default stream. Above the device's capacity the table "
      "shows what would be reserved without a limit (Ti 1024 and L 512).");
  page.line("");
  page.line(
      "Times: at saturation (Ti from 256, L from 64) the ratios are within 5 points. At Ti 64 "
      "and 128 reversible/vanilla is 8 to 10 points low: the logged images per second hold about "
      "45 ms per step that do not depend on the strategy (1/N at batch 64 minus 1/N at batch 512, "
      "times 64), which is data loading, clipping and a device synchronization per iteration. "
      "They are not part of a step here. The same term, and host time per op several times the "
      "device file's figure, hides the extra launches of small batches, where the logs scatter by "
      "10 %. PaReprop's gain is within 3 points of the published one from Ti 128 and L 32 on, and "
      "nothing of it was fitted: beside a matrix product a kernel that streams takes the SMs that "
      "saturate the memory, not all of them. The collapse at Ti 1024 (0.618) is the allocator "
      "releasing its cache every step at the device's limit; the cost of those calls "
      "is not modelled.");
  page.line("");
}

}  // namespace

void swin_section(Page& page, const JsonView& reference) {
  swin_introduction(page);
  swin_slopes(page, reference);
  swin_memory(page, reference, "torch-1.10");
  swin_times(page, reference);
  swin_explanation(page);
}

}  // namespace tidemark
