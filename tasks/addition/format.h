// Additions as tokens: the vocabulary, one token for each character, and the formats that Zhou et
// al. 2024 compare.
#ifndef LENGTHWISE_TASKS_ADDITION_FORMAT_H_
#define LENGTHWISE_TASKS_ADDITION_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/text_task.h"

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

// Inverse of FormatTokens. INVALID_ARGUMENT names the first part of the text that is no token.
absl::StatusOr<std::vector<int32_t>> ParseTokens(absl::string_view text);

// Digits of a number, least significant first.
using Digits = std::vector<uint8_t>;

// The operands: 2 to kMostOperands, of equal length n >= 1. More could need two digits for a carry.
using Problem = std::vector<Digits>;
inline constexpr int32_t kMostOperands = 10;

enum class Order : uint8_t {
  kStandard,        // A3A2A1+B3B2B1=C3C2C1; digit 1 is the least significant
  kReversed,        // A1A2A3+B1B2B3=C1C2C3
  kPaired,          // A1B1,A2B2,A3B3=C1C2C3; the authors tried and rejected it; no hints
  kReversedAnswer,  // A3A2A1+B3B2B1=C1C2C3, as Cho et al. 2024
};

constexpr bool HasReversedOperands(Order order) {
  return order == Order::kReversed || order == Order::kPaired;
}
constexpr bool HasReversedAnswer(Order order) { return order != Order::kStandard; }

struct Format {
  Order order = Order::kReversed;
  // Writes all numbers with n + 1 digits, so that a final carry has a place. Otherwise operands
  // have n digits, and a sum has n, or n + 1 with a final carry. Paired digits are always padded.
  bool zero_padding = true;
  // Writes a hint before each digit. The hints of a number are consecutive, in writing order, and
  // start with the same hint in all numbers.
  bool index_hints = true;
  // Number of hints in use: the first `hint_symbols` of kHints. At least 2.
  int32_t hint_symbols = kHints;
};

// The n + 1 digits of the sum, and the carry into each of them (carries[0] is 0).
Digits Sum(const Problem& problem);
Digits CarriesInto(const Problem& problem);

// For each digit of the sum, the distance to the digit where the carry into it arose, or 0 without
// a carry. A carry arises where the digits sum to 10 or more. It propagates through smaller sums
// that reach 10 with it.
std::vector<int32_t> CarryDistances(const Problem& problem);

// Tokens of the addition, including the end token. Uses at most n + 1 hints from `first_hint` on,
// and wraps around after the last hint symbol in use.
TextExample Write(const Problem& problem, const Format& format, int32_t first_hint);

// Upper bound for the tokens of Write with n digits.
int64_t LongestWritten(int64_t n, const Format& format, int64_t operands = 2);

// Position ids of `tokens`, one for each. Abacus (McLeish et al. 2024, section 3.1): 1, 2, ... from
// left to right in every run of digits, 0 for all else.
std::vector<int32_t> AbacusIds(absl::Span<const int32_t> tokens);

// Position coupling (Cho et al. 2024, section 3, as the published code counts): digits of place
// value 10^j have 2 + j, "+" and "=" have 1. With two operands (not with more) and an answer that
// is not reversed, "=" has the id above the answer's. `tokens` begin with a prompt of `prompt`
// tokens without hints or blanks. Tokens past the answer's `places` digits, and those that are no
// digits, have 0.
std::vector<int32_t> CoupledIds(absl::Span<const int32_t> tokens, size_t prompt, int64_t places,
                                bool reversed_operands, bool reversed_answer);

// Random-space augmentation (Shen et al. 2023): inserts blanks[i] blanks before token i. `blanks`
// has an element for every token except the end token.
TextExample InsertBlanks(const TextExample& example, absl::Span<const int> blanks);

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_FORMAT_H_
