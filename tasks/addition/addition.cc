#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tasks/addition/format.h"
#include "tasks/all_tasks.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks::addition {
namespace {

constexpr int64_t kLargestSizeWithoutHints = 10000;

enum class Coupling : uint8_t { kNone, kDigits, kAbacus };

struct Settings {
  Format format;
  Coupling coupling = Coupling::kNone;
  int64_t operands = 2;
  bool hints_wrap = false;
  bool leading_zeros = false;
  double random_space = 0;
  double random_space_decay = 1;
};

using Tokens = std::vector<int32_t>;

// The answer up to its end token, without blanks. `digits_alone` also drops hints.
Tokens Kept(absl::Span<const int32_t> answer, bool digits_alone) {
  const auto end = std::find(answer.begin(), answer.end(), kEnd);
  Tokens kept;
  std::copy_if(answer.begin(), end, std::back_inserter(kept), [digits_alone](int32_t token) {
    return digits_alone ? IsDigit(token) : token != kBlank;
  });
  return kept;
}

class AdditionTask final : public TextTask {
 public:
  explicit AdditionTask(const Settings& settings) : settings_(settings) {}

  int32_t vocabulary() const override {
    return settings_.format.order == Order::kPaired ? kTokens : kPadding + 1;
  }
  int32_t end_token() const override { return kEnd; }
  int32_t padding_token() const override { return kPadding; }

  absl::Status Check(int64_t size) const override {
    const bool hints = settings_.format.index_hints;
    if (hints && settings_.format.order == Order::kPaired) {
      return absl::InvalidArgumentError(
          "paired digits have no index hints: set index_hints to false or another order");
    }
    if (!settings_.format.zero_padding && settings_.format.order == Order::kPaired) {
      return absl::InvalidArgumentError(
          "the paired order always pads for the carry: remove zero_padding or set another order");
    }
    if (settings_.hints_wrap && !hints) {
      return absl::InvalidArgumentError(
          "hints_wrap has no effect without index hints: set index_hints to true or remove "
          "hints_wrap");
    }
    if (settings_.random_space_decay != 1 && settings_.random_space == 0) {
      return absl::InvalidArgumentError(
          "random_space_decay has no effect without random spaces: set random_space or remove "
          "random_space_decay");
    }
    if (has_ids() && (hints || augments() || settings_.format.order == Order::kPaired)) {
      return absl::InvalidArgumentError(
          "coupling numbers the digits of whole numbers: set index_hints: false, an order other "
          "than paired and no random_space, or remove coupling");
    }
    if (settings_.coupling == Coupling::kDigits && !settings_.format.zero_padding &&
        !HasReversedAnswer(settings_.format.order)) {
      return absl::InvalidArgumentError(
          "coupling: digits with order: standard would tell how long the answer is: set "
          "zero_padding: true or another order");
    }
    const int32_t symbols = settings_.format.hint_symbols;
    if (symbols != kHints && !hints) {
      return absl::InvalidArgumentError(
          "hint_symbols has no effect without index hints: set index_hints to true or remove "
          "hint_symbols");
    }
    const int64_t largest = hints ? symbols - 1 : kLargestSizeWithoutHints;
    if (size < 1 || size > largest) {
      const std::string why = hints ? absl::StrCat(" with index hints (", symbols,
                                                   " symbols, one of them for the carry)")
                                    : "";
      return absl::InvalidArgumentError(
          absl::StrCat("operands have 1 to ", largest, " digits", why, ", not ", size));
    }
    return absl::OkStatus();
  }

  int64_t LongestExample(int64_t size) const override {
    return LongestWritten(size, settings_.format, settings_.operands);
  }

  bool has_fixed_lengths() const override { return settings_.format.zero_padding && !augments(); }

  bool augments() const override { return settings_.random_space > 0; }

  bool has_ids() const override { return settings_.coupling != Coupling::kNone; }

  std::vector<int32_t> Ids(const TextExample& example,
                           absl::Span<const int32_t> tokens) const override {
    if (settings_.coupling == Coupling::kAbacus) return AbacusIds(tokens);
    // The first operand's digits end at the first sign. Zero padding includes the carry's place.
    const absl::Span<const int32_t> prompt = example.Prompt();
    const int64_t digits = std::find_if_not(prompt.begin(), prompt.end(), IsDigit) - prompt.begin();
    return CoupledIds(tokens, example.prompt, digits + (settings_.format.zero_padding ? 0 : 1),
                      HasReversedOperands(settings_.format.order),
                      HasReversedAnswer(settings_.format.order));
  }

