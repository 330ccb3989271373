// docs/tidemark.1, from the tables of commands and options; a test compares the two.
#pragma once

#include <string>

namespace tidemark::cli {

std::string manual_page();

}  // namespace tidemark::cli
