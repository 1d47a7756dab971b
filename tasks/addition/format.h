// How an addition is written.
#ifndef LENGTHWISE_TASKS_ADDITION_FORMAT_H_
#define LENGTHWISE_TASKS_ADDITION_FORMAT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tasks/addition/vocabulary.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks::addition {

// Digits of a number, the least significant first.
using Digits = std::vector<uint8_t>;

struct Problem {
  Digits a, b;  // of one length n >= 1
};

enum class Order : uint8_t {
  kStandard,  // A3A2A1+B3B2B1=C3C2C1, digit 1 the least significant
  kReversed,  // A1A2A3+B1B2B3=C1C2C3
  kPaired,    // A1B1,A2B2,A3B3=C1C2C3, which its authors tried and rejected; without hints
};

struct Format {
  Order order = Order::kReversed;
  // All numbers have n + 1 digits, so that a carry out of the last digit has its place. Without it
  // operands have n digits, and sums n, or n + 1 where there is that carry. Paired digits always
  // have it.
  bool zero_padding = true;
  // Before each digit a hint; the hints of a number follow each other from the same first one in
  // all three, in order of appearance.
  bool index_hints = true;
  // The hints that are used: the first so many of kHints, 2 at least.
  int32_t hint_symbols = kHints;
};

// Digits of a + b, n + 1 of them, and carries into each of these digits (carries[0] is 0).
Digits Sum(const Problem& problem);
Digits CarriesInto(const Problem& problem);

// By place of the sum: how many places below the carry into it arose, from two digits that add up
// to 10 or more; it comes through digits that add up to 9. 0: there is no carry into the place.
std::vector<int32_t> CarryDistances(const Problem& problem);

// The tokens of the addition, with the end token. The number of hints used is n + 1 at most;
// those after the last hint symbol in use are the first ones again.
TextExample Write(const Problem& problem, const Format& format, int32_t first_hint);

// Tokens of Write for n digits, at most.
int64_t LongestWritten(int64_t n, const Format& format);

// Random-space augmentation (Shen et al. 2023): the example with blanks[i] blanks before token i;
// `blanks` has a number for every token but the end token.
TextExample InsertBlanks(const TextExample& example, absl::Span<const int> blanks);

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_FORMAT_H_
