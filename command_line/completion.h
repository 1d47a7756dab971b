// Shell completion: computes the candidates for the last word of a command line.
#ifndef LENGTHWISE_COMMAND_LINE_COMPLETION_H_
#define LENGTHWISE_COMMAND_LINE_COMPLETION_H_

#include <map>
#include <string>
#include <vector>

#include "command_line/description.h"

namespace lengthwise::command_line {

// The kind of value that an option or argument takes, if its definition does not list the choices.
enum class ValueKind {
  // Not declared. A test fails for an option of this kind.
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

// Returns the kind of value that `option` of the command `full_name` takes.
ValueKind KindOf(const std::string& full_name, const OptionDescription& option);

struct Candidate {
  std::string text;
  std::string help = {};
};

struct Completion {
  // Commands, options or an option's choices that begin with the last word.
  std::vector<Candidate> candidates;
  // For a value without choices: its kind, and the part that has been typed.
  ValueKind kind = ValueKind::kFree;
  std::string prefix;
  // Text to put before each candidate: "--figure=".
  std::string lead;
  // Values of the options given earlier on the line, by the options' first names.
  std::map<std::string, std::string> given;
};

// Completes the last of `words`, which may be empty. `words` excludes the program's name.
Completion Complete(const CommandDescription& program, const std::vector<std::string>& words);

// Completion scripts that shells load. They are short and ask the program itself, so that they
// always know its commands and the server's names. The first line of the answer to `lengthwise
// __complete -- WORD...` says how to complete:
//   :words        one of the words below, each on a line with a tab and its description
//   :words/       the same, without a space after the word, because the value continues
//   :files        a file name
//   :directories  a directory name
extern const char kBashCompletion[];
extern const char kZshCompletion[];
extern const char kFishCompletion[];

}  // namespace lengthwise::command_line

#endif  // LENGTHWISE_COMMAND_LINE_COMPLETION_H_
