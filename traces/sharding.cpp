// Reads and writes how data-parallel ranks share parameters.
#include "traces/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

constexpr std::string_view bucket_size = "bucket-mb=", instances = "instances=";

// Behind the "=" of an option.
std::int64_t parse_count(std::string_view option, std::string_view key, std::int64_t most) {
  const std::string_view text = option.substr(key.size());
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > most)
    throw UsageError(fmt::format("shard: {}: {} is not a whole number from 1 to {}",
                                 key.substr(0, key.size() - 1), quoted(text), most));
  return count;
}

std::string_view options_of(Sharding::Kind kind) {
  switch (kind) {
    case Sharding::Kind::Ddp:
      return "ddp has bucket-view and bucket-mb=N";
    case Sharding::Kind::Fsdp2:
      return "fsdp2 has no-reshard";
    case Sharding::Kind::Megatron:
      return "megatron has whole-states, overlap, narrow-gradients and instances=N";
  }
  return "";
}

void parse_option(std::string_view option, Sharding& sharding) {
  const bool is_ddp = sharding.kind == Sharding::Kind::Ddp;
  const bool is_fsdp2 = sharding.kind == Sharding::Kind::Fsdp2;
  const bool is_megatron = sharding.kind == Sharding::Kind::Megatron;
  if (is_ddp && option == "bucket-view") {
    sharding.bucket_view = true;
  } else if (is_ddp && option.starts_with(bucket_size)) {
    sharding.bucket_mib = parse_count(option, bucket_size, Sharding::most_bucket_mib);
  } else if (is_fsdp2 && option == "no-reshard") {
    sharding.reshards = false;
  } else if (is_megatron && option == "whole-states") {
    sharding.cuts_states = false;
  } else if (is_megatron && option == "overlap") {
    sharding.overlaps = true;
  } else if (is_megatron && option == "narrow-gradients") {
    sharding.gradients_are_wide = false;
  } else if (is_megatron && option.starts_with(instances)) {
    sharding.instances = parse_count(option, instances, Sharding::most_instances);
  } else {
    throw UsageError(
        fmt::format("shard: no option {} ({})", quoted(option), options_of(sharding.kind)));
  }
}

}  // namespace

Sharding parse_sharding(std::string_view text) {
  const std::size_t colon = text.find(':');
  Sharding sharding;
  sharding.kind = parse_name(sharding_kinds, "sharding", text.substr(0, colon));
  if (colon == std::string_view::npos) return sharding;
  for (std::size_t begin = colon + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_option(text.substr(begin, end - begin), sharding);
    begin = end + 1;
  }
  return sharding;
}

std::string to_text(const Sharding& sharding) {
  std::string options;
  const auto add = [&](const std::string& option) {
    options += (options.empty() ? ":" : ",") + option;
  };
  if (sharding.bucket_view) add("bucket-view");
  if (sharding.bucket_mib != Sharding::usual_bucket_mib)
    add(fmt::format("{}{}", bucket_size, sharding.bucket_mib));
  if (!sharding.reshards) add("no-reshard");
  if (!sharding.cuts_states) add("whole-states");
  if (sharding.overlaps) add("overlap");
  if (!sharding.gradients_are_wide) add("narrow-gradients");
  if (sharding.instances != 1) add(fmt::format("{}{}", instances, sharding.instances));
  return std::string(sharding_kinds[static_cast<std::size_t>(sharding.kind)].name) + options;
}

}  // namespace tidemark
