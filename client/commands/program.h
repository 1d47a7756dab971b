// What all commands share: where they write, the common options, how they end.
#ifndef LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_
#define LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/connection/private_service.h"
#include "client/display/records.h"
#include "client/display/terminal.h"
#include "client/display/terminal_text.h"
#include "rpc/settings.h"

namespace lengthwise::client {

enum ExitCode : int {
  kSuccess = 0,
  // Also: an experiment that was run or watched to its end has failed or cancelled trials.
  kFailure = 1,
  // Wrong command line, or a specification that is not valid.
  kUsage = 2,
  kUnreachable = 3,
  kInterrupted = 130,
};

class Program {
 public:
  Program(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }

  // Of standard output; tests set what they need.
  bool is_terminal = false;
  std::function<TerminalSize()> terminal_size = GetTerminalSize;

  // Common options.
  std::string server;    // as the command line says it; empty: as the settings do
  std::string data_dir;  // a private server on this directory instead of `server`
  std::string output = "table";
  std::string color = "auto";

  bool output_is_table() const { return output == "table"; }
  Palette palette() const;
  // For tables: the terminal's width, or enough for most tables where the output is no terminal.
  int width() const;

  // How the server is reached: command line, environment, configuration file.
  absl::StatusOr<rpc::Settings> Settings() const;

  // The server of the settings, or a private one on --data_dir, which lives as long as this object.
  absl::StatusOr<Connection*> Connect();
  // The one on --data_dir, after Connect(); null without it.
  PrivateService* private_service() { return private_service_.get(); }

  // Runs a command of the Python package with --output, and colours and width of this program's
  // output; `asks_server`: with the server of Connect(). What it prints goes to `printed`, or to
  // out() where that is null. Returns its exit code.
  absl::StatusOr<int> RunPython(std::vector<std::string> arguments, bool asks_server = true,
                                std::string* printed = nullptr);

  // Writes records as --output says (json or csv).
  void Write(const Records& records);

  // Runs `command` when its subcommand was given.
  using Command = std::function<absl::StatusOr<int>()>;
  void SetCommand(Command command) { command_ = std::move(command); }
  // Returns the exit code, after it told what went wrong.
  int Run();

  // Adds a subcommand with an example in its help.
  CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& description,
                       const std::string& group, const std::string& examples, Command command);
  // Adds the common options to a subcommand: how the server is reached,
  void AddServerOption(CLI::App* command);
  void AddDataDirOption(CLI::App* command);
  void AddOutputOption(CLI::App* command,
                       const std::vector<std::string>& formats = {"table", "json", "csv"});

 private:
  int Fail(const absl::Status& status);

  std::ostream& out_;
  std::ostream& err_;
  // The other options about reaching the server, by name.
  std::map<std::string, std::string> access_;
  Command command_;
  std::unique_ptr<PrivateService> private_service_;
  std::unique_ptr<Connection> connection_;
};

inline constexpr char kOfflineGroup[] = "Without a server";
inline constexpr char kServerGroup[] = "With a server";
inline constexpr char kEmbeddedGroup[] = "On this machine alone";

// Adds all commands and options to `app`; what is parsed goes to `program`, which outlives it.
void DefineCommandLine(CLI::App& app, Program& program);

// Parses the command line (without the program's name), runs what it says and returns the exit
// code.
int Main(const std::vector<std::string>& arguments, Program& program);

// Returns an id that makes a request repeatable: 24 random hexadecimal digits.
std::string RandomRequestId();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_PROGRAM_H_
