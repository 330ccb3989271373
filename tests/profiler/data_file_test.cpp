// A data file gives text or labelled images step after step, and says what the model cannot take.
#include "profiler/data_file.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/own_folder.h"
#include "tests/support/small_models.h"

namespace tidemark::profiler::data_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(const std::string& bytes) {
  const std::string path = own_folder() + "/data.bin";
  write_file(path, bytes);
  return path;
}

TensorId find(const Trace& trace, std::string_view name) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].name == name) return static_cast<TensorId>(t);
  return no_tensor;
}

Trace language_model(std::int64_t vocabulary) {
  Model model = small_gpt2();
  std::get<Gpt2Config>(model.config).vocabulary = vocabulary;
  return build_trace(model, {.batch = 1, .sequence = 4});
}

// Two pixels by two, one channel: records of five bytes.
Trace vision_model() {
  return build_trace(small_model("tiny", VitConfig{.image = 2,
                                                   .patch = 2,
                                                   .channels = 1,
                                                   .width = 4,
                                                   .depth = 1,
                                                   .heads = 1,
                                                   .mlp = 4,
                                                   .classes = 3}),
                     {.batch = 2});
}

TEST(DataFile, TextGoesOnFromStepToStepAndBeginsAgain) {
  const Trace trace = language_model(256);
  const Data data = data_of_file(file_of("abcdef"), trace);
  EXPECT_THAT(data(trace, find(trace, "input_ids"), 0), ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(data(trace, find(trace, "labels"), 1), ElementsAre('e', 'f', 'a', 'b', 'c'));
  EXPECT_TRUE(data(trace, find(trace, "position_ids"), 0).empty());
}

TEST(DataFile, ImagesAreRecordsWithALabel) {
  const Trace trace = vision_model();
  const std::string records = std::string("\1\xff\0\0\0", 5) + std::string("\2\0\0\0\xff", 5);
  const Data data = data_of_file(file_of(records), trace);
  EXPECT_THAT(data(trace, find(trace, "targets"), 0), ElementsAre(1, 2));
  const double bright = 127.5 / 64;
  EXPECT_THAT(data(trace, find(trace, "images"), 0),
              ElementsAre(bright, -bright, -bright, -bright, -bright, -bright, -bright, bright));
  EXPECT_THAT(data(trace, find(trace, "targets"), 7), ElementsAre(1, 2));
}

std::string error_of(const std::string& bytes, const Trace& trace) {
  try {
    data_of_file(file_of(bytes), trace);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DataFile, SaysWhatTheModelCannotTake) {
  EXPECT_THAT(error_of("", vision_model()), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of("123456", vision_model()), HasSubstr("records of 1 + 4 bytes"));
  EXPECT_THAT(error_of(std::string("\3\0\0\0\0", 5), vision_model()),
              HasSubstr("record 0 has label 3; tiny has 3 classes"));
  EXPECT_THAT(error_of("text", language_model(61)), HasSubstr("vocabulary of 256 or more"));
  EXPECT_THROW(data_of_file("nowhere.bin", vision_model()), InputError);
}

}  // namespace
}  // namespace tidemark::profiler::data_file_test
