#include "tasks/numeric/relational_query.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "platform/status_macros.h"
#include "tasks/all_tasks.h"
#include "tasks/numeric/value_range.h"
#include "tasks/regression.h"

namespace lengthwise::tasks::numeric {
namespace {

// Tokens are these characters, then the categories 1 to 40. Token 0 is a blank.
constexpr absl::string_view kCharacters = " ,-*+._0123456789CFacdefgimnorstux";
constexpr int64_t kCategoriesOfADomain = 20;  // 1 to 20 in training, 21 to 40 unseen
constexpr int32_t kVocabulary = static_cast<int32_t>(kCharacters.size() + 2 * kCategoriesOfADomain);

constexpr absl::string_view kCategoryPrefix = "Cat";
constexpr absl::string_view kQueryStart = "Find ";
constexpr absl::string_view kQueryMiddle = " of ";
constexpr absl::string_view kQueryNoun = "categories ";
constexpr absl::string_view kComma = ", ";
constexpr absl::string_view kAnd = " and ";
constexpr size_t kOperationLetters = 3;
constexpr size_t kDigits = 5;  // "07.28"
constexpr double kLargestTokenizedNumber = 99.99;

int32_t TokenOf(char character) { return static_cast<int32_t>(kCharacters.find(character)); }
int32_t TokenOfCategory(int64_t category) {
  return static_cast<int32_t>(static_cast<int64_t>(kCharacters.size()) + category - 1);
}
bool IsCategory(int32_t token) { return token >= static_cast<int32_t>(kCharacters.size()); }

// Writes a sample row by row.
class Writer {
 public:
  Writer(RegressionSample sample, bool tokenize_numbers)
      : sample_(sample), tokenize_numbers_(tokenize_numbers) {
    std::fill(sample_.inputs.begin(), sample_.inputs.end(), 0.0);
  }

  void Text(absl::string_view text) {
    for (const char character : text) sample_.tokens[row_++] = TokenOf(character);
  }
  // `mark` marks the category as a distractor; empty for a named one.
  void Category(int64_t category, absl::string_view mark = "") {
    Text(kCategoryPrefix);
    Text(mark);
    sample_.tokens[row_++] = TokenOfCategory(category);
  }
  void Number(double value) {
    if (tokenize_numbers_) {
      Text(absl::StrFormat("%05.2f", value));
      return;
    }
    sample_.inputs[row_] = value;
    sample_.tokens[row_++] = kNumberRow;
  }
  void Scratchpad() { sample_.tokens[row_++] = tokenize_numbers_ ? TokenOf(' ') : kNumberRow; }

 private:
  RegressionSample sample_;
  const bool tokenize_numbers_;
  size_t row_ = 0;
};

struct QuerySettings {
  // "min", "max", "sum" or "min_or_max".
  std::string operation;
  int64_t query_categories = 4;
  int64_t distractors = 0;
  bool tokenize_numbers = false;
  bool query_says_categories = true;
  std::string unseen_marks;
  bool scratchpad = true;
  double bound = 5;
};

class RelationalQueryTask final : public RegressionTask {
 public:
  explicit RelationalQueryTask(QuerySettings settings) : settings_(std::move(settings)) {}

