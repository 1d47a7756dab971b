// The vocabulary of additions: one token for each character.
#ifndef LENGTHWISE_TASKS_ADDITION_VOCABULARY_H_
#define LENGTHWISE_TASKS_ADDITION_VOCABULARY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::tasks::addition {

// Digits are the tokens 0 to 9.
inline constexpr int32_t kPlus = 10;
inline constexpr int32_t kEquals = 11;
inline constexpr int32_t kBlank = 12;
// The ordered index hints are kFirstHint to kFirstHint + kHints - 1.
inline constexpr int32_t kFirstHint = 13;
inline constexpr int32_t kHints = 102;
inline constexpr int32_t kEnd = kFirstHint + kHints;
// 116 tokens, then padding.
inline constexpr int32_t kPadding = kEnd + 1;
static_assert(kPadding == 116, "ten digits, three signs, 102 hints and the end");
// Used by the paired format only; not one of the 116.
inline constexpr int32_t kComma = kPadding + 1;
inline constexpr int32_t kTokens = kComma + 1;

constexpr bool IsDigit(int32_t token) { return token >= 0 && token <= 9; }
constexpr bool IsHint(int32_t token) { return token >= kFirstHint && token < kEnd; }

// Formats tokens: "<h7>9<h8>0+". Hints show their number, counted from 0; "<eos>" and "<pad>" stand
// for themselves; an invalid token becomes "?".
std::string FormatTokens(absl::Span<const int32_t> tokens);

// Inverse of FormatTokens for a single token. NOT_FOUND for other text.
absl::StatusOr<int32_t> ParseToken(absl::string_view text);

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_VOCABULARY_H_