  int64_t LargestId(int64_t size) const override {
    if (settings_.coupling == Coupling::kAbacus) return size + 1;
    const bool signs_share_an_id =
        HasReversedAnswer(settings_.format.order) || settings_.operands > 2;
    return size + (signs_share_an_id ? 2 : 3);
  }

  TextExample Sample(int64_t size, bool augmented, random::Stream& stream) const override {
    Problem problem(static_cast<size_t>(settings_.operands));
    for (Digits& operand : problem) operand = DrawOperand(size, stream);
    int32_t first_hint = 0;
    if (settings_.format.index_hints) {
      const int32_t symbols = settings_.format.hint_symbols;
      const int64_t last = settings_.hints_wrap ? symbols - 1 : symbols - (size + 1);
      first_hint = static_cast<int32_t>(stream.Between(0, last));
    }
    TextExample example = Write(problem, settings_.format, first_hint);
    if (!augmented || settings_.random_space == 0) return example;
    std::vector<int> blanks(example.tokens.size() - 1);
    for (int& count : blanks) {
      for (double p = settings_.random_space; stream.NextDouble() < p;
           p *= settings_.random_space_decay) {
        ++count;
      }
    }
    return InsertBlanks(example, blanks);
  }

  AnswerComparison Compare(const TextExample& example,
                           absl::Span<const int32_t> given) const override {
    const bool ended = std::find(given.begin(), given.end(), kEnd) != given.end();
    Tokens expected = Kept(example.Answer(), /*digits_alone=*/true);
    Tokens digits = Kept(given, /*digits_alone=*/true);
    AnswerComparison comparison{
        .is_exact = ended && Kept(given, false) == Kept(example.Answer(), false),
        .has_right_digits = digits == expected,
        .places = static_cast<int32_t>(expected.size()),
        .carry_distances = CarryDistances(Read(example.Prompt()))};
    // Without zero padding a sum has no digit for a final carry of 0.
    comparison.carry_distances.resize(expected.size());
    if (comparison.has_right_digits) return comparison;
    if (settings_.format.order == Order::kStandard) {
      // The standard order writes the most significant digit first, so digits are compared by place
      // from the right.
      std::reverse(expected.begin(), expected.end());
      digits.resize(expected.size(), kPadding);
      std::reverse(digits.begin(), digits.end());
    }
    for (size_t place = 0; place < expected.size(); ++place) {
      if (place < digits.size() && digits[place] == expected[place]) continue;
      comparison.wrong_digits.push_back(static_cast<int32_t>(place));
    }
    if (!comparison.wrong_digits.empty()) {
      const auto first = static_cast<size_t>(comparison.wrong_digits.front());
      comparison.first_wrong_has_carry = comparison.carry_distances[first] > 0;
    }
    return comparison;
  }

  std::string Format(absl::Span<const int32_t> tokens) const override {
    return FormatTokens(tokens);
  }

  absl::StatusOr<std::vector<int32_t>> Parse(absl::string_view text) const override {
    return ParseTokens(text);
  }

 private:
  Digits DrawOperand(int64_t size, random::Stream& stream) const {
    Digits digits(static_cast<size_t>(size));
    for (uint8_t& digit : digits) digit = static_cast<uint8_t>(stream.Below(10));
    if (size > 1 && !settings_.leading_zeros) {
      digits.back() = static_cast<uint8_t>(1 + stream.Below(9));
    }
    return digits;
  }

  // Parses the operands from a prompt.
  Problem Read(absl::Span<const int32_t> prompt) const {
    const bool paired = settings_.format.order == Order::kPaired;
    Problem problem(paired ? static_cast<size_t>(settings_.operands) : 1);
    size_t number = 0;
    for (const int32_t token : prompt) {
      if (token == kPlus) problem.emplace_back();
      if (!IsDigit(token)) continue;
      Digits& digits = paired ? problem[number++ % problem.size()] : problem.back();
      digits.push_back(static_cast<uint8_t>(token));
    }
    if (!HasReversedOperands(settings_.format.order)) {
      for (Digits& operand : problem) std::reverse(operand.begin(), operand.end());
    }
    return problem;
  }