  absl::Status Check(const Domain& domain) const override {
    const int64_t fewest = std::max(settings_.query_categories, settings_.distractors);
    if (domain.n < fewest || domain.n > kCategoriesOfADomain) {
      return absl::InvalidArgumentError(
          absl::StrCat("lists have ", fewest, " to ", kCategoriesOfADomain,
                       " categories (at least query_categories and distractors), not ", domain.n));
    }
    RETURN_IF_ERROR(CheckScale(domain.scale));
    if (settings_.tokenize_numbers && settings_.bound * domain.scale > kLargestTokenizedNumber) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenized numbers have two digits before the point: scales are at most ",
                       kLargestTokenizedNumber / settings_.bound, ", not ", domain.scale));
    }
    return absl::OkStatus();
  }

  int64_t Rows(int64_t n) const override {
    const auto category = static_cast<int64_t>(kCategoryPrefix.size()) + 1;
    const int64_t number = settings_.tokenize_numbers ? kDigits : 1;
    const int64_t k = settings_.query_categories;
    const size_t query = kQueryStart.size() + kOperationLetters + kQueryMiddle.size() +
                         (settings_.query_says_categories ? kQueryNoun.size() : 0) + kAnd.size();
    return n * (category + number) + settings_.distractors * (category + 1) +
           static_cast<int64_t>(query) + k * category +
           (k - 2) * static_cast<int64_t>(kComma.size()) + (settings_.scratchpad ? 1 : 0);
  }

  int32_t vocabulary() const override { return kVocabulary; }

  // The answer is the first row's output.
  void Mask(int64_t n, absl::Span<uint8_t> mask) const override {
    std::fill(mask.begin(), mask.end(), uint8_t{0});
    mask[0] = 1;
  }

  void Sample(const Domain& domain, random::Stream& stream,
              RegressionSample sample) const override {
    std::vector<int64_t> categories =
        random::SampleWithoutReplacement(stream, kCategoriesOfADomain, domain.n, /*sorted=*/true);
    for (int64_t& category : categories) {
      category += 1 + (domain.unseen ? kCategoriesOfADomain : 0);
    }
    const ValueRange range = DrawRange({0, settings_.bound}, domain.scale, stream);
    std::vector<double> values;
    for (int64_t i = 0; i < domain.n; ++i) {
      const double value = range.At(stream.NextDouble());
      values.push_back(domain.integers ? std::nearbyint(value) : std::round(value * 100) / 100);
    }
    Writer writer(sample, settings_.tokenize_numbers);
    WriteList(domain, categories, values, stream, writer);
    WriteQuery(categories, stream, writer);
    if (settings_.scratchpad) writer.Scratchpad();
    Solve(sample);
  }

  void Solve(RegressionSample sample) const override;

 private:
  // Writes the list with the distractors at random places, possibly between a category and its
  // number.
  void WriteList(const Domain& domain, const std::vector<int64_t>& categories,
                 const std::vector<double>& values, random::Stream& stream, Writer& writer) const {
    const absl::string_view marks =
        domain.unseen ? absl::string_view(settings_.unseen_marks) : absl::string_view("+-");
    const int64_t elements = 2 * domain.n + settings_.distractors;
    const std::vector<int64_t> marked =
        random::SampleWithoutReplacement(stream, domain.n, settings_.distractors, /*sorted=*/false);
    const std::vector<int64_t> places =
        random::SampleWithoutReplacement(stream, elements, settings_.distractors, /*sorted=*/true);
    size_t next_marked = 0;
    size_t next_element = 0;
    for (int64_t place = 0; place < elements; ++place) {
      if (next_marked < places.size() && places[next_marked] == place) {
        const auto which = static_cast<size_t>(marked[next_marked++]);
        writer.Category(categories[which], marks.substr(stream.Below(2), 1));
        continue;
      }
      const size_t item = next_element / 2;
      if (next_element++ % 2 == 0) {
        writer.Category(categories[item]);
      } else {
        writer.Number(values[item]);
      }
    }
  }

  void WriteQuery(const std::vector<int64_t>& categories, random::Stream& stream,
                  Writer& writer) const {
    absl::string_view operation = settings_.operation;
    if (operation == "min_or_max") operation = stream.Below(2) == 0 ? "min" : "max";
    const std::vector<int64_t> asked = random::SampleWithoutReplacement(
        stream, static_cast<int64_t>(categories.size()), settings_.query_categories,
        /*sorted=*/false);
    writer.Text(kQueryStart);
    writer.Text(operation);
    writer.Text(kQueryMiddle);
    if (settings_.query_says_categories) writer.Text(kQueryNoun);
    for (size_t i = 0; i < asked.size(); ++i) {
      if (i > 0) writer.Text(i + 1 == asked.size() ? kAnd : kComma);
      writer.Category(categories[static_cast<size_t>(asked[i])]);
    }
  }

  const QuerySettings settings_;
};

bool IsCharacter(int32_t token, char character) { return token == TokenOf(character); }

double ReadDigits(absl::Span<const int32_t> tokens) {
  int64_t hundredths = 0;
  for (const int32_t token : tokens.first(kDigits)) {
    if (!IsCharacter(token, '.')) hundredths = 10 * hundredths + (token - TokenOf('0'));
  }
  return static_cast<double>(hundredths) / 100;
}

// Reads the list, then the query, which the only F starts. A category directly after "Cat" is
// named; any other is a distractor. A number belongs to the named category before it.
void RelationalQueryTask::Solve(RegressionSample sample) const {
  const absl::Span<const int32_t> tokens = sample.tokens;
  std::map<int32_t, double> values;
  int32_t named = 0;
  size_t row = 0;
  for (; !IsCharacter(tokens[row], 'F'); ++row) {
    if (IsCategory(tokens[row]) && IsCharacter(tokens[row - 1], kCategoryPrefix.back())) {
      named = tokens[row];
    } else if (tokens[row] == kNumberRow) {
      values[named] = sample.inputs[row];
    } else if (tokens[row] >= TokenOf('0') && tokens[row] <= TokenOf('9')) {
      values[named] = ReadDigits(tokens.subspan(row));
      row += kDigits - 1;
    }
  }
  // The operations min, max and sum differ in their last letters.
  const int32_t last_letter = tokens[row + kQueryStart.size() + kOperationLetters - 1];
  std::vector<double> asked;
  for (; row < tokens.size(); ++row) {
    if (IsCategory(tokens[row])) asked.push_back(values[tokens[row]]);
  }
  std::fill(sample.targets.begin(), sample.targets.end(), 0.0);
  if (IsCharacter(last_letter, 'n')) {
    sample.targets[0] = *std::min_element(asked.begin(), asked.end());
  } else if (IsCharacter(last_letter, 'x')) {
    sample.targets[0] = *std::max_element(asked.begin(), asked.end());
  } else {
    for (const double value : asked) sample.targets[0] += value;
  }
}

