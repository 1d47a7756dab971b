// Defines a program's commands and options, and reads its command line. Only definition.cc includes
// CLI11, because its header and its templates take seconds to compile.
#ifndef LENGTHWISE_COMMAND_LINE_DEFINITION_H_
#define LENGTHWISE_COMMAND_LINE_DEFINITION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "command_line/description.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lengthwise::command_line {

// Handle of an option or positional argument; valid as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required() const;
  // Sets the option's heading in help texts. Empty: help and completion do not show the option.
  Option Group(const std::string& heading) const;
  // Shows the variable's value as the default.
  Option ShowDefault() const;
  // Takes the value of this environment variable if the command line has none.
  Option Environment(const std::string& variable) const;
  // Rejects the option without `other`.
  Option Needs(Option other) const;

  // Without these, an option with a vector takes all arguments up to the next option. OneByOne: one
  // argument each time it is given. SeparatedBy: one argument, which is split at `delimiter`.
  Option OneByOne() const;
  Option SeparatedBy(char delimiter) const;

  // Checks of the value.
  Option OneOf(const std::vector<std::string>& choices) const;
  Option Positive() const;
  Option NonNegative() const;
  Option Range(int min, int max) const;
  Option Range(size_t min, size_t max) const;
  Option Range(int64_t min, int64_t max) const;
  // Rejects an empty value, such as that of an unset variable, which would otherwise count as none.
  Option NotEmpty() const;
  // `check` returns an error, or an empty text. `accepted` describes the accepted values in errors
  // and manual pages; empty: the option's placeholder does.
  Option Check(std::string (*check)(const std::string&), const std::string& accepted = "") const;

 private:
  CLI::Option* option_;
};

// Handle of a command, or of the program itself; valid as long as its CommandLine.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& help) const;
  // Sets the command's heading in its parent's help text.
  Command Group(const std::string& heading) const;
  // Sets the text below the options in the help text: examples.
  Command Footer(const std::string& text) const;
  // Rejects command lines without one of the commands under this one.
  Command RequireCommand() const;
  // Parse calls `chosen` if the command line has this command and none under it.
  Command OnChosen(std::function<void()> chosen) const;

  // Adds an option that is stored in `value`, which must outlive the CommandLine. `usage` has its
  // names and the value's placeholder: "-o,--out FILE". That of a positional argument is its name:
  // "trial", or "[trial]" if the command line may lack it. definition.cc lists the types T.
  template <typename T>
  Option AddOption(const std::string& usage, T& value, const std::string& help) const;
  void AddFlag(const std::string& names, bool& value, const std::string& help) const;

  // The same without a variable: Given() has what the command line says. Values must be a T.
  template <typename T = std::string>
  Option AddOption(const std::string& usage, const std::string& help) const;
  void AddFlag(const std::string& names, const std::string& help) const;
  // The options without a variable that the parsed command line has, each as "--name=value", then
  // "--" and the positional arguments without one, if there are any.
  std::vector<std::string> Given() const;

  // Returns true if the parsed command line has this option.
  bool Has(const std::string& option) const;

  CommandDescription Describe() const;

 private:
  CLI::App* app_;
};

// Owns a program's commands and options, which are added to root(), and reads its command line.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& help);
  CommandLine(CommandLine&&) noexcept;
  ~CommandLine();

  Command root() const { return Command(app_.get()); }
  // Adds --version, which prints `text()`.
  void SetVersion(std::function<std::string()> text, const std::string& help);

  // Returns the help text of the program or, after Parse, of the chosen command.
  std::string Help() const;

  // Parses the arguments after the program's name. Reads "--data-dir" as "--data_dir", except after
  // "--", where arguments belong to another program, and `help COMMAND` as `COMMAND --help`.
  //
  // OK: the text that --help or --version prints. It is empty if the line has neither; then the
  // options' variables are set and OnChosen's function was called. INVALID_ARGUMENT: the line has a
  // mistake. The message explains it in one line and says what to do instead.
  absl::StatusOr<std::string> Parse(const std::vector<std::string>& arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace lengthwise::command_line

#endif  // LENGTHWISE_COMMAND_LINE_DEFINITION_H_
