// The files of examples that a specification names: found beside it, read, checked.
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
  // By task; null for tasks that are no files.
  std::vector<std::shared_ptr<const tasks::examples::ExampleSet>> sets;
};

// Reads the files of all tasks that are files and completes these tasks: which entry they are of,
// hashes and contents of their files, and, where the specification does not say, the lengths to
// train on and to evaluate. `specification_path` is where the specification stands; its files'
// names count from there. What is wrong with files joins `parsed.problems`.
AttachedExamples AttachExamples(const std::string& specification_path,
                                specification::Parsed& parsed);

// Creates the experiment; files that the server does not have are uploaded first. The request may
// be repeated when its answer is lost where it has an id.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    Connection& connection, const v1::CreateExperimentRequest& request,
    const std::vector<ExampleFile>& files);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_EXAMPLE_FILES_H_
