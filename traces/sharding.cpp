// Reads and writes how data-parallel ranks share parameters.
#include "traces/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

// Of counts: the key, the member, and the largest that is taken.
struct CountOption {
  std::string_view key;
  std::int64_t Sharding::*member;
  std::int64_t least = 1, most = Sharding::most_elements;
};

struct FlagOption {
  std::string_view name;
  bool Sharding::*member;
  bool value;
};

constexpr CountOption bucket_size = {"bucket-mb", &Sharding::bucket_mib, 1,
                                     Sharding::most_bucket_mib};
constexpr CountOption instances = {"instances", &Sharding::instances, 1, Sharding::most_instances};
constexpr CountOption shard_ranks = {"shard", &Sharding::shard_ranks, 2, Sharding::most_instances};
constexpr CountOption reduce_bucket = {"reduce-bucket", &Sharding::reduce_bucket};
constexpr std::array fsdp_counts = {shard_ranks};
constexpr std::array fsdp_flags = {FlagOption{"no-reshard", &Sharding::reshards, false}};
constexpr std::array ddp_counts = {bucket_size};
constexpr std::array ddp_flags = {FlagOption{"bucket-view", &Sharding::bucket_view, true}};
constexpr std::array megatron_counts = {instances};
constexpr std::array megatron_flags = {
    FlagOption{"whole-states", &Sharding::cuts_states, false},
    FlagOption{"overlap", &Sharding::overlaps, true},
    FlagOption{"narrow-gradients", &Sharding::gradients_are_wide, false},
    FlagOption{"no-fusion", &Sharding::fuses_accumulation, false}};
constexpr std::array zero_counts = {reduce_bucket};
constexpr std::array zero_flags = {FlagOption{"overlap", &Sharding::overlaps, true}};
constexpr std::array zero3_counts = {reduce_bucket, CountOption{"prefetch", &Sharding::prefetch, 0},
                                     CountOption{"max-live", &Sharding::max_live, 0},
                                     CountOption{"reuse", &Sharding::reuse_distance, 0},
                                     CountOption{"persistence", &Sharding::persistence, 0}};
constexpr std::array zero3_flags = {FlagOption{"no-overlap", &Sharding::overlaps, false}};

struct OptionsOf {
  std::span<const FlagOption> flags;
  std::span<const CountOption> counts;
};

OptionsOf options_of(Sharding::Kind kind) {
  switch (kind) {
    case Sharding::Kind::Ddp:
      return {ddp_flags, ddp_counts};
    case Sharding::Kind::Fsdp2:
    case Sharding::Kind::Fsdp1:
      return {fsdp_flags, fsdp_counts};
    case Sharding::Kind::Megatron:
      return {megatron_flags, megatron_counts};
    case Sharding::Kind::Zero1:
    case Sharding::Kind::Zero2:
      return {zero_flags, zero_counts};
    case Sharding::Kind::Zero3:
      return {zero3_flags, zero3_counts};
  }
  return {};
}

std::string_view name_of(Sharding::Kind kind) {
  return sharding_kinds[static_cast<std::size_t>(kind)].name;
}

// As its framework has it.
Sharding usual(Sharding::Kind kind) {
  Sharding sharding{.kind = kind};
  sharding.overlaps = kind == Sharding::Kind::Zero3;
  return sharding;
}

// "500", or "5e8" as DeepSpeed's manual writes it.
std::optional<std::int64_t> parse_count(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::int64_t count = 0;
  auto read = std::from_chars(text.data(), end, count);
  if (read.ec != std::errc() || count < 0) return {};
  if (read.ptr == end) return count;
  int zeros = 0;
  if (*read.ptr != 'e') return {};
  read = std::from_chars(read.ptr + 1, end, zeros);
  if (read.ec != std::errc() || read.ptr != end || zeros < 0) return {};
  for (; zeros > 0 && count > 0; --zeros) {
    if (count > Sharding::most_elements) return {};
    count *= 10;
  }
  return count;
}

// "bucket-view and bucket-mb=N".
std::string names_of(const OptionsOf& options) {
  std::vector<std::string> names;
  for (const FlagOption& flag : options.flags) names.emplace_back(flag.name);
  for (const CountOption& count : options.counts) names.push_back(fmt::format("{}=N", count.key));
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i)
    text += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

void parse_option(std::string_view option, Sharding& sharding) {
  const OptionsOf options = options_of(sharding.kind);
  for (const FlagOption& flag : options.flags)
    if (option == flag.name) return void(sharding.*flag.member = flag.value);
  for (const CountOption& known : options.counts) {
    if (!option.starts_with(known.key) || option.substr(known.key.size(), 1) != "=") continue;
    const std::string_view text = option.substr(known.key.size() + 1);
    const std::optional<std::int64_t> count = parse_count(text);
    if (!count || *count < known.least || *count > known.most)
      throw UsageError(fmt::format("shard: {}: {} is not a whole number from {} to {}", known.key,
                                   quoted(text), known.least, known.most));
    sharding.*known.member = *count;
    return;
  }
  throw UsageError(fmt::format("shard: no option {} ({} has {})", quoted(option),
                               name_of(sharding.kind), names_of(options)));
}

}  // namespace

Sharding parse_sharding(std::string_view text) {
  const std::size_t colon = text.find(':');
  Sharding sharding = usual(parse_name(sharding_kinds, "sharding", text.substr(0, colon)));
  if (colon == std::string_view::npos) return sharding;
  for (std::size_t begin = colon + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_option(text.substr(begin, end - begin), sharding);
    begin = end + 1;
  }
  return sharding;
}

std::string to_text(const Sharding& sharding) {
  const Sharding otherwise = usual(sharding.kind);
  const OptionsOf options = options_of(sharding.kind);
  std::string text;
  const auto add = [&](const std::string& option) { text += (text.empty() ? ":" : ",") + option; };
  for (const FlagOption& flag : options.flags)
    if (sharding.*flag.member != otherwise.*flag.member) add(std::string(flag.name));
  for (const CountOption& count : options.counts)
    if (sharding.*count.member != otherwise.*count.member)
      add(fmt::format("{}={}", count.key, sharding.*count.member));
  return std::string(name_of(sharding.kind)) + text;
}

}  // namespace tidemark
