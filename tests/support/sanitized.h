// Is this build under AddressSanitizer? Then memory has guards, and speed is no measure.
#pragma once

namespace tidemark {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace tidemark