  const Settings settings_;
};

std::unique_ptr<Task> Create(const catalogue::Parameters& parameters) {
  const std::string& order = parameters.String("order");
  Settings settings;
  settings.format.order = order == "standard"          ? Order::kStandard
                          : order == "reversed"        ? Order::kReversed
                          : order == "reversed_answer" ? Order::kReversedAnswer
                                                       : Order::kPaired;
  const std::string& coupling = parameters.String("coupling");
  settings.coupling = coupling == "digits"   ? Coupling::kDigits
                      : coupling == "abacus" ? Coupling::kAbacus
                                             : Coupling::kNone;
  settings.format.index_hints = parameters.Bool("index_hints");
  settings.format.hint_symbols = static_cast<int32_t>(parameters.Int("hint_symbols"));
  settings.format.zero_padding = parameters.Bool("zero_padding");
  settings.operands = parameters.Int("operands");
  settings.hints_wrap = parameters.Bool("hints_wrap");
  settings.leading_zeros = parameters.Bool("leading_zeros");
  settings.random_space = parameters.Double("random_space");
  settings.random_space_decay = parameters.Double("random_space_decay");
  return std::make_unique<AdditionTask>(settings);
}

}  // namespace

TaskEntry DecimalAddition() {
  return {
      {.name = "decimal_addition",
       .title = "Decimal Addition",
       .documentation =
           "Adds two or more numbers with equally many digits, written as text: a "
           "question up to \"=\", the answer, an end token. Zhou et al. 2024, \"Transformers Can "
           "Achieve Length Generalization But Not Robustly\", section 2; the defaults "
           "(reversed, index hints, zero padding) generalize best there.",
       .parameters =
           {{.name = "order",
             .default_value = std::string("reversed"),
             .documentation = "\"standard\": the most significant digit first; \"reversed\": the "
                              "least significant first; \"paired\": the operands' digits in pairs, "
                              "reversed, without hints; \"reversed_answer\": only the answer "
                              "reversed (Cho et al. 2024).",
             .allowed = {"standard", "reversed", "paired", "reversed_answer"}},
            {.name = "coupling",
             .default_value = std::string("none"),
             .documentation =
                 "Position ids for encodings with positions: data. \"digits\": digits of equal "
                 "place value have one id (position coupling, Cho et al. 2024, section 3); "
                 "\"abacus\": 1, 2, ... within each number (McLeish et al. 2024, section 3.1).",
             .allowed = {"none", "digits", "abacus"},
             .omitted = true},
            {.name = "index_hints",
             .default_value = true,
             .documentation = "Writes a hint before every digit: consecutive symbols of an ordered "
                              "set of 102, from a random start, the same in all numbers."},
            {.name = "hint_symbols",
             .default_value = int64_t{kHints},
             .documentation = "Number of hint symbols in use. Operands can have one digit fewer. A "
                              "small number shows each symbol often in short training.",
             .minimum = 2,
             .maximum = kHints},
            {.name = "zero_padding",
             .default_value = true,
             .documentation =
                 "Pads all numbers to one digit more than the operands, for the carry."},
            {.name = "hints_wrap",
             .default_value = false,
             .documentation = "Starts hints at any symbol and wraps around after the last one. "
                              "False: hints never wrap."},
            {.name = "leading_zeros",
             .default_value = false,
             .documentation = "Draws all operand digits from 0 to 9. False: the most significant "
                              "of several digits is 1 to 9."},
            {.name = "operands",
             .default_value = int64_t{2},
             .documentation = "Number of numbers that are added.",
             .minimum = 2,
             .maximum = kMostOperands},
            {.name = "random_space",
             .default_value = 0.0,
             .documentation =
                 "Random-space augmentation in training: probability of a blank before each token, "
                 "and of another one after each blank. The paper does not state it.",
             .minimum = 0,
             .maximum = 0.5},
            {.name = "random_space_decay",
             .default_value = 1.0,
             .documentation = "Factor on the probability after each blank in a row. A published "
                              "reimplementation uses 0.1 (McLeish et al. 2024).",
             .minimum = 0,
             .maximum = 1}}},
      TaskKind::kText,
      "",
      0.0,
      Create,
      /*permutation_invariant=*/false,
      /*axis=*/"digits",
      /*axis_title=*/"number of digits",
      /*accuracy_title=*/"exact match"};
}

}  // namespace lengthwise::tasks::addition
