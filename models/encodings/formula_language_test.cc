#include <cmath>
#include <numbers>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "models/encodings/formula_definition.h"
#include "models/encodings/formula_expression.h"
#include "models/encodings/formula_values.h"

namespace lengthwise::models {
namespace {

const std::vector<std::string>& Arguments() {
  static const auto& arguments = *new std::vector<std::string>{"q", "k", "h", "H", "n"};
  return arguments;
}

double At(const std::string& text, const std::vector<double>& arguments) {
  const auto parsed = ParseFormula(text, Arguments(), {});
  const auto* mistake = std::get_if<FormulaMistake>(&parsed);
  if (mistake != nullptr) {
    ADD_FAILURE() << text << ": column " << mistake->column << ": " << mistake->description;
    return NAN;
  }
  return FormulaEvaluator(std::get<FormulaNodes>(parsed), {}).At(arguments, 0, 0);
}

std::string MistakeOf(const std::string& text) {
  const auto parsed = ParseFormula(
      text, Arguments(), std::vector<FormulaParameter>{{.name = "a"}, {.name = "t", .size = 1}});
  const auto* mistake = std::get_if<FormulaMistake>(&parsed);
  if (mistake == nullptr) return "";
  return "column " + std::to_string(mistake->column) + ": " + mistake->description;
}

TEST(FormulaExpressionTest, HasTheUsualPrecedence) {
  const struct {
    const char* text;
    double value;
  } cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"8 - 3 - 2", 3},
      {"8 / 4 / 2", 1},
      {"2 ^ 3 ^ 2", 512},
      {"-2 ^ 2", -4},
      {"2 ^ -1", 0.5},
      {"-q * k", -15},
      {"--q", 3},
      {"1 + 2 < 4", 1},
      {"q >= k", 0},
      {"(q < k) * 7", 7},
      {"q != 3", 0},
      {"1e2 + .5", 100.5},
      {"where(q > k, 1, where(q == 3, 2, 4))", 2},
      {"max(q, k) - min(q, k)", 2},
      {"floor(-0.5) + abs(-2)", 1},
      {"H * h + n", 42},
  };
  for (const auto& one : cases) {
    EXPECT_DOUBLE_EQ(At(one.text, {3, 5, 2, 16, 10}), one.value) << one.text;
  }
}

TEST(FormulaExpressionTest, FunctionsMatchTheirDefinitions) {
  const double x = 0.7;
  const std::vector<double> arguments = {x, 0, 0, 0, 0};
  EXPECT_DOUBLE_EQ(At("exp(q)", arguments), std::exp(x));
  EXPECT_DOUBLE_EQ(At("log(q)", arguments), std::log(x));
  EXPECT_DOUBLE_EQ(At("log1p(q)", arguments), std::log(1 + x));
  EXPECT_DOUBLE_EQ(At("sqrt(q)", arguments), std::sqrt(x));
  EXPECT_DOUBLE_EQ(At("sin(q) + cos(q)", arguments), std::sin(x) + std::cos(x));
  EXPECT_DOUBLE_EQ(At("tanh(q)", arguments), std::tanh(x));
  EXPECT_DOUBLE_EQ(At("sigmoid(q)", arguments), 1 / (1 + std::exp(-x)));
  EXPECT_DOUBLE_EQ(At("softplus(q)", arguments), std::log(1 + std::exp(x)));
  EXPECT_DOUBLE_EQ(At("softplus(1000)", arguments), 1000);
  EXPECT_DOUBLE_EQ(At("pi", arguments), std::numbers::pi);
}

TEST(FormulaExpressionTest, MistakesHaveAColumnAndASuggestion) {
  EXPECT_EQ(MistakeOf("-softplus(a)*lgo(q)"),
            "column 14: unknown function \"lgo\"; did you mean \"log\"?");
  EXPECT_EQ(MistakeOf("1 +"),
            "column 4: unexpected the end; expected a number, a name, \"(\" or \"-\"");
  EXPECT_EQ(MistakeOf(""),
            "column 1: unexpected the end; expected a number, a name, \"(\" or \"-\"");
  EXPECT_EQ(MistakeOf("q k"), "column 3: unexpected \"k\"; expected an operator or the end");
  EXPECT_EQ(MistakeOf("(q"), "column 3: expected \")\", got the end");
  EXPECT_EQ(MistakeOf("max(q)"), "column 1: \"max\" takes 2 values, got 1");
  EXPECT_EQ(MistakeOf("abs + 1"), "column 1: \"abs\" is a function; write abs(...)");
  EXPECT_EQ(MistakeOf("1 + b"), "column 5: unknown name \"b\"; accepted: H, a, h, k, n, pi, q, t");
  EXPECT_EQ(MistakeOf("t + 1"), "column 1: \"t\" is a table; write t[x] for one of its numbers");
  EXPECT_EQ(MistakeOf("t[a]"),
            "column 1: the index in t[...] must not depend on a learned parameter");
  EXPECT_EQ(MistakeOf("1 + é"),
            "column 5: unexpected \"é\"; expected a number, a name, \"(\" or \"-\"");
  EXPECT_EQ(MistakeOf("1e999"), "column 1: expected a number such as 10, 0.5 or 1e-3");
  EXPECT_EQ(MistakeOf("a < q < k"), "column 7: unexpected \"<\"; expected an operator or the end");
}

