// What Tab offers in a shell, from the tables of commands and options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::cli {

/// A shell and the script that teaches it.
struct Shell {
  std::string_view name;
  std::string (*script)();
};

const std::vector<Shell>& shells();

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace tidemark::cli
