// Settings are read as PyTorch reads them, sizes round as there, and mistakes name a remedy.
#include "simulator/allocator/allocator_settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace tidemark::allocator::allocator_settings_test {
namespace {

using namespace literals;

// The table of roundup_power2_divisions after reading `list`.
std::vector<std::int64_t> divisions(const std::string& list) {
  const auto table = parse_allocator_settings("roundup_power2_divisions:" + list).roundup_divisions;
  return {table.begin(), table.end()};
}

std::string settings_error(const std::string& text) {
  try {
    parse_allocator_settings(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AllocatorSettings, AreDefaultsForNoText) {
  EXPECT_EQ(parse_allocator_settings(""), AllocatorSettings{});
  EXPECT_EQ(parse_allocator_settings("  "), AllocatorSettings{});
}

TEST(AllocatorSettings, TakesAllOptionsAtOnce) {
  const AllocatorSettings expected{.max_split_size = 128_MiB,
                                   .max_non_split_rounding = 40_MiB,
                                   .roundup_divisions = {4, 4, 4, 4, 4, 4, 4, 4,  //
                                                         4, 4, 4, 4, 4, 4, 4, 4},
                                   .expandable_segments = true,
                                   .garbage_collection_threshold = 0.75};
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:128,max_non_split_rounding_mb:40,"
                                     "roundup_power2_divisions:4,expandable_segments:True,"
                                     "garbage_collection_threshold:0.75"),
            expected);
}

// PyTorch's own limits: sizes above its large buffer of 20 MiB, up to 128 threads, shares inside.
TEST(AllocatorSettings, AreWithinPytorchsLimits) {
  for (const char* text : {"max_split_size_mb:21", "max_non_split_rounding_mb:21",
                           "pinned_num_register_threads:1", "pinned_num_register_threads:128",
                           "roundup_power2_divisions:[>:0]", "roundup_power2_divisions:1",
                           "roundup_power2_divisions:[1:0]", "garbage_collection_threshold:0.999"})
    EXPECT_EQ(settings_error(text), "accepted");
  for (const char* text :
       {"max_split_size_mb:20", "max_non_split_rounding_mb:20", "pinned_num_register_threads:0",
        "pinned_num_register_threads:256", "pinned_num_register_threads:3",
        "roundup_power2_divisions:0", "roundup_power2_divisions:[1:3]",
        "roundup_power2_divisions:[0:1]", "garbage_collection_threshold:0",
        "garbage_collection_threshold:1", "max_split_size_mb:-30"})
    EXPECT_NE(settings_error(text), "accepted") << text;
}

TEST(AllocatorSettings, IgnoresBlanksAndACommaAtTheEnd) {
  EXPECT_EQ(parse_allocator_settings(" max_split_size_mb : 21 , "),
            (AllocatorSettings{.max_split_size = 21_MiB}));
}

TEST(AllocatorSettings, KeepsTheLastOfEqualOptions) {
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:30,max_split_size_mb:40"),
            (AllocatorSettings{.max_split_size = 40_MiB}));
}

TEST(AllocatorSettings, DropsWhatDoesNotChangeDeviceMemory) {
  EXPECT_EQ(parse_allocator_settings("backend:native,release_lock_on_cudamalloc:True,"
                                     "pinned_use_cuda_host_register:False,"
                                     "pinned_num_register_threads:8,"
                                     "pinned_use_background_threads:True"),
            AllocatorSettings{});
}