TEST(FormulaExpressionTest, LengthDepthAndSizeAreBounded) {
  EXPECT_EQ(MistakeOf(std::string(1001, ' ')),
            "column 1001: got 1001 characters, expected at most 1000");
  EXPECT_EQ(MistakeOf(std::string(49, '(') + "1" + std::string(49, ')')), "");
  for (const char* opening : {"(", "-", "2^", "abs("}) {
    std::string text;
    while (text.size() < 200) text += opening;
    EXPECT_NE(MistakeOf(text).find("is nested too deeply here"), std::string::npos) << opening;
  }
  std::string sum = "1";
  for (int i = 0; i < 99; ++i) sum += "+1";
  EXPECT_EQ(MistakeOf(sum), "");
  EXPECT_EQ(MistakeOf(sum + "+1"), "column 200: more than 200 numbers, names and operators");
}

catalogue::Parameters Given(const std::string& place, const std::string& formula,
                            const std::string& parameters) {
  catalogue::Parameters given;
  for (const char* name : {"logits", "embedding", "angle"}) given.Set(name, std::string());
  given.Set(place, formula);
  given.Set("parameters", parameters);
  return given;
}

// Returns all problems of a formula, one per line.
std::string Problems(const std::string& place, const std::string& formula,
                     const std::string& parameters, const EncodingContext& context,
                     const PositionPolicy& policy = PositionPolicy({})) {
  std::vector<catalogue::Problem> problems;
  const FormulaDefinition definition =
      ReadFormula(Given(place, formula, parameters), "encodings[0]", problems);
  if (problems.empty()) CheckFormulaValues(definition, context, policy, "encodings[0]", problems);
  std::string text;
  for (const auto& problem : problems) text += problem.field + ": " + problem.description + "\n";
  return text;
}

const EncodingContext kContext = {.d_model = 8,
                                  .heads = 2,
                                  .blocks = 3,
                                  .longest_sequence = 40,
                                  .shortest_sequence = 2,
                                  .operations = 1 << 24};

// A subset of the integers below `end`.
PositionPolicy DrawnBelow(int64_t end) {
  catalogue::Parameters parameters;
  parameters.Set("positions", std::string("subset"));
  parameters.Set("max_position", end);
  return PositionPolicy(parameters);
}

TEST(FormulaDefinitionTest, ParametersSurviveARoundTrip) {
  const std::string text =
      "a per head = 1, 2; b fixed = 0.1; s fixed per layer = 1, 2, 3; t[3] = 0, 0.5, 1; u[32] per "
      "head ~ 0.125";
  std::vector<catalogue::Problem> problems;
  const std::vector<FormulaParameter> parameters = ParseFormulaParameters(text, "x", problems);
  ASSERT_TRUE(problems.empty()) << problems[0].description;
  EXPECT_EQ(FormatFormulaParameters(parameters), text);
  ASSERT_EQ(parameters.size(), 5U);
  EXPECT_EQ(parameters[0].per, FormulaParameter::Per::kHead);
  EXPECT_EQ(parameters[0].initial, (std::vector<double>{1, 2}));
  EXPECT_TRUE(parameters[1].fixed);
  EXPECT_EQ(parameters[3].size, 3U);
  EXPECT_EQ(parameters[4].stddev, 0.125);
}

TEST(FormulaDefinitionTest, WrongParametersAreNamed) {
  const auto of = [](const std::string& parameters) {
    return Problems("logits", "q", parameters, kContext);
  };
  const std::string field = "encodings[0].parameters: ";
  EXPECT_EQ(of("a = 1"), field + "\"a\" is used in no formula; leave it out\n");
  EXPECT_EQ(of("q = 1"), field + "\"q\" has a meaning in formulas; use another name\n");
  EXPECT_EQ(of("a = 1; a = 2"), field + "\"a\" is given twice\n");
  EXPECT_EQ(of("a = 1, 2"),
            field + "\"a\" is one number; set per: head or per: layer, or its size\n");
  EXPECT_EQ(of("a[3] = 1, 2"), field + "\"a\" has 2 initial values, expected 1 or 3\n");
  EXPECT_EQ(of("a fixed ~ 1"), field + "\"a\" is fixed: set `initial` and no `stddev`\n");
  EXPECT_EQ(of("a per house = 1"), field +
                                       "got \"a per house = 1\", expected a parameter such as \"a "
                                       "per head = 1\"\n");
  EXPECT_EQ(
      Problems("embedding", "a * p", "a per head = 1", kContext),
      "encodings[0].embedding: column 1: \"a\" is per head, but only logits and scale have heads; "
      "use per: model or per: layer\n");
}

