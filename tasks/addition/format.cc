#include "tasks/addition/format.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::tasks::addition {
namespace {

std::string FormatToken(int32_t token) {
  if (IsDigit(token)) return absl::StrCat(token);
  if (IsHint(token)) return absl::StrCat("<h", token - kFirstHint, ">");
  static constexpr std::pair<int32_t, const char*> kSigns[] = {{kPlus, "+"},        {kEquals, "="},
                                                               {kBlank, " "},       {kEnd, "<eos>"},
                                                               {kPadding, "<pad>"}, {kComma, ","}};
  for (const auto& [sign, text] : kSigns) {
    if (sign == token) return text;
  }
  return "?";
}

int ColumnSum(const Problem& problem, size_t place) {
  int sum = 0;
  for (const Digits& operand : problem) sum += operand[place];
  return sum;
}

struct Addition {
  Digits sum, carries;
};

Addition Add(const Problem& problem) {
  const size_t n = problem[0].size();
  Addition addition{Digits(n + 1), Digits(n + 1)};
  for (size_t i = 0; i < n; ++i) {
    const int column = ColumnSum(problem, i) + addition.carries[i];
    addition.sum[i] = static_cast<uint8_t>(column % 10);
    addition.carries[i + 1] = static_cast<uint8_t>(column / 10);
  }
  addition.sum[n] = addition.carries[n];
  return addition;
}

void WriteNumber(const Digits& digits, const Format& format, bool reversed, int32_t first_hint,
                 std::vector<int32_t>& tokens) {
  for (size_t i = 0; i < digits.size(); ++i) {
    if (format.index_hints) {
      tokens.push_back(kFirstHint + (first_hint + static_cast<int32_t>(i)) % format.hint_symbols);
    }
    tokens.push_back(digits[reversed ? i : digits.size() - 1 - i]);
  }
}

}  // namespace

std::string FormatTokens(absl::Span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) absl::StrAppend(&text, FormatToken(token));
  return text;
}

absl::StatusOr<int32_t> ParseToken(absl::string_view text) {
  for (int32_t token = 0; token < kTokens; ++token) {
    if (FormatToken(token) == text) return token;
  }
  return absl::NotFoundError(absl::StrCat("\"", text, "\" is not a token of additions"));
}

absl::StatusOr<std::vector<int32_t>> ParseTokens(absl::string_view text) {
  std::vector<int32_t> tokens;
  while (!text.empty()) {
    const size_t end = text[0] == '<' ? text.find('>') : 0;
    const absl::string_view symbol = text.substr(0, end == text.npos ? end : end + 1);
    const absl::StatusOr<int32_t> token = ParseToken(symbol);
    if (!token.ok() || *token == kEnd || *token == kPadding) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has \"", symbol, "\"; additions have digits, +, =, spaces and hints as <h7>"));
    }
    tokens.push_back(*token);
    text.remove_prefix(symbol.size());
  }
  return tokens;
}

Digits Sum(const Problem& problem) { return Add(problem).sum; }
Digits CarriesInto(const Problem& problem) { return Add(problem).carries; }

std::vector<int32_t> CarryDistances(const Problem& problem) {
  std::vector<int32_t> distances = {0};
  const Digits carries = CarriesInto(problem);
  for (size_t i = 0; i < problem[0].size(); ++i) {
    const int digits = ColumnSum(problem, i);
    const bool goes_on = digits + carries[i] > 9;
    distances.push_back(digits > 9 ? 1 : goes_on ? distances[i] + 1 : 0);
  }
  return distances;
}

TextExample Write(const Problem& problem, const Format& format, int32_t first_hint) {
  const size_t n = problem[0].size();
  const Digits sum = Sum(problem);
  TextExample example;
  if (format.order == Order::kPaired) {
    for (size_t i = 0; i <= n; ++i) {
      if (i > 0) example.tokens.push_back(kComma);
      for (const Digits& operand : problem) example.tokens.push_back(i < n ? operand[i] : 0);
    }
    example.tokens.push_back(kEquals);
    example.prompt = example.tokens.size();
    example.tokens.insert(example.tokens.end(), sum.begin(), sum.end());
  } else {
    for (Digits operand : problem) {
      if (!example.tokens.empty()) example.tokens.push_back(kPlus);
      if (format.zero_padding) operand.push_back(0);
      WriteNumber(operand, format, HasReversedOperands(format.order), first_hint, example.tokens);
    }
    example.tokens.push_back(kEquals);
    example.prompt = example.tokens.size();
    const bool needs_place = format.zero_padding || sum[n] != 0;
    WriteNumber({sum.begin(), sum.end() - (needs_place ? 0 : 1)}, format,
                HasReversedAnswer(format.order), first_hint, example.tokens);
  }
  example.tokens.push_back(kEnd);
  return example;
}

int64_t LongestWritten(int64_t n, const Format& format, int64_t operands) {
  // Digits, and a sign or the end behind each number.
  if (format.order == Order::kPaired) return (operands + 1) * (n + 1) + n + 2;
  const int64_t operand = n + (format.zero_padding ? 1 : 0);
  return (operands * operand + n + 1) * (format.index_hints ? 2 : 1) + operands + 1;
}

std::vector<int32_t> AbacusIds(absl::Span<const int32_t> tokens) {
  std::vector<int32_t> ids;
  int32_t place = 0;
  for (const int32_t token : tokens) ids.push_back(place = IsDigit(token) ? place + 1 : 0);
  return ids;
}

std::vector<int32_t> CoupledIds(absl::Span<const int32_t> tokens, size_t prompt, int64_t places,
                                bool reversed_operands, bool reversed_answer) {
  constexpr int32_t kSign = 1;
  const auto answer = static_cast<int32_t>(places);
  const bool has_two_operands =
      std::count(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt), kPlus) == 1;
  const int32_t equals = has_two_operands && !reversed_answer ? kSign + answer + 1 : kSign;
  std::vector<int32_t> ids(tokens.size(), 0);
  for (size_t first = 0; first < prompt;) {
    const auto sign =
        std::find_if_not(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                         tokens.begin() + static_cast<std::ptrdiff_t>(prompt), IsDigit);
    const auto end = static_cast<size_t>(sign - tokens.begin());
    for (size_t i = first; i < end; ++i) {
      const size_t place = reversed_operands ? i - first : end - 1 - i;
      ids[i] = kSign + 1 + static_cast<int32_t>(place);
    }
    if (end < prompt) ids[end] = tokens[end] == kEquals ? equals : kSign;
    first = end + 1;
  }
  for (size_t i = prompt; i < tokens.size(); ++i) {
    const auto written = static_cast<int32_t>(i - prompt);
    if (written >= answer || !IsDigit(tokens[i])) continue;
    ids[i] = kSign + (reversed_answer ? written + 1 : answer - written);
  }
  return ids;
}

TextExample InsertBlanks(const TextExample& example, absl::Span<const int> blanks) {
  TextExample result;
  for (size_t i = 0; i < example.tokens.size(); ++i) {
    // Blanks before the answer's first token belong to the answer.
    if (i == example.prompt) result.prompt = result.tokens.size();
    if (i < blanks.size()) {
      result.tokens.insert(result.tokens.end(), static_cast<size_t>(blanks[i]), kBlank);
    }
    result.tokens.push_back(example.tokens[i]);
  }
  return result;
}

}  // namespace lengthwise::tasks::addition
