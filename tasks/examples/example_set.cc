#include "tasks/examples/example_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "tasks/examples/line.h"

namespace lengthwise::tasks::examples {
namespace {

// FNV-1a with a final mix. Equal on every machine, because it selects the held-out examples.
class Fingerprint {
 public:
  void Add(absl::string_view bytes) {
    for (const char byte : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    }
  }
  uint64_t value() const {
    uint64_t mixed = hash_;
    mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccd;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53;
    return mixed ^ (mixed >> 33);
  }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// Calls `take` with each symbol of a text: its words, or its characters.
template <typename Take>
void ForEachSymbol(absl::string_view text, bool words, const Take& take) {
  if (words) {
    for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) take(word);
    return;
  }
  for (size_t start = 0; start < text.size();) {
    size_t end = start + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    take(text.substr(start, end - start));
    start = end;
  }
}

// Equal for inputs with equal symbols.
uint64_t FingerprintOf(const LineValues& input, bool words) {
  Fingerprint print;
  if (!input.is_text) {
    print.Add({reinterpret_cast<const char*>(input.numbers.data()),
               input.numbers.size() * sizeof(double)});
  } else if (words) {
    bool first = true;
    ForEachSymbol(input.text, words, [&](absl::string_view word) {
      if (!first) print.Add(" ");
      first = false;
      print.Add(word);
    });
  } else {
    print.Add(input.text);
  }
  return print.value();
}

// Numbers the symbols of text in order of appearance, until all are known.
class Vocabulary {
 public:
  // With `complete`, returns -1 for an unknown symbol instead of adding it.
  int32_t Find(absl::string_view symbol, bool complete) {
    const auto found = numbers_.find(symbol);
    if (found != numbers_.end()) return found->second;
    if (complete) return -1;
    const auto number = static_cast<int32_t>(numbers_.size());
    numbers_.emplace(std::string(symbol), number);
    return number;
  }
  size_t size() const { return numbers_.size(); }

  // The symbols in byte order. `places` maps each number to its index there.
  std::vector<std::string> Sorted(std::vector<int32_t>& places) const {
    std::vector<std::pair<std::string, int32_t>> all(numbers_.begin(), numbers_.end());
    std::sort(all.begin(), all.end());
    places.resize(all.size());
    std::vector<std::string> symbols;
    for (size_t i = 0; i < all.size(); ++i) {
      places[static_cast<size_t>(all[i].second)] = static_cast<int32_t>(i);
      symbols.push_back(std::move(all[i].first));
    }
    return symbols;
  }

