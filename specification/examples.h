// Validates tasks backed by files of examples against what the files contain, and lists the files
// that a specification needs.
#ifndef LENGTHWISE_SPECIFICATION_EXAMPLES_H_
#define LENGTHWISE_SPECIFICATION_EXAMPLES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "proto/specification.pb.h"
#include "specification/findings.h"
#include "tasks/entry.h"

namespace lengthwise::specification {

// Fewest and most tokens of a sequence, input and output together. 0 if unknown.
struct SequenceRange {
  int64_t shortest = 0;
  int64_t longest = 0;
  // Largest id of examples; -1 if a task has none. And its line, if a file has it.
  int64_t largest_id = 0;
  std::string largest_id_line = {};
  // True if sequences are continued token by token, so that their length is not known in advance.
  bool open_ended = false;

  void Take(int64_t tokens) { Take({tokens, tokens}); }
  void TakeId(int64_t largest, const std::string& line = "") {
    if (largest_id < 0 || (largest >= 0 && largest <= largest_id)) return;
    largest_id = largest;
    largest_id_line = line;
  }
  void Take(const SequenceRange& other) {
    if (shortest == 0 || (other.shortest > 0 && other.shortest < shortest)) {
      shortest = other.shortest;
    }
    longest = std::max(longest, other.longest);
    TakeId(other.largest_id, other.largest_id_line);
  }
};

// Checks the task at `path` ("tasks[0]") against the rest of the specification. `entry` is one of
// tasks/examples/entries.h. Reads only the task's parameter `contents`, never the file. Returns the
// sequence lengths for the lengths that the specification names.
SequenceRange CheckExamples(const v1::ExperimentSpecification& specification,
                            const std::string& path, const tasks::TaskEntry& entry,
                            const catalogue::Parameters& parameters, Findings& findings);

// A file that the trials of a specification read: examples, or the archive of a network.
struct DataFile {
  std::string sha256;
  int64_t bytes = 0;

  bool operator==(const DataFile&) const = default;
};

// The files of all tasks and networks, without duplicates.
std::vector<DataFile> DataFilesOf(const v1::ExperimentSpecification& specification);

// Default of evaluation.seen_up_to: the longest length within training.lengths of which a task's
// file has training examples; the smallest over the tasks. Absent unless every task has a file that
// was read.
std::optional<int32_t> SeenInFiles(const v1::ExperimentSpecification& specification);

// What readers of the results should know about the files of a resolved specification: evaluated
// lengths that count as seen although training has no examples of them, and those of few test
// examples.
std::vector<std::string> ExampleWarnings(const v1::ExperimentSpecification& specification);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXAMPLES_H_
