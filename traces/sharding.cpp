// Reads and writes how data-parallel ranks share parameters.
#include "traces/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

constexpr std::string_view bucket_size = "bucket-mb=";

std::int64_t parse_bucket(std::string_view text) {
  std::int64_t mib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mib);
  if (error != std::errc() || end != text.data() + text.size() || mib < 1 ||
      mib > Sharding::most_bucket_mib)
    throw UsageError(fmt::format("shard: bucket-mb: {} is not a whole number from 1 to {}",
                                 quoted(text), Sharding::most_bucket_mib));
  return mib;
}

void parse_option(std::string_view option, Sharding& sharding) {
  const bool is_ddp = sharding.kind == Sharding::Kind::Ddp;
  const bool is_fsdp2 = sharding.kind == Sharding::Kind::Fsdp2;
  if (is_ddp && option == "bucket-view") {
    sharding.bucket_view = true;
  } else if (is_ddp && option.starts_with(bucket_size)) {
    sharding.bucket_mib = parse_bucket(option.substr(bucket_size.size()));
  } else if (is_fsdp2 && option == "no-reshard") {
    sharding.reshards = false;
  } else {
    throw UsageError(
        fmt::format("shard: no option {} ({})", quoted(option),
                    is_ddp ? "ddp has bucket-view and bucket-mb=N" : "fsdp2 has no-reshard"));
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
  return std::string(sharding_kinds[static_cast<std::size_t>(sharding.kind)].name) + options;
}

}  // namespace tidemark
