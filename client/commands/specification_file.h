// Reads and resolves a specification from a file or from standard input, with the example files
// that it names, and submits it.
#ifndef LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
#define LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "platform/descriptors.h"
#include "proto/specification.pb.h"
#include "specification/parse.h"
#include "specification/resolve.h"
#include "tasks/examples/example_set.h"

namespace lengthwise::client {

// Returns the file of a ready specification, such as "quickstart" or "latin_square/table1": one
// that is installed with this program in ../share/lengthwise/experiments, or one of experiments/ of
// the checkout that the current directory is in. Empty if there is none or if `name` is a file.
std::string ReadySpecification(const std::string& name);

// Reads a file or, for "-", YAML or JSON from standard input. INVALID_ARGUMENT if it cannot be read
// or its extension is unknown.
absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& path);

// A file that trials of a specification need: examples, or the archive of a network.
struct ExampleFile {
  std::string path;
  std::string name;    // as the specification calls it
  std::string sha256;  // of the bytes that were checked
  int64_t bytes = 0;
  // Keeps the file at `path`, if it is not the user's.
  std::shared_ptr<platform::Descriptor> made = nullptr;
};

struct AttachedExamples {
  std::vector<ExampleFile> files;
  std::vector<std::string> warnings;
  // By task; null for tasks that are not files.
  std::vector<std::shared_ptr<const tasks::examples::ExampleSet>> sets;
};

// Reads the files of all file tasks and of networks `python`, and completes them: the tasks'
// catalogue entry, and the hashes and contents of the files. Fills in the lengths for training and
// evaluation if the specification leaves them out. File names are relative to the folder of
// `specification_path`. Problems with files are added to `parsed.problems`.
AttachedExamples AttachExamples(const std::string& specification_path,
                                specification::Parsed& parsed);

struct ResolvedFile {
  std::string path;  // of the file that was read; "-" for standard input
  v1::SpecificationText text;
  specification::Grid grid;
  // Example files of its tasks.
  AttachedExamples examples;
};

// Reads a file, a ready specification by its name, or "-" (ReadSpecification), and resolves it as
// the server would, with the example files that it names. INVALID_ARGUMENT has a first line "GIVEN
// is not valid:" and a line for each problem.
absl::StatusOr<ResolvedFile> ResolveFile(const std::string& given);

// Sets the request's specification: the text, or the message if it names files.
void SetSpecification(const ResolvedFile& read, v1::CreateExperimentRequest& request);

// "2 trials in 2 packs".
std::string DescribeGrid(const specification::Grid& grid);

// Uploads the files that the server lacks, then creates the experiment. A request with an id is
// idempotent: it may be repeated when its answer is lost.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    Connection& connection, const v1::CreateExperimentRequest& request,
    const std::vector<ExampleFile>& files);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
