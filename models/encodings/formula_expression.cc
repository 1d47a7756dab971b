#include "models/encodings/formula_expression.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"

namespace lengthwise::models {
namespace {

struct Function {
  absl::string_view name;
  FormulaOp op;
  size_t arity;
};
constexpr Function kWords[] = {
#define LENGTHWISE_WORD(Name, word, operands, ...) {word, FormulaOp::k##Name, operands},
    LENGTHWISE_FORMULA_OPERATORS(LENGTHWISE_WORD)
#undef LENGTHWISE_WORD
        {"where", FormulaOp::kWhere, 3}};
using Functions = absl::Span<const Function>;
constexpr Functions kComparisons = Functions(kWords).subspan(0, 6);
constexpr Functions kSums = Functions(kWords).subspan(6, 2);
constexpr Functions kProducts = Functions(kWords).subspan(8, 2);
constexpr Functions kFunctions = Functions(kWords).subspan(12);

const Function* FindFunction(absl::string_view name) {
  const auto found = absl::c_find_if(kFunctions, [&](const Function& f) { return f.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

class Parser {
 public:
  Parser(absl::string_view text, absl::Span<const std::string> arguments,
         absl::Span<const FormulaParameter> parameters)
      : text_(text), arguments_(arguments), parameters_(parameters) {}

  std::variant<FormulaNodes, FormulaMistake> Parse() {
    if (text_.size() > kMaxFormulaBytes) {
      Fail(kMaxFormulaBytes,
           absl::StrCat("got ", text_.size(), " characters, expected at most ", kMaxFormulaBytes));
    }
    Expression();
    SkipSpace();
    if (!mistake_ && place_ < text_.size()) {
      Fail(place_, absl::StrCat("unexpected ", Here(), "; expected an operator or the end"));
    }
    if (mistake_) return *std::move(mistake_);
    return std::move(nodes_);
  }

 private:
  // Recursive descent: each function parses one rule of the grammar and returns its node. The first
  // mistake wins; after it, all functions return 0 without consuming text.

  size_t Expression() {
    if (!Deeper()) return 0;
    size_t left = Sum();
    if (const Function* comparison = Accept(kComparisons)) {
      const size_t column = place_;
      const size_t right = Sum();
      left = Add(comparison->op, {left, right}, column);
    }
    --depth_;
    return left;
  }

  size_t Sum() { return Chain(kSums, &Parser::Product); }
  size_t Product() { return Chain(kProducts, &Parser::Factor); }

  // Parses operands with `next`, joined by any of the operators, left to right.
  size_t Chain(Functions operators, size_t (Parser::*next)()) {
    size_t left = (this->*next)();
    while (const Function* found = Accept(operators)) {
      const size_t column = place_;
      const size_t right = (this->*next)();
      left = Add(found->op, {left, right}, column);
    }
    return left;
  }

  size_t Factor() {
    if (Accept("-")) {
      const size_t column = place_;
      if (!Deeper()) return 0;
      const size_t operand = Factor();
      --depth_;
      return Add(FormulaOp::kNegate, {operand}, column);
    }
    const size_t base = Atom();
    if (!Accept("^")) return base;
    const size_t column = place_;
    if (!Deeper()) return 0;
    const size_t exponent = Factor();
    --depth_;
    return Add(FormulaOp::kPower, {base, exponent}, column);
  }

  size_t Atom() {
    SkipSpace();
    if (mistake_) return 0;
    const size_t start = place_;
    const char c = start < text_.size() ? text_[start] : '\0';
    if (absl::ascii_isdigit(c) || c == '.') return Number();
    if (absl::ascii_isalpha(c) || c == '_') return Named();
    if (Accept("(")) {
      const size_t inner = Expression();
      Expect(")");
      return inner;
    }
    return Fail(start,
                absl::StrCat("unexpected ", Here(), "; expected a number, a name, \"(\" or \"-\""));
  }

  size_t Number() {
    const size_t start = place_;
    double number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + place_, text_.data() + text_.size(), number);
    place_ = static_cast<size_t>(end - text_.data());
    if (error != std::errc() || !std::isfinite(number)) {
      return Fail(start, "expected a number such as 10, 0.5 or 1e-3");
    }
    return Add({.op = FormulaOp::kNumber, .number = number}, start + 1);
  }

  size_t Named() {
    const size_t start = place_;
    while (place_ < text_.size() && (absl::ascii_isalnum(text_[place_]) || text_[place_] == '_')) {
      ++place_;
    }
    const absl::string_view name = text_.substr(start, place_ - start);
    if (Accept("(")) return Call(name, start);
    if (name == "pi") {
      return Add({.op = FormulaOp::kNumber, .number = std::numbers::pi}, start + 1);
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i] == name) return Add({.op = FormulaOp::kArgument, .index = i}, start + 1);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].name == name) return Parameter(i, start);
    }
    if (FindFunction(name) != nullptr) {
      return Fail(start, absl::StrCat("\"", name, "\" is a function; write ", name, "(...)"));
    }
    std::vector<std::string> names(arguments_.begin(), arguments_.end());
    names.emplace_back("pi");
    for (const FormulaParameter& parameter : parameters_) names.push_back(parameter.name);
    return Fail(start,
                absl::StrCat("unknown name \"", name, "\"", catalogue::Suggestion(name, names)));
  }

