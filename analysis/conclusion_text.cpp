// The sentences of a conclusion.
#include <fmt/format.h>

#include "analysis/conclusion.h"

namespace tidemark {
namespace {

constexpr std::string_view expandable_option = "--alloc-conf expandable_segments:True";

std::string names(const Standing& standing) {
  std::string text;
  const std::size_t count = standing.strategies.size();
  for (std::size_t i = 0; i < count; ++i)
    text += (i == 0 ? "" : i + 1 == count ? " and " : ", ") + standing.strategies[i];
  return text;
}

bool is_one(const Standing& standing) { return standing.strategies.size() == 1; }

bool names_reference(const Standing& standing) {
  return standing.strategies.front() == reference_strategy().name;
}

std::string capitalized(std::string text) {
  if (text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

std::string price(const Standing& standing) {
  if (!standing.time_ratio) return "";
  const double percent = (*standing.time_ratio - 1) * 100;
  const std::string whose =
      standing.one_time ? "" : fmt::format(" with {}", standing.strategies.front());
  if (percent < 0.05) return ", at no cost in time" + whose;
  return fmt::format(", for {:.1f} % more time{}", percent, whose);
}

std::string shortage_text(const Shortage& shortage) {
  if (shortage.short_by.count > 0) return to_text(shortage.short_by) + " short";
  if (!shortage.fits_expandable.value_or(false)) return "kept out by fragmentation";
  return fmt::format("kept out by fragmentation, and fits with {}", expandable_option);
}

std::string where(const Conclusion& c) {
  return fmt::format("{} ({})", to_text(c.capacity), c.device);
}

std::string nothing_fits(const Conclusion& c) {
  const std::string missing = shortage_text(c.nearest);
  if (c.compared == 1)
    return fmt::format("{} does not fit in {}: it is {}.", capitalized(names(*c.smallest)),
                       where(c), missing);
  if (c.smallest->strategies.size() == c.compared)
    return fmt::format("Nothing fits in {}, and no strategy needs less than another: {}.", where(c),
                       missing);
  const bool one = is_one(*c.smallest);
  return fmt::format("Nothing fits in {}: {} {} nearest and {} {}.", where(c), names(*c.smallest),
                     one ? "comes" : "come", one ? "is" : "are", missing);
}

// Who needs least, if that is somebody else and noticeably less.
std::string least_text(const Conclusion& c) {
  if (c.smallest->strategies.size() == c.compared)
    return c.compared > 1 ? "; no strategy needs less" : "";
  const std::string& fastest = c.fastest->strategies.front();
  for (const std::string& name : c.smallest->strategies)
    if (name == fastest) return "";
  return fmt::format("; {} {} least, {}{}", names(*c.smallest),
                     is_one(*c.smallest) ? "needs" : "need", to_text(c.smallest->allocated),
                     price(*c.smallest));
}

std::string something_fits(const Conclusion& c) {
  const Standing& fastest = *c.fastest;
  const std::string size = fmt::format("{} of {}", to_text(fastest.allocated), to_text(c.capacity));
  if (c.compared == 1) return fmt::format("{} fits ({}).", capitalized(names(fastest)), size);
  if (names_reference(fastest))
    return fmt::format("Vanilla fits ({}) and {}{}.", size,
                       is_one(fastest) ? "is the fastest" : "nothing is faster", least_text(c));
  const std::string vanilla =
      c.vanilla ? fmt::format("Vanilla is {}; ", shortage_text(*c.vanilla)) : "";
  return fmt::format("{}{} {} the fastest that {} ({}{}){}.", vanilla, names(fastest),
                     is_one(fastest) ? "is" : "are", is_one(fastest) ? "fits" : "fit", size,
                     price(fastest), least_text(c));
}

std::string maker_text(const Conclusion& c) {
  const auto at_peak = [&](Category category) {
    return c.at_peak[static_cast<std::size_t>(category)];
  };
  const std::string& name = c.smallest->strategies.front();
  const Bytes held = at_peak(Category::Parameter) + at_peak(Category::Gradient) +
                     at_peak(Category::OptimizerState);
  switch (c.maker) {
    case PeakMaker::Other:
      return "";
    case PeakMaker::OptimizerStep:
      return fmt::format(
          " The optimizer step makes the peak of {}, where strategies save nothing: {} of "
          "parameters, gradients and optimizer state and {} of temporaries.",
          name, to_text(held), to_text(at_peak(Category::Temporary)));
    case PeakMaker::Loss:
      return fmt::format(
          " The logits and their loss make the peak of {}, where strategies save nothing: a "
          "smaller --batch or --sequence lowers it.",
          name);
  }
  return "";
}

std::string remedies_text(const Conclusion& c) {
  std::string text;
  for (const Remedy& remedy : c.remedies)
    text += fmt::format("{}{} would need {}{}", text.empty() ? " " : ", ", remedy.option,
                        to_text(remedy.allocated), remedy.fits ? " and fit" : "");
  if (!text.empty()) text += ".";
  return text;
}

}  // namespace

std::string to_text(const Conclusion& conclusion) {
  if (conclusion.compared == 0) return "None of these strategies applies to this model.";
  return (conclusion.fastest ? something_fits(conclusion) : nothing_fits(conclusion)) +
         maker_text(conclusion) + remedies_text(conclusion);
}

}  // namespace tidemark
