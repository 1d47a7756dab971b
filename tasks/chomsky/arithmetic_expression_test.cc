#include "tasks/chomsky/arithmetic_expression.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "random/stream.h"

namespace lengthwise::tasks::chomsky {
namespace {

std::vector<int32_t> Draw(const ExpressionAlphabet& alphabet, size_t length, uint32_t row) {
  std::vector<int32_t> expression(length, -1);
  random::Stream stream(0, random::Purpose::kPreview, length, row);
  DrawExpression(alphabet, stream, absl::MakeSpan(expression));
  return expression;
}

// Evaluates with an operand stack and an operator stack: an independent check of the recursive
// descent.
int32_t ValueByStacks(const ExpressionAlphabet& alphabet, const std::vector<int32_t>& tokens) {
  const int32_t m = alphabet.modulus();
  std::vector<int64_t> values;
  std::vector<int32_t> operators;
  bool operand_expected = true, negative = false;
  for (const int32_t token : tokens) {
    if (token < m) {
      values.push_back(negative ? m - token : token);
      operand_expected = negative = false;
    } else if (token == alphabet.open()) {
      operators.push_back(token);
    } else if (token == alphabet.close()) {
      if (operators.back() != alphabet.open()) {
        const int32_t operation = operators.back();
        operators.pop_back();
        const int64_t right = values.back();
        values.pop_back();
        int64_t& left = values.back();
        left = operation == alphabet.plus()    ? left + right
               : operation == alphabet.minus() ? left - right + m
                                               : left * right;
        left %= m;
      }
      operators.pop_back();
    } else if (operand_expected) {
      negative = true;
    } else {
      operators.push_back(token);
      operand_expected = true;
    }
  }
  return static_cast<int32_t>(values.at(0) % m);
}

TEST(ArithmeticExpressionTest, EvaluatesAsWithTwoStacks) {
  for (const bool multiplication : {false, true}) {
    const ExpressionAlphabet alphabet(5, multiplication);
    for (size_t length = 1; length <= 500; ++length) {
      const std::vector<int32_t> expression = Draw(alphabet, length, 0);
      const LinearValue value = Evaluate(alphabet, expression);
      ASSERT_EQ(value.constant, ValueByStacks(alphabet, expression)) << length;
      ASSERT_EQ(value.coefficient, 0);
    }
  }
}

TEST(ArithmeticExpressionTest, LinearValueHoldsForEveryDigit) {
  const ExpressionAlphabet alphabet(7, /*multiplication=*/true);
  for (uint32_t row = 0; row < 200; ++row) {
    std::vector<int32_t> expression = Draw(alphabet, 40, row);
    size_t place = row % expression.size();
    while (expression[place] >= alphabet.modulus()) place = (place + 1) % expression.size();
    expression[place] = alphabet.unknown();
    const LinearValue value = Evaluate(alphabet, expression);
    for (int32_t digit = 0; digit < alphabet.modulus(); ++digit) {
      expression[place] = digit;
      EXPECT_EQ(Evaluate(alphabet, expression).constant,
                Residue(value.constant + value.coefficient * digit, alphabet.modulus()));
    }
  }
}

TEST(ArithmeticExpressionTest, LinearEquationsHaveOneSolution) {
  const ExpressionAlphabet alphabet(6, /*multiplication=*/false);  // not a prime
  for (uint32_t row = 0; row < 200; ++row) {
    std::vector<int32_t> expression = Draw(alphabet, 41, row);
    size_t place = row % expression.size();
    while (expression[place] >= alphabet.modulus()) place = (place + 1) % expression.size();
    expression[place] = alphabet.unknown();
    const int32_t coefficient = Evaluate(alphabet, expression).coefficient;
    EXPECT_TRUE(coefficient == 1 || coefficient == 5) << coefficient;
  }
}

TEST(ArithmeticExpressionTest, MalformedInputEnds) {
  const ExpressionAlphabet alphabet(5, /*multiplication=*/true);
  for (const std::vector<int32_t>& tokens : std::vector<std::vector<int32_t>>{
           {}, {alphabet.open()}, {alphabet.minus()}, {alphabet.open(), 1, alphabet.plus()}}) {
    Evaluate(alphabet, tokens);
  }
}

}  // namespace
}  // namespace lengthwise::tasks::chomsky
