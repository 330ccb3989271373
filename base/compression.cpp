// Decompresses in pieces, so that a small file that claims to be huge costs nothing.
#include "base/compression.h"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/file_limits.h"

namespace tidemark {
namespace {

/// Small enough that its zeros are still in the processor's cache when they are overwritten.
constexpr std::size_t growth_step = std::size_t{1} << 16;

/// `place`: of the packed bytes, where the decompressor stood.
[[noreturn]] void fail_at(const std::string& path, std::size_t place, std::size_t code) {
  if (place == 0 && ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown)
    throw InputError(fmt::format(
        "{}: not a zstd file, although it is named .zst (rename it if it is a plain text)", path));
  throw InputError(fmt::format("{}: not a sound zstd file: {} behind byte {} (copy it again)", path,
                               ZSTD_getErrorName(code), place));
}

}  // namespace

std::string compressed(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
  CHECK(!ZSTD_isError(size));  // the buffer is large enough for any text
  packed.resize(size);
  return packed;
}

std::string decompressed(std::string_view packed, const std::string& path, const FileKindRow& kind,
                         ReadProgress* progress) {
  if (progress) progress->begin("unpacking");
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          ZSTD_freeDStream);
  ZSTD_inBuffer input{packed.data(), packed.size(), 0};
  std::string text;
  // Memory that the text does not fill is never touched, so a wrong size costs nothing.
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size != ZSTD_CONTENTSIZE_UNKNOWN && size != ZSTD_CONTENTSIZE_ERROR) {
    require_within(kind, path, size);
    text.reserve(size + growth_step);  // and a last attempt to get more
  }
  std::size_t hint = 1;  // zero when a frame ends
  bool goes_on = true;
  while (goes_on) {
    const std::size_t old_size = text.size();
    const std::size_t old_position = input.pos;
    text.resize(old_size + growth_step);
    ZSTD_outBuffer output{text.data(), text.size(), old_size};
    hint = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(hint)) fail_at(path, input.pos, hint);
    text.resize(output.pos);
    require_within_so_far(kind, path, text.size());
    goes_on = input.pos > old_position || output.pos > old_size;
    if (progress)
      progress->reach(static_cast<double>(input.pos) /
                      static_cast<double>(std::max<std::size_t>(1, input.size)));
    if (hint == 0 && input.pos == input.size) return text;
  }
  throw InputError(
      fmt::format("{}: not a sound zstd file: it ends early, behind byte {} (copy it again)", path,
                  packed.size()));
}

}  // namespace tidemark