TEST(FormulaValuesTest, NonFiniteValueNamesItsArguments) {
  const auto of = [](const std::string& formula, const std::string& parameters = "") {
    return Problems("logits", formula, parameters, kContext);
  };
  EXPECT_EQ(of("-abs(q - k)"), "");
  EXPECT_EQ(of("log(abs(q - k))"),
            "encodings[0].logits: column 1: log(0) is minus infinite for q = 0, k = 0, h = 0\n");
  EXPECT_EQ(of("1 / (q + k - 70)"),
            "encodings[0].logits: column 3: 1 / 0 is infinite for q = 31, k = 39, h = 0\n");
  EXPECT_EQ(of("sqrt(h - 0.5) * q"),
            "encodings[0].logits: column 1: sqrt(-0.5) is not a number for q = 0, k = 0, h = 0\n");
  EXPECT_EQ(of("1 / (n - 37)"),
            "encodings[0].logits: column 3: 1 / 0 is infinite for q = 0, k = 0, h = 0, n = 37\n");
  // Not finite only outside the sequences of the specification.
  EXPECT_EQ(of("1 / (n - 41) + 1 / (q - 40) + 1 / (h - 2)"), "");
  // Not finite only in the branch not taken.
  EXPECT_EQ(of("where(q == k, 0, log(abs(q - k)))"), "");
  EXPECT_EQ(of("exp(a * q)", "a = 10"),
            "encodings[0].logits: column 1: exp(70) is infinite for q = 7, k = 0, h = 0\n");
  EXPECT_EQ(of("a[h]", "a[2] = 1, 2"), "");
}

TEST(FormulaValuesTest, NonFiniteGradientIsReported) {
  EXPECT_EQ(Problems("logits", "sqrt(a * abs(q - k))", "a = 1", kContext),
            "encodings[0].logits: column 1: the gradient of sqrt(0) is not a number for q = 0, k = "
            "0, h = 0\n");
  EXPECT_EQ(Problems("logits", "where(q == k, 0, sqrt(a * abs(q - k)))", "a = 1", kContext), "");
}

TEST(FormulaValuesTest, RandomizedPositionsExceedTheSequence) {
  EXPECT_EQ(Problems("logits", "1 / (abs(q - k) - 100)", "", kContext), "");
  const PositionPolicy drawn = DrawnBelow(200);
  EXPECT_EQ(Problems("logits", "1 / (abs(q - k) - 100)", "", kContext, drawn),
            "encodings[0].logits: column 3: 1 / 0 is infinite for q = 0, k = 100, h = 0\n");
  EXPECT_EQ(Problems("embedding", "1 / (p - 150 + c)", "", kContext, drawn),
            "encodings[0].embedding: column 3: 1 / 0 is infinite for p = 143, c = 7\n");
}

// A worker knows the longest sequence alone.
TEST(FormulaValuesTest, UnknownShortestSequenceIsNotTakenForOne) {
  EncodingContext context = kContext;
  context.shortest_sequence = 1;
  EXPECT_EQ(Problems("scale", "1 / log(n)", "", context),
            "encodings[0].scale: column 3: 1 / 0 is infinite for q = 0, h = 0, n = 1\n");
  context.shortest_sequence = 0;
  EXPECT_EQ(Problems("scale", "1 / log(n)", "", context), "");
}

TEST(FormulaValuesTest, EveryAngleAndChannelIsChecked) {
  EXPECT_EQ(Problems("embedding", "1 / (c - 7)", "", kContext),
            "encodings[0].embedding: column 3: 1 / 0 is infinite for p = 0, c = 7\n");
  EXPECT_EQ(Problems("angle", "1 / (i - 1)", "", kContext),
            "encodings[0].angle: column 3: 1 / 0 is infinite for p = 0, i = 1\n");
  EXPECT_EQ(Problems("angle", "1 / (i - 2)", "", kContext), "");
}

TEST(FormulaValuesTest, LargeDomainIsSampled) {
  EncodingContext context = kContext;
  context.longest_sequence = 100'000;
  context.heads = 1000;
  context.operations = 1 << 20;
  EXPECT_EQ(Problems("logits", "h * q * k * n + 1", "", context, DrawnBelow(1 << 20)), "");
}

TEST(FormulaValuesTest, CheckStopsAtItsOperationLimit) {
  EncodingContext context = kContext;
  context.heads = 1000;
  context.operations = 5 * 800;  // five nodes for 800 heads
  EXPECT_NE(Problems("logits", "1 / (h - 700)", "", context), "");
  EXPECT_EQ(Problems("logits", "1 / (h - 900)", "", context), "");
}

}  // namespace
}  // namespace lengthwise::models
