// Inflates in pieces, so that a small file that unpacks to a huge one is refused at its kind's
// limit.
#include "base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/file_limits.h"

namespace tidemark {
namespace {

/// Small enough that its zeros are still in the processor's cache when they are overwritten.
constexpr std::size_t unpacked_at_once = std::size_t{1} << 16;
/// zlib: 15 bits of window, and 16 more mean that a gzip header is there.
constexpr int gzip_window = 15 + 16;

class Inflation {
 public:
  explicit Inflation(std::string_view packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    left_ = packed.size();
    CHECK(inflateInit2(&stream_, gzip_window) == Z_OK);
  }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;
  ~Inflation() { inflateEnd(&stream_); }

  /// Appends at most so many bytes; what zlib says.
  int append_to(std::string& text) {
    const std::size_t old_size = text.size();
    text.resize(old_size + unpacked_at_once);
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + old_size);
    stream_.avail_out = unpacked_at_once;
    const std::size_t given = std::min<std::size_t>(left_, std::numeric_limits<uInt>::max());
    stream_.avail_in = static_cast<uInt>(given);
    const int said = inflate(&stream_, Z_NO_FLUSH);
    left_ -= given - stream_.avail_in;
    text.resize(old_size + unpacked_at_once - stream_.avail_out);
    return said;
  }
  bool is_at_end() const { return left_ == 0; }
  void begin_next_member() { CHECK(inflateReset(&stream_) == Z_OK); }

 private:
  z_stream stream_{};
  std::size_t left_ = 0;
};

}  // namespace

bool is_gzip(std::string_view path) { return path.ends_with(".gz"); }

std::string gunzipped(std::string_view packed, const std::string& path, const FileKindRow& kind) {
  Inflation inflation(packed);
  std::string text;
  for (;;) {
    const std::size_t old_size = text.size();
    const int said = inflation.append_to(text);
    require_within_so_far(kind, path, text.size());
    if (said == Z_STREAM_END && inflation.is_at_end()) return text;
    if (said == Z_STREAM_END)
      inflation.begin_next_member();
    else if (said == Z_BUF_ERROR ||
             (said == Z_OK && inflation.is_at_end() && text.size() == old_size))
      throw InputError(
          fmt::format("{}: not a sound gzip file: it ends early (copy it again)", path));
    else if (said != Z_OK)
      throw InputError(fmt::format("{}: not a sound gzip file (copy it again)", path));
  }
}

std::string first_bytes(const std::string& path, std::size_t count) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::string head(count, '\0');
  const int read = file ? gzread(file.get(), head.data(), static_cast<unsigned>(count)) : 0;
  head.resize(static_cast<std::size_t>(std::max(0, read)));
  return head;
}

}  // namespace tidemark
