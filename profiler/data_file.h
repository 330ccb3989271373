// Real data for a replay, from a file of any size: text as bytes, images as labelled records.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark::profiler {

/// Numbers of an input in a step, row-major, or nothing for inputs that the file does not provide.
using Data = std::function<std::vector<double>(const Trace&, TensorId, std::int64_t step)>;

/// Language models: each sample is the next run of bytes of the file, one token per byte, as ids
/// and as labels. Vision models: records of one label byte and channels × height × width bytes at
/// the model's image size, as in the binary version of CIFAR-10; pixels become (v − 127.5) / 64.
/// Steps go on where the one before ended, and from the start again behind the end. InputError if
/// the file cannot be read, is too small, or has records or labels that the model cannot take.
Data data_of_file(const std::string& path, const Trace& trace);

/// As data_of_file(), of the bytes of a file that errors name.
Data data_of_bytes(std::string bytes, const std::string& file, const Trace& trace);

}  // namespace tidemark::profiler
