// A picture is a PNG that another reader would see as it was drawn.
#include "gui/drawing/image.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdlib>
#include <random>

namespace tidemark::gui::image_test {
namespace {

std::uint32_t number_at(const std::string& png, std::size_t place) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(png[place + i]);
  return number;
}

/// Type and content of each chunk, whose checksum is right.
std::vector<std::pair<std::string, std::string>> chunks_of(const std::string& png) {
  std::vector<std::pair<std::string, std::string>> chunks;
  for (std::size_t place = 8; place + 12 <= png.size();) {
    const std::size_t size = number_at(png, place);
    const std::string type_and_content = png.substr(place + 4, 4 + size);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(type_and_content.data()),
                           static_cast<uInt>(type_and_content.size()));
    EXPECT_EQ(number_at(png, place + 8 + size), sum);
    chunks.emplace_back(type_and_content.substr(0, 4), type_and_content.substr(4));
    place += 12 + size;
  }
  return chunks;
}

int nearest_of(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int l = std::abs(guess - left), a = std::abs(guess - above), c = std::abs(guess - corner);
  if (l <= a && l <= c) return left;
  return a <= c ? above : corner;
}

/// The pixels, by the rules of the format (RFC 2083, section 6).
std::vector<std::uint32_t> pixels_of(const std::string& content, int width, int height) {
  const std::size_t stride = 3 * static_cast<std::size_t>(width);
  std::vector<unsigned char> rows((stride + 1) * static_cast<std::size_t>(height));
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(content.data()),
                       content.size()),
            Z_OK);
  EXPECT_EQ(size, rows.size());
  std::vector<unsigned char> above(stride), now(stride);
  std::vector<std::uint32_t> pixels;
  for (int y = 0; y < height; ++y) {
    const unsigned char* row = rows.data() + static_cast<std::size_t>(y) * (stride + 1);
    for (std::size_t i = 0; i < stride; ++i) {
      const int left = i < 3 ? 0 : now[i - 3], up = above[i], corner = i < 3 ? 0 : above[i - 3];
      const std::array predictions = {0, left, up, (left + up) / 2, nearest_of(left, up, corner)};
      now[i] = static_cast<unsigned char>(row[i + 1] + predictions.at(row[0]));
    }
    for (std::size_t i = 0; i < stride; i += 3)
      pixels.push_back(0xff000000U | std::uint32_t{now[i + 2]} << 16 |
                       std::uint32_t{now[i + 1]} << 8 | now[i]);
    std::swap(above, now);
  }
  return pixels;
}

Image noise(int width, int height) {
  std::mt19937 random(404);
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    image.pixels.push_back(0xff000000U |
                           static_cast<std::uint32_t>(random() & (i % 3 == 0 ? 0xffffffU : 0xffU)));
  return image;
}

TEST(Image, IsAPngOfItsSize) {
  const std::string png = to_png(noise(5, 3));
  EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
  const auto chunks = chunks_of(png);
  ASSERT_EQ(chunks.front().first, "IHDR");
  EXPECT_EQ(number_at(chunks.front().second, 0), 5u);
  EXPECT_EQ(number_at(chunks.front().second, 4), 3u);
  EXPECT_EQ(chunks.front().second.substr(8, 2), std::string("\x08\x02"));  // 8 bits, RGB
  EXPECT_EQ(chunks.back().first, "IEND");
}

TEST(Image, KeepsEveryPixel) {
  for (const Image& image : {noise(1, 1), noise(7, 5), noise(64, 33)}) {
    std::string content;
    for (const auto& [type, part] : chunks_of(to_png(image)))
      if (type == "IDAT") content += part;
    EXPECT_EQ(pixels_of(content, image.width, image.height), image.pixels);
  }
}

}  // namespace
}  // namespace tidemark::gui::image_test
