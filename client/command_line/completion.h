// What may come next on a command line.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_H_

#include <map>
#include <string>
#include <vector>

#include "client/command_line/description.h"

namespace lengthwise::client {

// What a value is, where there is no list of it in the definition.
enum class ValueKind {
  // Nobody knows: a test fails for an option of this kind.
  kUnknown,
  // A number, a text, an address.
  kFree,
  kFile,
  kDirectory,
  kTask,
  kEncoding,
  kNetwork,
  kOptimizer,
  kSchedule,
  kProtocol,
  kCommand,
  kFigure,
  kPublishedTable,
  // A name that the server knows.
  kExperiment,
  // EXPERIMENT/TRIAL.
  kTrial,
  kExperimentOrTrial,
};

// Of an option of the command `full_name`.
ValueKind KindOf(const std::string& full_name, const OptionDescription& option);

struct Candidate {
  std::string text;
  std::string help = {};
};

struct Completion {
  // Commands, options or an option's choices that begin with what is there.
  std::vector<Candidate> candidates;
  // Where it is a value without choices: what, and what of it is there.
  ValueKind kind = ValueKind::kFree;
  std::string prefix;
  // To put before it: "--figure=".
  std::string lead;
  // The values of options that come before, by their first names.
  std::map<std::string, std::string> given;
};

// `words` come after the program's name; the last one, perhaps empty, is to be completed.
Completion Complete(const CommandDescription& program, const std::vector<std::string>& words);

// What shells load to complete this program's command lines: short scripts that ask the program
// itself, so that they know its newest commands and the server's names.
// The program answers `lengthwise __complete -- WORD...` with a line that says how to complete:
//   :words      with the lines that follow, each a word, a tab and what it is
//   :words/     the same, and no space after the word: more comes
//   :files      with the files that are there
//   :directories
extern const char kBashCompletion[];
extern const char kZshCompletion[];
extern const char kFishCompletion[];

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_COMPLETION_H_