 private:
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

struct ReadExample {
  Example example;
  int64_t line = 0;
  uint64_t fingerprint = 0;
  bool is_counted = true;  // at least one value of the target is
};

std::string Size(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Returns ": write 1, not 1.0" for a symbol that was written as a fraction or with an exponent,
// such as NumPy's; empty for other numbers.
std::string WholeAdvice(const std::string& number) {
  double value = -1;
  int64_t integer = 0;
  if (absl::SimpleAtoi(number, &integer) || !absl::SimpleAtod(number, &value)) return "";
  if (value < 0 || value >= kMostSymbols || value != std::floor(value)) return "";
  return absl::StrCat(": write ", static_cast<int64_t>(value), ", not ", number);
}

// If `line`, the first of the file `name`, shows another format, says which and how to convert it.
// Empty if it does not.
std::string OtherFormat(absl::string_view line, const std::string& name) {
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  if (absl::StartsWith(text, "\x1f\x8b")) {
    return absl::StrCat("is compressed; unpack the file: gunzip <", name, " >unpacked.jsonl");
  }
  std::string what, rows;
  if (text == "[" || absl::StartsWith(text, "[{")) {
    what = "is a JSON array, not a line for each example";
    rows = "row)) for row in json.load(sys.stdin)";
  } else {
    const bool has_tabs = absl::StrContains(text, '\t');
    const size_t column = text.find_first_of(has_tabs ? "\t" : ",;");
    if (column == absl::string_view::npos || text.find_first_of("{[") < column) return "";
    const bool has_header = absl::StrContains(text, "input") && absl::StrContains(text, "target");
    what = "is a line of columns, not JSON";
    rows = absl::StrCat(
        has_header
            ? "dict(input=row[\"input\"], target=row[\"target\"]))) for row in csv.DictReader"
            : "dict(input=row[0], target=row[1]))) for row in csv.reader",
        "(sys.stdin, delimiter=\"", has_tabs ? "\\t" : std::string(1, text[column]), "\")");
  }
  return absl::StrCat(what, "; convert the file: python3 -c 'import csv, json, sys; ",
                      "[print(json.dumps(", rows, "]' <", name, " >converted.jsonl");
}

class Loader {
 public:
  Loader(const Options& options, Problems& problems) : options_(options), problems_(problems) {}

  absl::StatusOr<Loaded> Load(const File& train, const File& test);

 private:
  struct Source {
    std::string name;
    // Test values are checked against the training file's, which are all known by then.
    bool is_test = false;
  };

  enum Side : size_t { kInput, kTarget };

  absl::Status Read(const File& file, bool is_test, std::vector<ReadExample>& examples,
                    std::string& sha256, int64_t& bytes);
  void Take(const Source& source, int64_t number, absl::string_view text, bool too_long);
  // Appends the values. Returns their number, or nullopt if they are wrong.
  std::optional<uint32_t> Append(const std::string& field, const Source& source, Side side,
                                 const LineValues& values);
  void AppendNumber(double value, bool whole);
  // False if the line's positions are wrong, for `values` values of input and target.
  bool CheckPositions(const std::string& field, uint32_t values);
  // Converts everything read so far to real numbers.
  void BecomeNumbers(const std::string& field, const std::string& value);
  void CheckTargetLengths(const std::string& name, size_t count);
  void CheckSymbols(const File& train);
  // True for examples that are held out for their length.
  bool IsTooLong(const ReadExample& read) const {
    return options_.held_out_above > 0 && read.example.length > options_.held_out_above;
  }
  // Returns the fingerprints of the inputs that are held out without a test file.
  absl::flat_hash_set<uint64_t> DrawHeldOut(const std::vector<ReadExample>& examples) const;
  // Removes the examples of which no value counts: they would be 0 of 0 in a mean. Reports lengths
  // that are left with none.
  void DropUncounted(const std::string& name, std::vector<ReadExample>& examples,
                     std::vector<std::string>& warnings);
  static void Sort(const std::vector<ReadExample>& examples, Part& part);
  void Finish();

  const Options options_;
  Problems& problems_;
  Line line_;
  std::optional<bool> is_text_;
  bool is_numbers_ = false;
  // The file that is being read has another format, which is one mistake, not one of every line.
  bool is_other_format_ = false;
  ExampleSet set_;
  std::vector<uint8_t> mask_;           // unused until a line has a mask
  std::optional<bool> have_positions_;  // as the lines before
  int64_t largest_position_ = -1;
  std::string largest_position_line_;
  // Of inputs and of targets.
  std::array<Vocabulary, 2> vocabularies_;
  std::array<int32_t, 2> most_ = {-1, -1};
  // The first value beyond the largest symbol, and its location.
  std::string beyond_field_, beyond_;
  std::vector<ReadExample>* examples_ = nullptr;
  int64_t as_long_ = 0;
  std::vector<catalogue::Problem> not_as_long_;  // mistakes if most lines differ from these
  int64_t all_not_as_long_ = 0;
};

void Loader::BecomeNumbers(const std::string& field, const std::string& value) {
  if (largest_position_ >= 0) {
    problems_.Add(largest_position_line_, "has positions, which numbers do not: remove them");
  }
  is_numbers_ = true;
  set_.numbers.assign(set_.symbols.begin(), set_.symbols.end());
  set_.symbols = {};
  beyond_field_ = field;
  beyond_ = value;
}

std::optional<uint32_t> Loader::Append(const std::string& field, const Source& source, Side side,
                                       const LineValues& values) {
  const absl::string_view what = side == kInput ? "input" : "target";
  // What the training file has of a symbol: a language model reads and writes the same ones.
  const absl::string_view known_in = options_.continues_text ? "line" : what;
  const Side other = options_.continues_text ? static_cast<Side>(1 - side) : side;
  if (values.is_text) {
    uint32_t count = 0;
    bool known = true;
    ForEachSymbol(values.text, options_.words, [&](absl::string_view symbol) {
      const bool is_closed =
          source.is_test && (other == side || vocabularies_[other].Find(symbol, true) < 0);
      const int32_t number = vocabularies_[side].Find(symbol, is_closed);
      if (number < 0 && known) {
        known = false;
        problems_.Add(field, what, " has the symbol \"", platform::PrintableLine(symbol),
                      "\", which occurs in no ", known_in, " of the training file");
      }
      set_.symbols.push_back(number);
      ++count;
    });
    if (!known) return std::nullopt;
    if (count == 0 || count > kMostLength) {
      problems_.Add(field, what, " has ", Size(count, "symbol"), ", expected 1 to ", kMostLength);
      return std::nullopt;
    }
    return count;
  }
  for (const double value : values.numbers) {
    if (!is_numbers_ && (options_.as_numbers || !values.not_whole.empty() || value < 0)) {
      const std::string number = values.not_whole.empty() ? absl::StrCat(value) : values.not_whole;
      if (source.is_test) {
        problems_.Add(field, what, " has the number ", number,
                      ", but the training file has symbols, integers from 0", WholeAdvice(number));
        return std::nullopt;
      }
      BecomeNumbers(field, number);
    }
    if (is_numbers_) {
      if (std::abs(value) > kLargestNumber) {
        problems_.Add(field, what, " has the number ", value, ", expected at most ", kLargestNumber,
                      ", and at least ", -kLargestNumber,
                      ": squares of larger errors exceed float32; scale the numbers");
        return std::nullopt;
      }
      set_.numbers.push_back(value);
      continue;
    }
    const auto symbol = static_cast<int32_t>(value);
    if (const int32_t known = std::max(most_[side], most_[other]);
        source.is_test && symbol > known) {
      problems_.Add(field, what, " has the symbol ", symbol, ", but each ", known_in,
                    " of the training file has symbols from 0 to ", known);
      return std::nullopt;
    }
    if (symbol >= kMostSymbols && beyond_.empty()) {
      beyond_field_ = field;
      beyond_ = absl::StrCat(symbol);
    }
    most_[side] = std::max(most_[side], symbol);
    set_.symbols.push_back(symbol);
  }
  return static_cast<uint32_t>(values.numbers.size());
}

void Loader::Take(const Source& source, int64_t number, absl::string_view text, bool too_long) {
  const std::string field = absl::StrCat(source.name, ":", number);
  if (too_long) {
    problems_.Add(field, "has more than ", kMostLineBytes,
                  " bytes; is a newline missing between examples?");
    return;
  }
  if (const absl::Status status = ParseLine(text, line_); !status.ok()) {
    const std::string format = number == 1 ? OtherFormat(text, source.name) : "";
    is_other_format_ = !format.empty();
    problems_.Add(field, is_other_format_ ? format : std::string(status.message()));
    return;
  }
  if (is_text_.has_value() && *is_text_ != line_.input.is_text) {
    problems_.Add(field, "has ", line_.input.is_text ? "text" : "lists",
                  ", but the lines before it have ", *is_text_ ? "text" : "lists");
    return;
  }
  is_text_ = line_.input.is_text;
  ReadExample read = {
      .example = {}, .line = number, .fingerprint = FingerprintOf(line_.input, options_.words)};
  const size_t symbols = set_.symbols.size(), numbers = set_.numbers.size();
  const auto drop = [&] {
    if (is_numbers_) {
      // Values that were converted while reading counted as symbols before.
      set_.numbers.resize(std::max(symbols, numbers));
    } else {
      set_.symbols.resize(symbols);
    }
  };
  read.example.first = std::max(symbols, numbers);
  const auto inputs = Append(field, source, kInput, line_.input);
  const auto targets =
      inputs.has_value() ? Append(field, source, kTarget, line_.target) : std::nullopt;
  if (!targets.has_value()) return drop();
  Example& example = read.example;
  example.inputs = *inputs;
  example.targets = *targets;
  example.length = static_cast<int32_t>(line_.length > 0 ? line_.length : *inputs);
  if (line_.has_mask && line_.mask.size() != *targets) {
    problems_.Add(field, "mask has ", Size(static_cast<int64_t>(line_.mask.size()), "value"),
                  ", expected ", *targets, ", as the target");
    return drop();
  }
  if (!CheckPositions(field, *inputs + *targets)) return drop();
  if (line_.has_positions) {
    set_.positions.resize(example.first);
    set_.positions.insert(set_.positions.end(), line_.positions.begin(), line_.positions.end());
  }
  read.is_counted = line_.mask.empty() || std::count(line_.mask.begin(), line_.mask.end(), 1) > 0;
  if (!line_.mask.empty() || !mask_.empty()) {
    mask_.resize(example.first + *inputs, 1);
    if (line_.mask.empty()) {
      mask_.resize(mask_.size() + *targets, 1);
    } else {
      mask_.insert(mask_.end(), line_.mask.begin(), line_.mask.end());
    }
  }
  if (*inputs == *targets) {
    ++as_long_;
  } else if (++all_not_as_long_; not_as_long_.size() < kMostProblems) {
    not_as_long_.push_back(
        {field, absl::StrCat("target has ", Size(*targets, is_numbers_ ? "number" : "symbol"),
                             ", expected ", *inputs, ", as the input")});
  }
  examples_->push_back(read);
}

bool Loader::CheckPositions(const std::string& field, uint32_t values) {
  if (have_positions_.has_value() && *have_positions_ != line_.has_positions) {
    problems_.Add(field, line_.has_positions ? "has positions, but the lines before it have none"
                                             : "has no positions, but the lines before it have");
    return false;
  }
  have_positions_ = line_.has_positions;
  if (!line_.has_positions) return true;
  if (line_.positions.size() != values) {
    problems_.Add(field, "positions has ",
                  Size(static_cast<int64_t>(line_.positions.size()), "value"), ", expected ",
                  values, ", one for each of the input and the target");
    return false;
  }
  if (is_numbers_) {
    problems_.Add(field, "has positions, which numbers do not: remove them");
    return false;
  }
  const int64_t largest = *std::max_element(line_.positions.begin(), line_.positions.end());
  if (largest > largest_position_) {
    largest_position_ = largest;
    largest_position_line_ = field;
  }
  return true;
}

absl::Status Loader::Read(const File& file, bool is_test, std::vector<ReadExample>& examples,
                          std::string& sha256, int64_t& bytes) {
  ASSIGN_OR_RETURN(const platform::FileStatus before, platform::GetFileStatus(file.path));
  if (before.size > kMostFileBytes) {
    problems_.Add(file.name, "has ", before.size, " bytes, expected at most ", kMostFileBytes,
                  " (1 GiB)");
    return absl::OkStatus();
  }
  examples_ = &examples;
  is_other_format_ = false;
  // After mistakes in the training file, its vocabulary is incomplete.
  const Source source = {.name = file.name, .is_test = is_test && problems_.all == 0};
  Lines lines(kMostLineBytes, [&](int64_t number, absl::string_view text, bool too_long) {
    if (!is_other_format_) Take(source, number, text, too_long);
  });
  platform::Sha256 hash;
  RETURN_IF_ERROR(platform::ReadFileInChunks(file.path, [&](absl::string_view chunk) {
    hash.Update(chunk);
    lines.Add(chunk);
    bytes += static_cast<int64_t>(chunk.size());
    return bytes <= kMostFileBytes;
  }));
  lines.End();
  sha256 = hash.Finish();
  if (!file.sha256.empty()) {
    if (sha256 == file.sha256) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the copy of ", file.name, " changed on this machine"));
  }
  ASSIGN_OR_RETURN(const platform::FileStatus after, platform::GetFileStatus(file.path));
  if (after.size != before.size || after.modified != before.modified || bytes != after.size) {
    problems_.Add(file.name, "changed while it was being read; try again when it is complete");
  } else if (examples.empty() && problems_.all == 0) {
    problems_.Add(file.name,
                  "has no examples; expected a line for each, such as {\"input\": [1, 0], "
                  "\"target\": [0]}");
  }
  return absl::OkStatus();
}

void Loader::CheckTargetLengths(const std::string& name, size_t count) {
  set_.same_length = all_not_as_long_ == 0;
  if (options_.any_target_length || options_.continues_text || all_not_as_long_ == 0 ||
      2 * static_cast<size_t>(as_long_) <= count) {
    return;
  }
  for (const auto& suspect : not_as_long_) problems_.Add(suspect.field, suspect.description);
  problems_.all += all_not_as_long_ - static_cast<int64_t>(not_as_long_.size());
  problems_.Add(name, "if targets may have any length, set target_length: any");
}

void Loader::CheckSymbols(const File& train) {
  if (*is_text_) {
    const size_t most = std::max(vocabularies_[kInput].size(), vocabularies_[kTarget].size());
    if (most > static_cast<size_t>(kMostSymbols)) {
      problems_.Add(train.name, "has ", most, " distinct symbols, expected at most ", kMostSymbols);
    }
  } else if (!is_numbers_ && !beyond_.empty()) {
    problems_.Add(beyond_field_, "has the symbol ", beyond_, ", expected integers from 0 to ",
                  kMostSymbols - 1);
  }
}

absl::flat_hash_set<uint64_t> Loader::DrawHeldOut(const std::vector<ReadExample>& examples) const {
  absl::flat_hash_set<uint64_t> held_out;
  if (options_.reading == 0) {
    for (const ReadExample& read : examples) {
      if (read.fingerprint < static_cast<uint64_t>(options_.held_out * 0x1p64)) {
        held_out.insert(read.fingerprint);
      }
    }
    return held_out;
  }
  if (options_.held_out == 0) return held_out;
  std::vector<std::pair<int32_t, uint64_t>> candidates;  // lengths and inputs
  for (const ReadExample& read : examples) {
    if (IsTooLong(read) || !read.is_counted) continue;
    candidates.emplace_back(read.example.length, read.fingerprint);
  }
  std::sort(candidates.begin(), candidates.end());
  // What lengths with few examples are owed goes to the next ones.
  double owed = 0;
  for (auto one = candidates.begin(); one != candidates.end();) {
    const auto end = std::find_if(one, candidates.end(), [&](const auto& candidate) {
      return candidate.first != one->first;
    });
    owed = std::max(owed, -0.5) + options_.held_out * static_cast<double>(end - one);
    // A length with several inputs has some of them in both parts.
    const uint64_t last = std::prev(end)->second;
    const bool is_alone = one->second == last;
    for (bool has_some = is_alone; one != end; ++one) {
      if (!held_out.contains(one->second)) {
        if ((owed < 0.5 && has_some) || (one->second == last && !is_alone)) continue;
        held_out.insert(one->second);
      }
      has_some = true;
      --owed;
    }
  }
  return held_out;
}

void Loader::DropUncounted(const std::string& name, std::vector<ReadExample>& examples,
                           std::vector<std::string>& warnings) {
  absl::flat_hash_set<int32_t> counted;
  for (const ReadExample& read : examples) {
    if (read.is_counted) counted.insert(read.example.length);
  }
  int64_t line = 0;
  for (const ReadExample& read : examples) {
    if (!read.is_counted && line == 0) line = read.line;
    if (!counted.insert(read.example.length).second) continue;
    problems_.Add(absl::StrCat(name, ":", read.line),
                  "mask is 0 throughout, as in all lines of length ", read.example.length,
                  ": at least one needs a 1");
  }
  const size_t dropped = std::erase_if(examples, [](const auto& read) { return !read.is_counted; });
  if (dropped == 0) return;
  warnings.push_back(absl::StrCat(
      name, ":", line, ": mask is 0 throughout, so ",
      dropped == 1 ? "this line is" : absl::StrCat("this and ", dropped - 1, " more are"),
      " left out"));
}

void Loader::Sort(const std::vector<ReadExample>& examples, Part& part) {
  for (const ReadExample& read : examples) {
    part[read.example.length].examples.push_back(read.example);
  }
  for (auto& [length, group] : part) {
    std::stable_sort(group.examples.begin(), group.examples.end(),
                     [](const Example& a, const Example& b) {
                       return std::pair(a.inputs, a.targets) < std::pair(b.inputs, b.targets);
                     });
    for (uint32_t i = 0; i < group.examples.size(); ++i) {
      const Example& example = group.examples[i];
      if (i == 0 || !example.SameShape(group.examples[i - 1])) group.shapes.push_back(i);
      group.longest = std::max(group.longest, int64_t{example.inputs} + example.targets);
    }
  }
}

void Loader::Finish() {
  const Example& any = set_.training.begin()->second.examples.front();
  set_.one_size = std::all_of(set_.training.begin(), set_.training.end(), [&](const auto& group) {
    return group.second.shapes.size() == 1 && group.second.examples.front().SameShape(any);
  });
  set_.form = is_numbers_      ? Form::kNumbers
              : !*is_text_     ? Form::kSymbols
              : options_.words ? Form::kWords
                               : Form::kCharacters;
  set_.mask = std::move(mask_);
  if (!set_.mask.empty()) set_.mask.resize(std::max(set_.symbols.size(), set_.numbers.size()), 1);
  if (is_numbers_) return;
  set_.input_symbols = most_[kInput] + 1;
  set_.target_symbols = most_[kTarget] + 1;
  if (!*is_text_) return;
  // Symbols are renumbered in byte order, so that the file's line order does not matter.
  std::vector<int32_t> of_inputs, of_targets;
  set_.input_vocabulary = vocabularies_[kInput].Sorted(of_inputs);
  set_.target_vocabulary = vocabularies_[kTarget].Sorted(of_targets);
  set_.input_symbols = static_cast<int32_t>(set_.input_vocabulary.size());
  set_.target_symbols = static_cast<int32_t>(set_.target_vocabulary.size());
  for (const Part* part : {&set_.training, &set_.test}) {
    for (const auto& [length, group] : *part) {
      for (const Example& example : group.examples) {
        int32_t* const values = set_.symbols.data() + example.first;
        for (uint32_t i = 0; i < example.inputs + example.targets; ++i) {
          const auto& places = i < example.inputs ? of_inputs : of_targets;
          values[i] = places[static_cast<size_t>(values[i])];
        }
      }
    }
  }
}

absl::StatusOr<Loaded> Loader::Load(const File& train, const File& test) {
  Loaded loaded;
  std::vector<ReadExample> training, testing;
  is_numbers_ = options_.as_numbers;
  RETURN_IF_ERROR(
      Read(train, /*is_test=*/false, training, loaded.train_sha256, loaded.train_bytes));
  if (!test.path.empty()) {
    RETURN_IF_ERROR(Read(test, /*is_test=*/true, testing, loaded.test_sha256, loaded.test_bytes));
  }
  CheckTargetLengths(train.name, training.size() + testing.size());
  if (is_text_.has_value()) CheckSymbols(train);
  RETURN_IF_ERROR(problems_.ToStatus());

  if (!test.path.empty()) {
    absl::flat_hash_set<uint64_t> seen;
    for (const ReadExample& read : training) seen.insert(read.fingerprint);
    int64_t known = 0, first = 0;
    for (const ReadExample& read : testing) {
      if (!seen.contains(read.fingerprint)) continue;
      if (known++ == 0) first = read.line;
    }
    if (known > 0) {
      loaded.warnings.push_back(absl::StrCat(
          test.name, ":", first, ": ", known == 1 ? "this input also occurs" : "this input and ",
          known == 1 ? "" : absl::StrCat(known - 1, " more of this file also occur"), " in ",
          train.name, ": accuracy at their lengths may show memorization, not generalization"));
    }
  } else {
    if (is_numbers_ && options_.reading > 0) {
      // Neither part may be left with only such lines of a length.
      DropUncounted(train.name, training, loaded.warnings);
      RETURN_IF_ERROR(problems_.ToStatus());
    }
    const absl::flat_hash_set<uint64_t> drawn = DrawHeldOut(training);
    const auto held_out =
        std::stable_partition(training.begin(), training.end(), [&](const ReadExample& read) {
          return !IsTooLong(read) && !drawn.contains(read.fingerprint);
        });
    testing.assign(held_out, training.end());
    training.erase(held_out, training.end());
    if (training.empty()) {
      problems_.Add(train.name,
                    "leaves no training examples; lower held_out or raise held_out_above");
    } else if (testing.empty()) {
      problems_.Add(train.name, "leaves no test examples; raise held_out, or set test to a file");
    }
  }
  if (options_.reading > 0) {
    // The loss of symbols counts masked values too, so training may show them.
    if (is_numbers_) DropUncounted(train.name, training, loaded.warnings);
    DropUncounted(test.path.empty() ? train.name : test.name, testing, loaded.warnings);
  }
  RETURN_IF_ERROR(problems_.ToStatus());
  Sort(training, set_.training);
  Sort(testing, set_.test);
  Finish();
  if (is_numbers_ && !beyond_.empty()) {
    loaded.first_number = {beyond_field_,
                           absl::StrCat("has the number ", beyond_,
                                        ", which makes all values numbers; symbols are integers "
                                        "from 0 to ",
                                        kMostSymbols - 1, WholeAdvice(beyond_))};
  }
  loaded.largest_position = largest_position_;
  loaded.largest_position_line = largest_position_line_;
  loaded.set = std::make_shared<const ExampleSet>(std::move(set_));
  return loaded;
}

std::string Show(const ExampleSet& set, const std::vector<std::string>& vocabulary, size_t first,
                 size_t count) {
  if (set.form == Form::kNumbers) {
    return absl::StrJoin(
        absl::MakeConstSpan(set.numbers).subspan(first, count), " ",
        [](std::string* out, double number) { absl::StrAppendFormat(out, "%.4g", number); });
  }
  const auto symbols = absl::MakeConstSpan(set.symbols).subspan(first, count);
  if (set.form == Form::kSymbols) return absl::StrJoin(symbols, " ");
  return absl::StrJoin(symbols, set.form == Form::kWords ? " " : "",
                       [&](std::string* out, int32_t symbol) {
                         out->append(vocabulary[static_cast<size_t>(symbol)]);
                       });
}

}  // namespace

Options OptionsOf(const catalogue::Parameters& parameters) {
  return {.words = parameters.String("symbols") == "words",
          .any_target_length = parameters.String("target_length") == "any",
          .held_out_above = parameters.Int("held_out_above"),
          .held_out = parameters.Double("held_out")};
}

int64_t Count(const Part& part) {
  int64_t count = 0;
  for (const auto& [length, group] : part) count += static_cast<int64_t>(group.examples.size());
  return count;
}

const LengthGroup* Find(const Part& part, int64_t length) {
  const auto found = part.find(static_cast<int32_t>(length));
  return found == part.end() ? nullptr : &found->second;
}

int64_t ExampleSet::TestExamples(int64_t length, int64_t asked) const {
  const LengthGroup* group = Find(test, length);
  return group == nullptr ? 0 : std::min(asked, static_cast<int64_t>(group->examples.size()));
}

absl::StatusOr<std::vector<int32_t>> ExampleSet::ReadInput(absl::string_view text) const {
  if (input_vocabulary.empty()) {
    return absl::InvalidArgumentError("it is text; the task's inputs are numbers");
  }
  std::vector<int32_t> read;
  absl::Status status;
  ForEachSymbol(text, form == Form::kWords, [&](absl::string_view symbol) {
    const auto found = std::lower_bound(input_vocabulary.begin(), input_vocabulary.end(), symbol);
    if (found == input_vocabulary.end() || *found != symbol) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("it has the symbol \"", platform::PrintableLine(symbol),
                       "\", which occurs in no input of the training file")));
    }
    read.push_back(static_cast<int32_t>(found - input_vocabulary.begin()));
  });
  RETURN_IF_ERROR(status);
  return read;
}

std::string ExampleSet::ShowInput(const Example& example) const {
  return Show(*this, input_vocabulary, example.first, example.inputs);
}

std::string ExampleSet::ShowTarget(const Example& example) const {
  return Show(*this, target_vocabulary, example.first + example.inputs, example.targets);
}

absl::Status Problems::ToStatus() const {
  if (all == 0) return absl::OkStatus();
  std::string text = absl::StrJoin(named, "\n", [](std::string* out, const auto& problem) {
    absl::StrAppend(out, problem.field, ": ", problem.description);
  });
  if (all > static_cast<int64_t>(named.size())) {
    absl::StrAppend(&text, "\nand ", all - static_cast<int64_t>(named.size()), " more");
  }
  return absl::InvalidArgumentError(text);
}

absl::StatusOr<Loaded> Load(const File& train, const File& test, const Options& options,
                            Problems& problems) {
  return Loader(options, problems).Load(train, test);
}

}  // namespace lengthwise::tasks::examples
