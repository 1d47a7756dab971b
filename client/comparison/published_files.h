// The files of experiments/published, which the build makes a part of the program.
#ifndef LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_FILES_H_
#define LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::client {

struct PublishedFile {
  // Without its ending: "randomized_pe_table_1".
  absl::string_view name;
  absl::string_view json;
};

// Sorted by name. Live forever.
absl::Span<const PublishedFile> PublishedFiles();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_FILES_H_
