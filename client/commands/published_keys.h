// Keys of the published tables, for completion. The Python package reads and compares the tables.
#ifndef LENGTHWISE_CLIENT_COMMANDS_PUBLISHED_KEYS_H_
#define LENGTHWISE_CLIENT_COMMANDS_PUBLISHED_KEYS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::client {

struct PublishedKey {
  std::string key;  // "randomized_pe/table_1"
  std::string title;
};

// Sorted by key.
std::vector<PublishedKey> PublishedKeys();

// A file of experiments/published, which the build embeds in the program.
struct PublishedFile {
  // Without its ending: "randomized_pe_table_1".
  absl::string_view name;
  absl::string_view json;
};

// Sorted by name. Live forever.
absl::Span<const PublishedFile> PublishedFiles();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_PUBLISHED_KEYS_H_
