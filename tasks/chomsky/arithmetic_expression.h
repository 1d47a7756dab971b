// Arithmetic modulo a parameter: residues, and fully bracketed expressions of digits.
//
//   expression = digit | "-" digit | "(" digit ")" | "(" "-" digit ")"
//              | "(" expression operator expression ")"
#ifndef LENGTHWISE_TASKS_CHOMSKY_ARITHMETIC_EXPRESSION_H_
#define LENGTHWISE_TASKS_CHOMSKY_ARITHMETIC_EXPRESSION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "random/stream.h"

namespace lengthwise::tasks::chomsky {

// The parameter `modulus` of the arithmetic tasks. Its upper limit keeps products of two residues
// within 32 bits.
inline catalogue::ParameterEntry ModulusParameter() {
  return {.name = "modulus",
          .default_value = int64_t{5},
          .documentation = "Modulus of all values. Its digits are the first tokens.",
          .minimum = 2,
          .maximum = 1000};
}

inline int32_t Modulus(const catalogue::Parameters& parameters) {
  return static_cast<int32_t>(parameters.Int("modulus"));
}

// The representative of `value` in {0, ..., modulus - 1}.
inline int32_t Residue(int32_t value, int32_t modulus) {
  const int32_t remainder = value % modulus;
  return remainder < 0 ? remainder + modulus : remainder;
}

// Tokens: the digits 0 to modulus - 1, then + and -, then * if `multiplication`, then ( ) x =. For
// modulus 5 these are the reference code's ids.
class ExpressionAlphabet {
 public:
  ExpressionAlphabet(int32_t modulus, bool multiplication)
      : modulus_(modulus), operators_(multiplication ? 3 : 2) {}

  int32_t modulus() const { return modulus_; }
  // Number of operators. Their tokens are plus() to plus() + operators() - 1.
  int32_t operators() const { return operators_; }
  int32_t plus() const { return modulus_; }
  int32_t minus() const { return modulus_ + 1; }
  // Not a token of the alphabet unless it has multiplication.
  int32_t times() const { return operators_ == 3 ? modulus_ + 2 : -1; }
  int32_t open() const { return modulus_ + operators_; }
  int32_t close() const { return open() + 1; }
  int32_t unknown() const { return open() + 2; }
  int32_t equals() const { return open() + 3; }

 private:
  int32_t modulus_;
  int32_t operators_;
};

// Fills `expression`, which must not be empty, with an expression of exactly its length. When two
// expressions are joined, the left one's length is uniform over all possible lengths. Digits and
// operators are uniform.
void DrawExpression(const ExpressionAlphabet& alphabet, random::Stream& stream,
                    absl::Span<int32_t> expression);

// constant + coefficient * x, both in {0, ..., modulus - 1}.
struct LinearValue {
  int32_t constant = 0;
  int32_t coefficient = 0;
};

// Evaluates `expression`, in which x occurs at most once. The result for malformed input is
// unspecified.
LinearValue Evaluate(const ExpressionAlphabet& alphabet, absl::Span<const int32_t> expression);

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_ARITHMETIC_EXPRESSION_H_
