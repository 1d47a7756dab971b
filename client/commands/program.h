// State that all commands share: output streams, common options, questions and exit codes.
#ifndef LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_
#define LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection/connection.h"
#include "client/connection/private_service.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "client/display/terminal.h"
#include "command_line/definition.h"
#include "rpc/settings.h"

namespace lengthwise::client {

using command_line::Command;
using command_line::CommandLine;
using command_line::Option;

enum ExitCode : int {
  kSuccess = 0,
  // Also if an experiment that was run or watched to its end has failed or cancelled trials.
  kFailure = 1,
  // Invalid command line or specification.
  kUsage = 2,
  kUnreachable = 3,
  kInterrupted = 130,
};

class Program {
 public:
  Program(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }

  // The terminal at standard output. Tests override both.
  bool is_terminal = false;
  // True if that terminal can move its cursor and has colours: TERM is not "dumb".
  bool redraws() const;
  std::function<TerminalSize()> terminal_size = GetTerminalSize;

  // Common options.
  std::string server;    // from the command line; empty: from the settings
  std::string data_dir;  // the server on this directory instead of `server`
  std::string output = "table";
  std::string color = "auto";
  bool until_eof = false;

  // A stopped training has told what it keeps, and exits with kInterrupted.
  bool stopped_training = false;

  bool output_is_table() const { return output == "table"; }
  Palette palette() const;
  // Breaks a sentence at its spaces for a terminal, which would break it inside a word. Other
  // outputs get it in one line.
  std::string Wrapped(const std::string& sentence) const;
  // Table width in columns: the terminal's, or enough for most tables if the output is not a
  // terminal.
  int width() const;

  // Server address, credentials and directory of runs from the command line, the environment and
  // the configuration file.
  absl::StatusOr<rpc::Settings> Settings() const;

  // Connects to the server of the settings. With --data_dir, connects to the server that another
  // process runs there, usually a `lengthwise run`, or else to a private one that lives as long as
  // this object.
  absl::StatusOr<Connection*> Connect();
  // As Connect, for commands that only read. If no server is configured and none runs at the
  // default address, they read the directory of `lengthwise run`, and say so.
  absl::StatusOr<Connection*> ConnectToRead();
  // Sets `data_dir` as ConnectToRead does, for commands whose Python half opens the directory.
  void ChooseDirectoryToRead();
  // As Connect, for commands that with --data_dir start workers.
  absl::StatusOr<Connection*> ConnectToTrain();
  // The server on --data_dir; null without --data_dir.
  PrivateService* private_service() { return private_service_.get(); }
  // True if this command started that server, so that nothing else trains there.
  bool serves_alone() const;
  // UNAVAILABLE if another process's server there has ended: the command cannot wait for its
  // return.
  absl::Status CheckServer() const;

  // With --until_eof: from now on the end of standard input ends this process as SIGTERM does.
  void EndWithInput() const;

  // Appends to the words of a command what was given of the chosen command's options without a
  // variable (Command::Given).
  std::vector<std::string> Given(std::vector<std::string> command) const;

  // Runs a command of the Python package with --output and with the colours and width of this
  // program's output. If `asks_server`, it uses the server of ConnectToRead(). Its output goes to
  // `printed`, or to out() if that is null. Returns its exit code.
  absl::StatusOr<int> RunPython(std::vector<std::string> arguments, bool asks_server = true,
                                std::ostream* printed = nullptr);

  // The options that lead a recommended command to the same server, such as " --data_dir DIR":
  // --data_dir, or the address and the credentials of this command line. Empty without any.
  std::string WhereArguments() const;
  // The directory that ConnectToRead would use without any option; empty if it asks a server.
  std::string DirectoryReadByDefault() const;

  // Writes records in the format of --output (json or csv), or a table. Returns kSuccess, with
  // which most commands then end.
  int Write(const Records& records);
  int Write(const Table& table);

  // Runs the chosen command, prints its error if any, and returns the exit code.
  int Run();

  // Adds a command with examples in its help. Run() calls `action` if the command is chosen.
  using Action = std::function<absl::StatusOr<int>()>;
  Command AddCommand(Command parent, const std::string& name, const std::string& description,
                     const std::string& group, const std::string& examples, Action action);
  // The same for a command that is `run` with its options, which live as long as the command line.
  template <typename Options>
  std::pair<Command, std::shared_ptr<Options>> AddCommand(
      Command parent, const std::string& name, const std::string& description,
      const std::string& group, const std::string& examples,
      absl::StatusOr<int> (*run)(Program&, const Options&)) {
    auto options = std::make_shared<Options>();
    return {AddCommand(parent, name, description, group, examples,
                       [this, options, run] { return run(*this, *options); }),
            options};
  }
  // Add common options: server address and credentials; these and --data_dir; --output.
  void AddServerOption(Command command);
  void AddServerOrDataDirOptions(Command command);
  // Adds --select, the rule by which the command chooses between trials.
  static void AddSelectOption(Command command, std::string& select);
  // For commands that leave it to Python.
  static void AddSelectOption(Command command);
  void AddOutputOption(Command command,
                       const std::vector<std::string>& formats = {"table", "json", "csv"});
  // Adds --until_eof.
  void AddUntilEofOption(Command command);
  // Adds --yes, for commands that call Confirm only without it.
  static void AddYesOption(Command command, bool& yes);

  // Asks for confirmation before something irreversible or much work: on standard error, with the
  // answer from standard input. `deed` completes "This ...": "deletes sort-1: 72 trials, 17 MiB".
  // `command` is the command that skips the question: "lengthwise delete sort-1 --yes".
  //
  // OK: the answer is yes. CANCELLED: any other answer, or Ctrl-C. FAILED_PRECONDITION: standard
  // input is not a terminal; the message names `command`.
  absl::Status Confirm(const std::string& deed, const std::string& command);

 private:
  absl::StatusOr<Connection*> ConnectToDirectory(bool trains);
  int Fail(const absl::Status& status);

  std::ostream& out_;
  std::ostream& err_;
  // The options for credentials, by name.
  std::map<std::string, std::string> access_;
  Action action_;
  std::optional<Command> chosen_;
  std::unique_ptr<PrivateService> private_service_;
  std::unique_ptr<Connection> connection_;
};

// An --output for programs that start a command: JSON, and a line with the code of its error.
inline constexpr char kEvents[] = "events";

inline constexpr char kOfflineGroup[] = "Without a server";
inline constexpr char kServerGroup[] = "With a server";
// Of commands under another one, such as `auth whoami`. Help texts hide commands without a group.
inline constexpr char kNestedGroup[] = "Commands";
inline constexpr char kEmbeddedGroup[] = "On this machine alone";

// Returns the command line with all commands. Parsed values go to `program`, which must outlive it.
CommandLine DefineCommandLine(Program& program);

// Parses the command line (without the program's name), runs the command and returns the exit code.
int Main(const std::vector<std::string>& arguments, Program& program);

// Returns " --NAME VALUE" for a recommended command, quoted for a shell; empty without a value.
std::string Argument(absl::string_view name, const std::string& value);

// Returns an id that makes a request repeatable: 24 random hexadecimal digits.
std::string RandomRequestId();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_
