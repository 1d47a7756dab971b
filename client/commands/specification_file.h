// A specification in a file, or from standard input.
#ifndef LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
#define LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::client {

// Reads it; "-" is YAML or JSON from standard input. INVALID_ARGUMENT when it cannot be read or its
// ending is unknown.
absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& path);

// Resolves it as the server would. INVALID_ARGUMENT with a first line "PATH is not valid:" and a
// line for each problem.
absl::StatusOr<specification::Grid> ResolveFile(const std::string& path,
                                                const v1::SpecificationText& text);

// "2 trials in 2 packs".
std::string DescribeGrid(const specification::Grid& grid);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_SPECIFICATION_FILE_H_
