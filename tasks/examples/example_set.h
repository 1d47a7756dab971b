// Reads and checks a user's examples from files of JSON lines, and holds them in memory. Does not
// depend on LibTorch or gRPC.
//
// A line is {"input": [3, 1, 2], "target": [1, 2, 3]}, with lists of numbers or text as values. It
// may also have "mask" (which target values count), "length" (the example's place on the axis of
// generalization; default: the input's size) and "positions" (ids of all symbols, for encodings
// with `positions: data`).
#ifndef LENGTHWISE_TASKS_EXAMPLES_EXAMPLE_SET_H_
#define LENGTHWISE_TASKS_EXAMPLES_EXAMPLE_SET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::tasks::examples {

inline constexpr int64_t kMostFileBytes = int64_t{1} << 30;
inline constexpr int64_t kMostLineBytes = int64_t{4} << 20;
inline constexpr int32_t kMostSymbols = 65'536;
// Largest magnitude of a number. Sums of thousands of squared errors fit in float32.
inline constexpr double kLargestNumber = 1e15;
// Number of bad lines that are reported; further ones are only counted.
inline constexpr size_t kMostProblems = 20;

// The type of a file's values.
enum class Form {
  kSymbols,     // integers from 0
  kCharacters,  // text; its symbols are characters
  kWords,       // text; its symbols are words between spaces
  kNumbers,     // real numbers
};

// Options for reading a file: the parameters of a task's entry.
struct Options {
  // Splits text into words instead of characters.
  bool words = false;
  // Treats integers as numbers, not symbols.
  bool as_numbers = false;
  // Accepts targets of any length. Otherwise, if most targets are as long as their inputs, all must
  // be.
  bool any_target_length = false;
  // For a language model, which continues inputs with targets: targets of any length, and one
  // vocabulary for both.
  bool continues_text = false;
  // Without a test file: holds out examples longer than this for testing. 0: none.
  int64_t held_out_above = 0;
  // Without a test file: the fraction of the other examples held out for testing, of every length
  // that has several inputs. The same ones in any order of the lines; equal inputs stay together.
  double held_out = 0.1;
  // 0 reads a file as releases up to 0.2.0 did, for experiments that they resolved: lines of which
  // no value counts are examples, and a hash alone draws what is held out.
  int64_t reading = 1;
};

// `parameters` come from catalogue::Resolve with an entry of entries.h.
Options OptionsOf(const catalogue::Parameters& parameters);

// One example. Its values are in the set's arrays.
struct Example {
  uint64_t first = 0;  // index of the input's first value; the target follows the input
  uint32_t inputs = 0;
  uint32_t targets = 0;
  int32_t length = 0;

  // Examples of one shape can share a batch.
  bool SameShape(const Example& other) const {
    return inputs == other.inputs && targets == other.targets;
  }
};

// Examples of one length, grouped by shape, otherwise in file order.
struct LengthGroup {
  std::vector<Example> examples;
  // Index of the first example of each shape, ascending. The first is 0.
  std::vector<uint32_t> shapes;
  // Tokens of the longest example, input and target together.
  int64_t longest = 0;
};
using Part = std::map<int32_t, LengthGroup>;

int64_t Count(const Part& part);
// Null if the part has no examples of the length.
const LengthGroup* Find(const Part& part, int64_t length);

// Immutable after Load; any thread may read it.
struct ExampleSet {
  Form form = Form::kSymbols;
  // Exclusive upper bounds of the symbols of inputs and targets; 0 for numbers.
  int32_t input_symbols = 0;
  int32_t target_symbols = 0;
  // Text of each symbol; empty unless the form is text.
  std::vector<std::string> input_vocabulary;
  std::vector<std::string> target_vocabulary;
  // True if every target is as long as its input.
  bool same_length = false;
  // True if all training examples have the same shape.
  bool one_size = false;

  // Holds the values of all examples in one of the two arrays, depending on the form.
  std::vector<int32_t> symbols;
  std::vector<double> numbers;
  // Indexed like the target's values; empty if every value counts.
  std::vector<uint8_t> mask;
  // Ids, indexed like the symbols; empty if the files have none.
  std::vector<int32_t> positions;

  Part training;
  Part test;

  absl::Span<const int32_t> Input(const Example& example) const {
    return absl::MakeConstSpan(symbols).subspan(example.first, example.inputs);
  }
  absl::Span<const int32_t> Target(const Example& example) const {
    return absl::MakeConstSpan(symbols).subspan(example.first + example.inputs, example.targets);
  }
  bool Counts(const Example& example, uint32_t target) const {
    return mask.empty() || mask[example.first + example.inputs + target] != 0;
  }
  // How many of `asked` test examples exist at the length.
  int64_t TestExamples(int64_t length, int64_t asked) const;
  // Returns the symbols of an input's text. INVALID_ARGUMENT for text with a symbol that no input
  // of the training file has, and for sets without text.
  absl::StatusOr<std::vector<int32_t>> ReadInput(absl::string_view text) const;
  // Formats values for people: text as in the file, numbers and symbols as lists.
  std::string ShowInput(const Example& example) const;
  std::string ShowTarget(const Example& example) const;
};

// A file on this machine, and its name in messages.
struct File {
  std::string path;
  std::string name;
  // If set, the bytes read must have this SHA-256 (UNAVAILABLE otherwise). Then it does no harm if
  // another process replaces the file meanwhile.
  std::string sha256 = {};
};

struct Loaded {
  std::shared_ptr<const ExampleSet> set;
  // Lower-case hexadecimal SHA-256 and size of the bytes that were read.
  std::string train_sha256;
  std::string test_sha256;  // empty without a test file
  int64_t train_bytes = 0;
  int64_t test_bytes = 0;
  // Notes for the user that are not errors.
  std::vector<std::string> warnings;
  // The value that made all values numbers; empty if none did, or if the options required numbers.
  catalogue::Problem first_number;
  // The largest id, and its location; -1 without ids.
  int64_t largest_position = -1;
  std::string largest_position_line;
};

// Problems of the files. A problem's field is the location: "my_train.jsonl:17".
struct Problems {
  std::vector<catalogue::Problem> named;  // at most kMostProblems
  int64_t all = 0;

  // The description is absl::StrCat of the rest.
  template <typename... Description>
  void Add(absl::string_view field, const Description&... description) {
    ++all;
    if (named.size() < kMostProblems) AddProblem(named, field, description...);
  }
  // One INVALID_ARGUMENT with a line for each problem. OK if there are none.
  absl::Status ToStatus() const;
};

// Reads and checks the files. `test.path` may be empty. Test examples may use only the symbols of
// training examples. Returns INVALID_ARGUMENT with all of `problems` for invalid files, and the
// errors of platform/files.h for unreadable ones. Reads each file once, in chunks: memory is
// bounded by the number of values, not by the length of lines.
absl::StatusOr<Loaded> Load(const File& train, const File& test, const Options& options,
                            Problems& problems);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_EXAMPLE_SET_H_
