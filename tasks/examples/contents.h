// Summary of the files of examples, stored in a specification. It suffices to validate the
// specification without the files.
#ifndef LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_
#define LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/examples/example_set.h"

namespace lengthwise::tasks::examples {

struct Contents {
  struct OfPart {
    int64_t examples = 0;
    // Number of examples by length.
    std::map<int32_t, int64_t> lengths;
    // Tokens of the longest example, input and target together.
    int64_t longest = 0;
    // Tokens of the longest and the shortest example of each length. Empty in specifications of
    // release 0.2.0.
    std::map<int32_t, int64_t> longest_by_length;
    std::map<int32_t, int64_t> shortest_by_length;

    bool operator==(const OfPart&) const = default;
  };

  Form form = Form::kSymbols;
  int32_t input_symbols = 0;
  int32_t target_symbols = 0;
  bool same_length = false;
  // Options::reading.
  int64_t reading = Options().reading;
  // ExampleSet::one_size. Absent in specifications of earlier releases.
  std::optional<bool> one_size;
  // Loaded::largest_position and its line, which is for messages.
  int64_t largest_position = -1;
  std::string largest_position_line;
  int64_t train_bytes = 0;
  int64_t test_bytes = 0;
  OfPart training;
  OfPart test;

  bool is_text() const { return form == Form::kCharacters || form == Form::kWords; }

  bool operator==(const Contents&) const = default;
};

Contents ContentsOf(const Loaded& loaded);

// Returns true if the files (`held`) agree with a specification's summary (`said`), which may lack
// newer fields.
bool Agrees(const Contents& said, Contents held);

// Serializes to the parameter `contents`: JSON of a few hundred bytes for each thousand lengths.
std::string ToText(const Contents& contents);
// INVALID_ARGUMENT for text that ToText did not write.
absl::StatusOr<Contents> ParseContents(absl::string_view text);

struct FileBytes {
  int64_t train = 0;
  int64_t test = 0;  // 0 without a test file
};
// Reads only the file sizes. Same errors as ParseContents.
absl::StatusOr<FileBytes> ParseFileBytes(absl::string_view text);

// Formats lengths for a message: "1..20, 25". Shows at most eight ranges.
std::string ShowLengths(const std::map<int32_t, int64_t>& lengths);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_