TEST(AllocatorSettings, FillTheDivisionsBelowTheFirstKeyOnly) {
  //                                     1  2  4  8 16 32 64  . 256 . 1024 MiB
  EXPECT_EQ(divisions("[64:8,256:2]"), (std::vector<std::int64_t>{8, 8, 8, 8, 8, 8, 8, 0,  //
                                                                  2, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(AllocatorSettings, ApplyTheRestFromTheLastKeyItself) {
  EXPECT_EQ(divisions("[256:4,1024:4,>:1]"), (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 4,  //
                                                                        4, 0, 1, 1, 1, 1, 1, 1}));
}

TEST(AllocatorSettings, AcceptTheRestInAnyPlaceOfTheList) {
  // The first key fills what is below it, even over an earlier rest.
  EXPECT_EQ(divisions("[>:2,4:8]"), (std::vector<std::int64_t>{8, 8, 8, 2, 2, 2, 2, 2,  //
                                                               2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(divisions("[4:8,>:2,16:4]"), (std::vector<std::int64_t>{8, 8, 2, 2, 4, 2, 2, 2,  //
                                                                    2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(AllocatorSettings, CountKeysAboveTheTableAsItsLast) {
  EXPECT_EQ(divisions("[65536:1,131072:4]").back(), 4);
}

TEST(AllocatorSettings, AcceptEmptyLists) {
  EXPECT_EQ(divisions("[]"), std::vector<std::int64_t>(16));
  EXPECT_EQ(divisions("[64:8,]").front(), 8);
}

TEST(AllocatorSettings, SayWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(settings_error("max_split_size_mb:20"),
            "allocator settings: max_split_size_mb is '20'; need a whole number from 21 to "
            "2147483647 (MiB)");
  EXPECT_EQ(settings_error("expandable_segments:true"),
            "allocator settings: expandable_segments is 'true'; need True or False");
  EXPECT_EQ(settings_error("max_split_size_mb"),
            "allocator settings: the text ends in max_split_size_mb; need ':' here");
  EXPECT_EQ(settings_error("expandable_segments:True:"),
            "allocator settings: found ':' in expandable_segments; need ',' here");
  EXPECT_EQ(settings_error("roundup_power2_divisions:[64:8"),
            "allocator settings: the text ends in roundup_power2_divisions; need ',' here");
  EXPECT_EQ(settings_error("backend:cudaMallocAsync"),
            "allocator settings: backend is 'cudaMallocAsync'; only 'native' is modelled");
}

TEST(AllocatorSettings, SuggestTheNearestOption) {
  EXPECT_NE(settings_error("expandable_segment:True").find("did you mean 'expandable_segments'?"),
            std::string::npos);
}

class BadSettings : public testing::TestWithParam<const char*> {};

TEST_P(BadSettings, AreRefused) { EXPECT_THROW(parse_allocator_settings(GetParam()), InputError); }

INSTANTIATE_TEST_SUITE_P(
    Texts, BadSettings,
    testing::Values(
        "max_split_size_mb:-5", "max_split_size_mb:2147483648", "max_split_size_mb:30.5",
        "max_split_size_mb:99999999999999999999", "max_split_size_mb:30MB",
        "max_split_size_mb:", "max_split_size_mb:nan", "max_non_split_rounding_mb:20",
        "max_non_split_rounding_mb:-1", "garbage_collection_threshold:0",
        "garbage_collection_threshold:1", "garbage_collection_threshold:nan",
        "garbage_collection_threshold:inf", "garbage_collection_threshold:-0.5",
        "garbage_collection_threshold:1e-400", "garbage_collection_threshold:0.5x",
        "expandable_segments:1", "expandable_segments:", "roundup_power2_divisions:0",
        "roundup_power2_divisions:3", "roundup_power2_divisions:-4",
        "roundup_power2_divisions:4294967296", "roundup_power2_divisions:[0:4]",
        "roundup_power2_divisions:[3:4]", "roundup_power2_divisions:[64:3]",
        "roundup_power2_divisions:[64:-2]", "roundup_power2_divisions:[64]",
        "roundup_power2_divisions:[64:8,>]", "roundup_power2_divisions:[",
        "roundup_power2_divisions:[[64:8]]", "roundup_power2_divisions:[64:8]]",
        "roundup_power2_divisions:[64:8 128:2]", "pinned_num_register_threads:3",
        "pinned_num_register_threads:256", "pinned_use_background_threads:yes",
        "backend:", "large_segment_size_mb:40", "max_split_size_mb:30 expandable_segments:True",
        "max_split_size_mb:30,,expandable_segments:True", ",", ":", "]", "max_split_size_mb=30"));

// {request, rounded, segment}: of the compiled PyTorch 2.6.0.
TEST(AllocatorSettings, RoundAsPyTorchDoes) {
  const struct {
    std::int64_t request, rounded, segment;
  } rows[] = {{1, 512, 2 << 20},
              {512, 512, 2 << 20},
              {513, 1024, 2 << 20},
              {1048576, 1048576, 2 << 20},
              {1048577, 1049088, 20 << 20},
              {5 << 20, 5 << 20, 20 << 20},
              {10485248, 10485248, 20 << 20},
              {10485759, 10485760, 10485760},
              {10485761, 10486272, 12582912},
              {15728647, 15729152, 16777216},
              {19365888, 19365888, 20971520},
              {59610624, 59610624, 60817408},
              {77463552, 77463552, 77594624}};
  for (const auto& row : rows) {
    const Bytes rounded = rounded_size({}, {row.request});
    EXPECT_EQ(rounded.count, row.rounded) << row.request;
    EXPECT_EQ(segment_size(rounded).count, row.segment) << row.request;
  }
}

TEST(AllocatorSettings, RoundToFractionsOfAPowerOfTwo) {
  const auto by_four = parse_allocator_settings("roundup_power2_divisions:4");
  EXPECT_EQ(rounded_size(by_four, 84_MiB), 96_MiB);  // 64, 80, 96, 112, 128
  EXPECT_EQ(rounded_size(by_four, 96_MiB), 96_MiB);
  EXPECT_EQ(rounded_size(by_four, 64_MiB), 64_MiB);
  EXPECT_EQ(rounded_size(by_four, 113_MiB), 128_MiB);
  // Only above 512 B · 4 = 2048 B: there the steps would be smaller than a block.
  EXPECT_EQ(rounded_size(by_four, 1537_B), 2048_B);
  EXPECT_EQ(rounded_size(by_four, 2049_B), 2560_B);

  const auto list =
      parse_allocator_settings("roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:4,>:1]");
  EXPECT_EQ(rounded_size(list, 84_MiB), 88_MiB);
  EXPECT_EQ(rounded_size(list, 400_MiB), 512_MiB);
  EXPECT_EQ(rounded_size(list, {1181116006}), Bytes{1181116416});  // '>' from 1024 MiB itself
}

TEST(AllocatorSettings, DivideSizesBeyondTheTableAsItsEnds) {
  const auto ends = parse_allocator_settings("roundup_power2_divisions:[1:2,2:1,16384:1,32768:2]");
  EXPECT_EQ(rounded_size(ends, 5000_B), 6144_B);
  EXPECT_EQ(rounded_size(ends, 5_MiB), 5_MiB);
  EXPECT_EQ(rounded_size(ends, 17_GiB), 17_GiB);
  EXPECT_EQ(rounded_size(ends, 33_GiB), 48_GiB);
  EXPECT_EQ(rounded_size(ends, 65_GiB), 96_GiB);
}

TEST(AllocatorSettings, RoundTheLargestRequestWithoutOverflow) {
  const auto coarse = parse_allocator_settings("roundup_power2_divisions:2");
  EXPECT_EQ(rounded_size(coarse, {largest_size - 1}), Bytes{largest_size});
  EXPECT_EQ(segment_size({largest_size}), Bytes{largest_size});
}

}  // namespace
}  // namespace tidemark::allocator::allocator_settings_test
