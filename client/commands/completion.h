// The hidden command that completion scripts call when a user presses Tab, and the keys of
// published tables that it completes. The Python package reads and compares the tables.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/commands/program.h"

namespace lengthwise::client {

// Called as `lengthwise __complete -- WORD...`.
inline constexpr char kCompleteCommand[] = "__complete";

// Answers in the format of command_line/completion.h. Names from the server are requested
// with a short deadline. If the server does not answer, they are left out without an error.
int PrintCompletion(Command root, Program& program, std::vector<std::string> words);

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

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
