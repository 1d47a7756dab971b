// Reads and resolves a specification from a file or from standard input.
#ifndef LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
#define LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/commands/example_files.h"
#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::client {

// Returns the file of a specification that is installed with this program in
// ../share/lengthwise/experiments, such as "quickstart" or "latin_square/table1". Empty if there is
// none or if `name` is a file.
std::string ReadySpecification(const std::string& name);

// Reads a file, a ready specification by its name, or, for "-", YAML or JSON from standard input.
// INVALID_ARGUMENT if it cannot be read or its extension is unknown.
absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& given);

struct ResolvedFile {
  specification::Grid grid;
  // Example files of its tasks. If there are any, the server is given the grid's specification
  // instead of the text.
  AttachedExamples examples;
};

// Resolves it as the server would, with the example files that it names. INVALID_ARGUMENT has a
// first line "PATH is not valid:" and a line for each problem.
absl::StatusOr<ResolvedFile> ResolveFile(const std::string& path,
                                         const v1::SpecificationText& text);

// "2 trials in 2 packs".
std::string DescribeGrid(const specification::Grid& grid);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
