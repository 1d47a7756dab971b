// Finds, reads and checks the example files that a specification names.
#ifndef LENGTHWISE_CLIENT_COMMANDS_EXAMPLE_FILES_H_
#define LENGTHWISE_CLIENT_COMMANDS_EXAMPLE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "specification/parse.h"
#include "tasks/examples/example_set.h"

namespace lengthwise::client {

// A file that trials of a specification need.
struct ExampleFile {
  std::string path;
  std::string name;    // as the specification calls it
  std::string sha256;  // of the bytes that were checked
  int64_t bytes = 0;
};

struct AttachedExamples {
  std::vector<ExampleFile> files;
  std::vector<std::string> warnings;
  // By task; null for tasks that are not files.
  std::vector<std::shared_ptr<const tasks::examples::ExampleSet>> sets;
};

// Reads the files of all file tasks and completes these tasks: their catalogue entry, and the
// hashes and contents of their files. Fills in the lengths for training and evaluation if the
// specification leaves them out. File names are relative to the folder of `specification_path`.
// Problems with files are added to `parsed.problems`.
AttachedExamples AttachExamples(const std::string& specification_path,
                                specification::Parsed& parsed);

// Uploads the files that the server lacks, then creates the experiment. A request with an id is
// idempotent: it may be repeated when its answer is lost.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    Connection& connection, const v1::CreateExperimentRequest& request,
    const std::vector<ExampleFile>& files);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_EXAMPLE_FILES_H_
