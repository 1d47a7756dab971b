// Tasks that are files of examples: what a specification asks of what the files hold.
#ifndef LENGTHWISE_SPECIFICATION_EXAMPLES_H_
#define LENGTHWISE_SPECIFICATION_EXAMPLES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "proto/specification.pb.h"
#include "specification/findings.h"
#include "tasks/entry.h"

namespace lengthwise::specification {

// Fewest and most tokens of a sequence, input and output; 0 where they are not known.
struct SequenceRange {
  int64_t shortest = 0;
  int64_t longest = 0;

  void Take(int64_t tokens) { Take({tokens, tokens}); }
  void Take(const SequenceRange& other) {
    if (shortest == 0 || (other.shortest > 0 && other.shortest < shortest)) {
      shortest = other.shortest;
    }
    longest = std::max(longest, other.longest);
  }
};

// Checks the task at `path` ("tasks[0]"), of an entry of tasks/examples/entries.h, with the rest of
// the specification, by its parameter `contents` alone. Returns the sequences of the lengths that
// the specification names.
SequenceRange CheckExamples(const v1::ExperimentSpecification& specification,
                            const std::string& path, const tasks::TaskEntry& entry,
                            const catalogue::Parameters& parameters, Findings& findings);

// A file of examples that trials of a specification need.
struct DataFile {
  std::string sha256;
  int64_t bytes = 0;

  bool operator==(const DataFile&) const = default;
};

// Of all tasks, each file once.
std::vector<DataFile> DataFilesOf(const v1::ExperimentSpecification& specification);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXAMPLES_H_
