// A specification in a file, or from standard input.
#ifndef LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
#define LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/commands/example_files.h"
#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::client {

// Finds a specification that is installed with this program, in ../share/lengthwise/experiments:
// "quickstart", "latin_square/table1". Returns its file; empty if there is none, or `name`
// is a file's.
std::string ReadySpecification(const std::string& name);

// Reads a file, a ready specification by its name, or, for "-", YAML or JSON from standard input.
// INVALID_ARGUMENT when it cannot be read or its ending is unknown.
absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& given);

struct ResolvedFile {
  specification::Grid grid;
  // The files of examples that its tasks are; with one, the grid's specification is what a server
  // is given, and not the text.
  AttachedExamples examples;
};

// Resolves it as the server would, with the files of examples that it names. INVALID_ARGUMENT with
// a first line "PATH is not valid:" and a line for each problem.
absl::StatusOr<ResolvedFile> ResolveFile(const std::string& path,
                                         const v1::SpecificationText& text);

// "2 trials in 2 packs".
std::string DescribeGrid(const specification::Grid& grid);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
