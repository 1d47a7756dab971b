// What shells load to complete this program's command lines: short scripts that ask the program
// itself, so that they know its newest commands and the server's names.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_SCRIPTS_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_SCRIPTS_H_

namespace lengthwise::client {

// The program answers `lengthwise __complete -- WORD...` with a line that says how to complete:
//   :words      with the lines that follow, each a word, a tab and what it is
//   :words/     the same, and no space after the word: more comes
//   :files      with the files that are there
//   :directories
extern const char kBashCompletion[];
extern const char kZshCompletion[];
extern const char kFishCompletion[];

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_SCRIPTS_H_
