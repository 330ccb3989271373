// What a recorded run says about its process.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark::recorder {

/// {"pid": 17, "start_ns": …, "command": ["python", "train.py"]}
std::string process_text(std::uint64_t start);

}  // namespace tidemark::recorder