std::unique_ptr<Task> CreateRelationalQuery(const catalogue::Parameters& parameters) {
  QuerySettings settings;
  settings.operation = parameters.String("operation");
  settings.query_categories = parameters.Int("query_categories");
  settings.distractors = parameters.Int("distractors");
  settings.tokenize_numbers = parameters.Bool("tokenize_numbers");
  settings.query_says_categories = parameters.Bool("query_says_categories");
  settings.unseen_marks = parameters.String("unseen_marks");
  settings.scratchpad = parameters.Bool("scratchpad");
  settings.bound = parameters.Double("bound");
  return std::make_unique<RelationalQueryTask>(std::move(settings));
}

}  // namespace

std::string RelationalText(absl::Span<const double> inputs, absl::Span<const int32_t> tokens) {
  std::string text;
  bool is_query = false;
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t token = tokens[row];
    if (token == kNumberRow) {
      if (is_query) continue;  // the scratchpad
      absl::StrAppend(&text, " ", absl::StrFormat("%.2f", inputs[row]), " ");
    } else if (IsCategory(token)) {
      absl::StrAppend(&text, token - static_cast<int32_t>(kCharacters.size()) + 1);
    } else {
      const char character = kCharacters[static_cast<size_t>(token)];
      is_query |= character == 'F';
      const bool starts_an_element = character == 'C' || character == 'F';
      if (starts_an_element && !text.empty() && text.back() != ' ') text.push_back(' ');
      const bool starts_a_number =
          token >= TokenOf('0') && token <= TokenOf('9') && row > 0 && IsCategory(tokens[row - 1]);
      if (starts_a_number) text.push_back(' ');
      text.push_back(character);
    }
  }
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

TaskEntry RelationalQuery() {
  return {
      {.name = "relational_query",
       .title = "Relational Query",
       .documentation =
           "Answers a question about k of n named numbers: their minimum, maximum or sum, as in "
           "\"Cat2 3.45 Cat5 1.23 ... Find min of categories Cat5 and Cat20\". \"Positional "
           "Attention: Out-of-Distribution Generalization and Expressivity for Neural Algorithmic "
           "Reasoning\", appendices C.6 and C.7. Training, and evaluations during training at "
           "scale 1, use names 1 to 20. All other evaluations, including the final one at scale 1, "
           "use names 21 to 40 and other distractors. A row is a character, a number, or a name's "
           "number as a single token, as in the released code; C.6 has a token a character.",
       .parameters =
           {{.name = "operation",
             .default_value = std::string("min"),
             .documentation = "The question. \"min_or_max\" draws one for each sample (the paper's "
                              "multitasking). C.6 has min, sum and min_or_max; C.7's text says max "
                              "where its figures say sum.",
             .allowed = {"min", "max", "sum", "min_or_max"}},
            {.name = "query_categories",
             .default_value = int64_t{4},
             .documentation = "k, the number of names in the question.",
             .minimum = 2,
             .maximum = 20},
            {.name = "distractors",
             .default_value = int64_t{0},
             .documentation = "m, the number of distractors: marked names without a number "
                              "(\"Cat+7\") at random places in the list. C.7 has 2.",
             .minimum = 0,
             .maximum = 20},
            {
                .name = "tokenize_numbers",
                .default_value = false,
                .documentation = "Writes a number as five characters, \"07.28\", instead of as a "
                                 "single row (C.7, second setting).",
            },
            {.name = "query_says_categories",
             .default_value = true,
             .documentation =
                 "Writes \"Find min of categories Cat5 and ...\", like the authors' program. "
                 "False: \"Find min of Cat5 and ...\", as printed in the paper."},
            {.name = "unseen_marks",
             .default_value = std::string("*_"),
             .documentation =
                 "The two distractor marks in tests; training uses + and -. \"*_\" follows the "
                 "authors' program and the paper's example, \"-*\" the paper's text.",
             .allowed = {"*_", "-*"}},
            {.name = "scratchpad",
             .default_value = true,
             .documentation = "Appends an empty row, which the network may write to."},
            {.name = "bound",
             .default_value = 5.0,
             .documentation = "Training values lie between 0 and this.",
             .minimum = 0.1,
             .maximum = 1e6}}},
      TaskKind::kRegression,
      "",
      0.0,
      CreateRelationalQuery,
      /*permutation_invariant=*/false,
      /*axis=*/"scale",
      /*axis_title=*/"scale of the numbers",
      /*accuracy_title=*/"accuracy by closeness",
      // Names are unseen even at scale 1.
      /*seen_up_to=*/0,
      /*compared_by_loss=*/true,
      /*loss_title=*/"mean squared error"};
}

}  // namespace lengthwise::tasks::numeric
