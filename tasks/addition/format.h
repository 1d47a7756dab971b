// Writes additions as tokens, in the formats that Zhou et al. 2024 compare.
#ifndef LENGTHWISE_TASKS_ADDITION_FORMAT_H_
#define LENGTHWISE_TASKS_ADDITION_FORMAT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tasks/addition/vocabulary.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks::addition {

// Digits of a number, least significant first.
using Digits = std::vector<uint8_t>;

struct Problem {
  Digits a, b;  // of equal length n >= 1
};

enum class Order : uint8_t {
  kStandard,  // A3A2A1+B3B2B1=C3C2C1; digit 1 is the least significant
  kReversed,  // A1A2A3+B1B2B3=C1C2C3
  kPaired,    // A1B1,A2B2,A3B3=C1C2C3; the authors tried and rejected it; no hints
};

struct Format {
  Order order = Order::kReversed;
  // Writes all numbers with n + 1 digits, so that a final carry has a place. Otherwise operands
  // have n digits, and a sum has n, or n + 1 with a final carry. Paired digits are always padded.
  bool zero_padding = true;
  // Writes a hint before each digit. The hints of a number are consecutive, in writing order, and
  // start with the same hint in all three numbers.
  bool index_hints = true;
  // Number of hints in use: the first `hint_symbols` of kHints. At least 2.
  int32_t hint_symbols = kHints;
};

// The n + 1 digits of a + b, and the carry into each of them (carries[0] is 0).
Digits Sum(const Problem& problem);
Digits CarriesInto(const Problem& problem);

// For each digit of the sum, the distance to the digit where the carry into it arose, or 0 without
// a carry. A carry arises where two digits sum to 10 or more and propagates through sums of 9.
std::vector<int32_t> CarryDistances(const Problem& problem);

// Tokens of the addition, including the end token. Uses at most n + 1 hints from `first_hint` on,
// and wraps around after the last hint symbol in use.
TextExample Write(const Problem& problem, const Format& format, int32_t first_hint);

// Upper bound for the tokens of Write with n digits.
int64_t LongestWritten(int64_t n, const Format& format);

// Random-space augmentation (Shen et al. 2023): inserts blanks[i] blanks before token i. `blanks`
// has an element for every token except the end token.
TextExample InsertBlanks(const TextExample& example, absl::Span<const int> blanks);

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_FORMAT_H_
