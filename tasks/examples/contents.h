// What files of examples hold, in brief: all that a specification is checked against without them.
#ifndef LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_
#define LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/examples/example_set.h"

namespace lengthwise::tasks::examples {

struct Contents {
  struct OfPart {
    int64_t examples = 0;
    // Examples by length.
    std::map<int32_t, int64_t> lengths;
    // Inputs and targets of the longest example together.
    int64_t longest = 0;
    // The same by length, and of the shortest. Empty in specifications of release 0.2.0.
    std::map<int32_t, int64_t> longest_by_length;
    std::map<int32_t, int64_t> shortest_by_length;

    bool operator==(const OfPart&) const = default;
  };

  Form form = Form::kSymbols;
  int32_t input_symbols = 0;
  int32_t target_symbols = 0;
  bool same_length = false;
  int64_t train_bytes = 0;
  int64_t test_bytes = 0;
  OfPart training;
  OfPart test;

  bool operator==(const Contents&) const = default;
};

Contents ContentsOf(const Loaded& loaded);

// Whether the files hold what a specification says of them, which may be less than `held`.
bool Agrees(const Contents& said, Contents held);

// The parameter `contents`: JSON of at most a few hundred bytes for each thousand lengths.
std::string ToText(const Contents& contents);
// INVALID_ARGUMENT for what ToText does not write.
absl::StatusOr<Contents> ParseContents(absl::string_view text);

struct FileBytes {
  int64_t train = 0;
  int64_t test = 0;  // 0 without a test file
};
// These of it alone, without the lengths. The same errors.
absl::StatusOr<FileBytes> ParseFileBytes(absl::string_view text);

// "1–20, 25": lengths for a message, with at most eight ranges.
std::string ShowLengths(const std::map<int32_t, int64_t>& lengths);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_CONTENTS_H_
