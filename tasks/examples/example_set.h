// Examples that a user brings in files of JSON lines: read, checked, and held in memory. No
// LibTorch, no gRPC.
//
// A line is {"input": [3, 1, 2], "target": [1, 2, 3]}, with text or numbers in their place, and
// optionally "mask" (which values of the target count) and "length" (where the example stands on
// the axis of generalization; the size of the input unless a line says otherwise).
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
// Bad lines that are named; the others are counted.
inline constexpr size_t kMostProblems = 20;

// What the values of a file are.
enum class Form {
  kSymbols,     // integers from 0
  kCharacters,  // text whose symbols are characters
  kWords,       // text whose symbols are words between spaces
  kNumbers,     // real numbers
};

// How a file is read: the parameters of a task's entry.
struct Options {
  // Text is words.
  bool words = false;
  // Integers are numbers, too.
  bool as_numbers = false;
  // Targets need not be as long as their inputs where most are.
  bool any_target_length = false;
  // Without a test file: examples of more than this length are for testing alone; 0 for none.
  int64_t held_out_above = 0;
  // Without a test file: the fraction of the other examples that is for testing.
  double held_out = 0.1;
};

// `parameters` come from catalogue::Resolve with an entry of entries.h.
Options OptionsOf(const catalogue::Parameters& parameters);

// One example; its values stand in the set's arrays.
struct Example {
  uint64_t first = 0;  // place of the input's first value; the target's follow the input's
  uint32_t inputs = 0;
  uint32_t targets = 0;
  int32_t length = 0;

  // Examples of one shape can share a batch.
  bool SameShape(const Example& other) const {
    return inputs == other.inputs && targets == other.targets;
  }
};

// Examples of one length, those of one shape side by side, otherwise in the files' order.
struct LengthGroup {
  std::vector<Example> examples;
  // Place of the first example of each shape, ascending; the first is 0.
  std::vector<uint32_t> shapes;
  // Inputs and targets of the longest example together.
  int64_t longest = 0;
};
using Part = std::map<int32_t, LengthGroup>;

int64_t Count(const Part& part);

// Immutable after Load; any thread may read it.
struct ExampleSet {
  Form form = Form::kSymbols;
  // Symbols of inputs and of targets are below these; 0 for numbers.
  int32_t input_symbols = 0;
  int32_t target_symbols = 0;
  // By symbol, for text; empty otherwise.
  std::vector<std::string> input_vocabulary;
  std::vector<std::string> target_vocabulary;
  // Every target is as long as its input.
  bool same_length = false;

  // Symbols or numbers, whichever the form has.
  std::vector<int32_t> symbols;
  std::vector<double> numbers;
  // By the place of the target's values; empty where all count.
  std::vector<uint8_t> mask;

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
  // Values as people write them: text as it stands in the file, with numbers as lists.
  std::string ShowInput(const Example& example) const;
  std::string ShowTarget(const Example& example) const;
};

// A file on this machine, and how messages call it.
struct File {
  std::string path;
  std::string name;
  // Where it is given, the bytes must have this SHA-256, UNAVAILABLE otherwise; that another
  // process touches or replaces the file meanwhile does not matter then.
  std::string sha256 = {};
};

struct Loaded {
  std::shared_ptr<const ExampleSet> set;
  // Lower-case hexadecimal SHA-256 and size of the bytes that were read.
  std::string train_sha256;
  std::string test_sha256;  // empty without a test file
  int64_t train_bytes = 0;
  int64_t test_bytes = 0;
  // What a user may want to know and that is no mistake.
  std::vector<std::string> warnings;
  // The value that made all values numbers; empty where the options did, or none.
  catalogue::Problem first_number;
};

// What is wrong with files: `field` is "my_train.jsonl:17".
struct Problems {
  std::vector<catalogue::Problem> named;  // at most kMostProblems
  int64_t all = 0;

  void Add(std::string field, std::string description);
  // One INVALID_ARGUMENT with a line for each; OK where there are none.
  absl::Status ToStatus() const;
};

// Reads and checks the files. `test.path` may be empty. The symbols of test examples must be those
// of training. Returns INVALID_ARGUMENT, with all of `problems`, for files that are not as they
// should be; errors of platform/files.h for those that cannot be read. A file is read once, in
// chunks: memory is bounded by its values, whatever its lines look like.
absl::StatusOr<Loaded> Load(const File& train, const File& test, const Options& options,
                            Problems& problems);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_EXAMPLE_SET_H_
