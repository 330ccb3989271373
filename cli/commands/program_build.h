// Which build of the program this is.
#pragma once

#include <string>

namespace tidemark::cli {

/// "0.1.0+9f86d081884c7d65": its version, and a number of the program's own file, so that two
/// builds that may answer otherwise have different ones. The version alone where that file cannot
/// be read.
const std::string& program_build();

}  // namespace tidemark::cli