  size_t Parameter(size_t index, size_t start) {
    const FormulaParameter& parameter = parameters_[index];
    if (parameter.size == 0) {
      return Add({.op = FormulaOp::kParameter, .index = index, .learned = !parameter.fixed},
                 start + 1);
    }
    if (!Accept("[")) {
      return Fail(start, absl::StrCat("\"", parameter.name, "\" is a table; write ", parameter.name,
                                      "[x] for one of its numbers"));
    }
    const size_t operand = Expression();
    Expect("]");
    if (mistake_) return 0;
    if (nodes_[operand].learned) {
      return Fail(start, absl::StrCat("the index in ", parameter.name,
                                      "[...] must not depend on a learned parameter"));
    }
    return Add({.op = FormulaOp::kTable,
                .index = index,
                .operands = {operand},
                .learned = !parameter.fixed},
               start + 1);
  }

  size_t Call(absl::string_view name, size_t start) {
    const Function* const found = FindFunction(name);
    if (found == nullptr) {
      return Fail(start, absl::StrCat("unknown function \"", name, "\"",
                                      catalogue::Suggestion(name, FormulaFunctions())));
    }
    std::vector<size_t> operands = {Expression()};
    while (Accept(",")) operands.push_back(Expression());
    Expect(")");
    if (!mistake_ && operands.size() != found->arity) {
      return Fail(start, absl::StrCat("\"", name, "\" takes ", found->arity,
                                      found->arity == 1 ? " value, got " : " values, got ",
                                      operands.size()));
    }
    return Add(found->op, std::move(operands), start + 1);
  }

  size_t Add(FormulaOp op, std::vector<size_t> operands, size_t column) {
    if (mistake_) return 0;
    bool learned = false;
    for (const size_t operand : operands) learned |= nodes_[operand].learned;
    return Add({.op = op, .operands = std::move(operands), .learned = learned}, column);
  }

  size_t Add(FormulaNode node, size_t column) {
    if (mistake_) return 0;
    if (nodes_.size() == kMaxFormulaNodes) {
      return Fail(column - 1,
                  absl::StrCat("more than ", kMaxFormulaNodes, " numbers, names and operators"));
    }
    node.column = column;
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  bool Deeper() {
    if (++depth_ > kMaxFormulaDepth) Fail(place_, "is nested too deeply here");
    return !mistake_;
  }

  // Consumes the first of `found` that stands here and returns it; nullptr if none does.
  const Function* Accept(Functions found) {
    for (const Function& one : found) {
      if (Accept(one.name)) return &one;
    }
    return nullptr;
  }

  bool Accept(absl::string_view token) {
    SkipSpace();
    if (mistake_ || text_.substr(place_, token.size()) != token) return false;
    place_ += token.size();
    return true;
  }

  void Expect(absl::string_view token) {
    if (!Accept(token)) Fail(place_, absl::StrCat("expected \"", token, "\", got ", Here()));
  }

  void SkipSpace() {
    while (place_ < text_.size() && absl::ascii_isspace(text_[place_])) ++place_;
  }

  std::string Here() const {
    if (place_ >= text_.size()) return "the end";
    size_t end = place_ + 1;  // end of a whole UTF-8 character
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return absl::StrCat("\"", text_.substr(place_, end - place_), "\"");
  }

  size_t Fail(size_t place, std::string description) {
    if (!mistake_) mistake_ = FormulaMistake{place + 1, std::move(description)};
    return 0;
  }

  const absl::string_view text_;
  const absl::Span<const std::string> arguments_;
  const absl::Span<const FormulaParameter> parameters_;
  size_t place_ = 0;
  int depth_ = 0;
  FormulaNodes nodes_;
  std::optional<FormulaMistake> mistake_;
};

}  // namespace

std::variant<FormulaNodes, FormulaMistake> ParseFormula(
    absl::string_view text, absl::Span<const std::string> arguments,
    absl::Span<const FormulaParameter> parameters) {
  return Parser(text, arguments, parameters).Parse();
}

std::vector<std::string> FormulaFunctions() {
  std::vector<std::string> names;
  for (const Function& function : kFunctions) names.emplace_back(function.name);
  return names;
}

absl::string_view FormulaOpName(FormulaOp op) {
  const Function* const found =
      absl::c_find_if(kWords, [&](const Function& f) { return f.op == op; });
  return found == std::end(kWords) ? "" : found->name;
}

}  // namespace lengthwise::models
