#include "tasks/chomsky/arithmetic_expression.h"

#include <cstddef>

namespace lengthwise::tasks::chomsky {
namespace {

class Parser {
 public:
  Parser(const ExpressionAlphabet& alphabet, absl::Span<const int32_t> tokens)
      : alphabet_(alphabet), tokens_(tokens) {}

  LinearValue Expression() {
    const int32_t token = Next();
    if (token == alphabet_.minus()) return Combine(alphabet_.minus(), {}, Leaf(Next()));
    if (token != alphabet_.open()) return Leaf(token);
    const LinearValue left = Expression();
    const int32_t operation = Next();
    if (operation == alphabet_.close()) return left;
    const LinearValue right = Expression();
    Next();  // the closing bracket
    return Combine(operation, left, right);
  }

 private:
  // Returns a closing bracket past the end, so that parsing malformed input terminates.
  int32_t Next() { return place_ < tokens_.size() ? tokens_[place_++] : alphabet_.close(); }

  LinearValue Leaf(int32_t token) const {
    return token == alphabet_.unknown() ? LinearValue{0, 1} : LinearValue{token, 0};
  }

  LinearValue Combine(int32_t operation, LinearValue a, LinearValue b) const {
    const int32_t m = alphabet_.modulus();
    if (operation == alphabet_.times()) {
      // x occurs on one side at most, so the product has no x^2 term.
      return {Residue(a.constant * b.constant, m),
              Residue(a.constant * b.coefficient + a.coefficient * b.constant, m)};
    }
    const int32_t sign = operation == alphabet_.plus() ? 1 : -1;
    return {Residue(a.constant + sign * b.constant, m),
            Residue(a.coefficient + sign * b.coefficient, m)};
  }

  const ExpressionAlphabet& alphabet_;
  const absl::Span<const int32_t> tokens_;
  size_t place_ = 0;
};

}  // namespace

void DrawExpression(const ExpressionAlphabet& alphabet, random::Stream& stream,
                    absl::Span<int32_t> expression) {
  const size_t length = expression.size();
  if (length >= 3) {
    expression.front() = alphabet.open();
    expression.back() = alphabet.close();
  }
  if (length <= 4) {
    // d, -d, (d), (-d)
    const size_t digit = length <= 2 ? length - 1 : length - 2;
    if (length % 2 == 0) expression[digit - 1] = alphabet.minus();
    expression[digit] =
        static_cast<int32_t>(stream.Below(static_cast<uint32_t>(alphabet.modulus())));
    return;
  }
  const auto left = static_cast<size_t>(stream.Between(1, static_cast<int64_t>(length) - 4));
  expression[left + 1] =
      alphabet.plus() +
      static_cast<int32_t>(stream.Below(static_cast<uint32_t>(alphabet.operators())));
  DrawExpression(alphabet, stream, expression.subspan(1, left));
  DrawExpression(alphabet, stream, expression.subspan(left + 2, length - 3 - left));
}

LinearValue Evaluate(const ExpressionAlphabet& alphabet, absl::Span<const int32_t> expression) {
  return Parser(alphabet, expression).Expression();
}

}  // namespace lengthwise::tasks::chomsky
