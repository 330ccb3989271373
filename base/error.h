// Bad input is an InputError: one line that says place, what is wrong and what would be right.
// Who can add to the line catches it, and main() what is left. Bugs are CHECKs.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine has no GPU, or no display, for a command that needs one.
class NoDevice : public InputError {
 public:
  using InputError::InputError;
};

/// Options that contradict each other or are unknown: exit code 2 instead of 1.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

/// The known name nearest to `name` by edit distance, or "" when none is near: "a100" begins
/// "a100-40gb", and "4090" ends "rtx-4090".
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

/// "unknown strategy 'vanila' (did you mean 'vanilla'? known: vanilla, checkpoint, …)".
std::string unknown_name(std::string_view what, std::string_view name,
                         const std::vector<std::string_view>& known);
/// "did you mean 'vanilla'? ", or "" when none is near.
std::string guess_of(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace tidemark

/// States what the surrounding code guarantees. A failure is a bug in Tidemark, not in its input.
#define CHECK(condition) \
  ((condition) ? void() : ::tidemark::check_failed(__FILE__, __LINE__, #condition))
