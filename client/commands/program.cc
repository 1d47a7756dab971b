#include "client/commands/program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/command_line/description.h"
#include "client/commands/commands.h"
#include "client/commands/completion.h"
#include "client/commands/python_program.h"
#include "client/connection/private_service.h"
#include "client/diagnosis/diagnosis.h"
#include "client/display/interrupt.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "platform/version.h"

namespace lengthwise::client {
namespace {

// Returns "--data_dir=x" for "--data-dir=x".
std::string WithUnderscores(const std::string& argument) {
  if (!absl::StartsWith(argument, "--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  return absl::StrCat("--", absl::StrReplaceAll(argument.substr(2, end - 2), {{"-", "_"}}),
                      argument.substr(end));
}

// Poll interval for Ctrl-C, because a guard of the caller may keep it from ending the process.
constexpr int kTickMilliseconds = 100;

// Returns a line without its line end; empty at the end of the input and after Ctrl-C.
std::string ReadLine(const InterruptGuard& interrupts) {
  std::string line;
  while (interrupts.count() == 0) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kTickMilliseconds) <= 0) continue;
    char c = '\0';
    if (read(STDIN_FILENO, &c, 1) != 1) return "";
    if (c == '\n') return line;
    line.push_back(c);
  }
  return "";
}

}  // namespace

Palette Program::palette() const {
  if (color == "always") return Palette(true);
  if (color == "never") return Palette(false);
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string(terminal) == "dumb";
  return Palette(is_terminal && !dumb && (no_color == nullptr || *no_color == '\0'));
}

int Program::width() const { return is_terminal ? terminal_size().width : 110; }

absl::StatusOr<Connection*> Program::ConnectToDirectory(bool trains) {
  // A private server would create a database and report that it is empty.
  std::error_code error;
  if (!std::filesystem::exists(data_dir, error)) {
    return absl::NotFoundError(
        absl::StrCat("there is no directory ", data_dir,
                     "; name the --data_dir of a `lengthwise run`, or leave it out to ask a "
                     "server"));
  }
  if (!HoldsExperiments(data_dir)) {
    return absl::NotFoundError(absl::StrCat(data_dir, " holds no experiments (no ",
                                            platform::kDatabaseFile,
                                            "); name the --data_dir of a `lengthwise run`"));
  }
  for (int tries = 1;; ++tries) {
    if (!trains) {
      ASSIGN_OR_RETURN(running_server_, FindRunningServer(data_dir));
    }
    if (running_server_.has_value()) {
      if (running_server_->needs_credentials) return running_server_->InUse();
      connection_ = std::make_unique<Connection>(running_server_->address);
      return connection_.get();
    }
    auto service = PrivateService::Start({.data_dir = data_dir, .release_leases = trains});
    if (service.ok()) {
      private_service_ = *std::move(service);
      connection_ = std::make_unique<Connection>(private_service_->address());
      return connection_.get();
    }
    // Another command may have started a server in between. It is found the next time.
    if (trains || tries == 3) return service.status();
  }
}

absl::StatusOr<Connection*> Program::ConnectToTrain() {
  if (connection_ != nullptr || data_dir.empty()) return Connect();
  return ConnectToDirectory(/*trains=*/true);
}

absl::Status Program::CheckServer() const {
  return running_server_.has_value() ? running_server_->Check() : absl::OkStatus();
}

absl::StatusOr<Connection*> Program::Connect() {
  if (connection_ != nullptr) return connection_.get();
  if (!data_dir.empty()) return ConnectToDirectory(/*trains=*/false);
  ASSIGN_OR_RETURN(const rpc::Settings settings, Settings());
  rpc::ChannelOptions channel = rpc::ToChannelOptions(settings);
  channel.warn = [this](const std::string& text) {
    err_ << "warning: " << platform::PrintableText(text) << "\n";
  };
  ASSIGN_OR_RETURN(connection_, Connection::Open(channel, Connection::Options()));
  return connection_.get();
}

absl::StatusOr<rpc::Settings> Program::Settings() const {
  std::map<std::string, std::string> flags = access_;
  flags["server"] = server;
  return rpc::ResolveSettings(flags,
                              [](const char* name) -> const char* { return std::getenv(name); });
}

absl::StatusOr<int> Program::RunPython(std::vector<std::string> arguments, bool asks_server,
                                       std::string* printed) {
  rpc::ChannelOptions channel;
  if (asks_server) {
    ASSIGN_OR_RETURN(const auto connection, Connect());
    channel = connection->channel_options();
  }
  // Options must come before "--".
  const auto names = std::find(arguments.begin(), arguments.end(), "--");
  arguments.insert(names, {"--output", output, "--width", absl::StrCat(width()), "--color",
                           palette().enabled() ? "always" : "never"});
  ASSIGN_OR_RETURN(const int code,
                   client::RunPython(
                       arguments, channel,
                       [this, printed](absl::string_view text) {
                         if (printed != nullptr) {
                           absl::StrAppend(printed, text);
                         } else {
                           out_ << text << std::flush;
                         }
                       },
                       [this](absl::string_view text) { err_ << text << std::flush; }));
  // Python knows only the server's address.
  if (code == kUnreachable) {
    RETURN_IF_ERROR(CheckServer());
  }
  return code;
}

std::string Program::WhereArguments() const {
  std::string text;
  const auto add = [&](absl::string_view option, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, " --", option, " ", platform::ShellWord(value));
  };
  add("data_dir", data_dir);
  if (!data_dir.empty()) return text;
  add("server", server);
  for (const auto& [name, value] : access_) add(name, value);
  return text;
}

void Program::Write(const Records& records) {
  if (output == "csv") {
    WriteCsv(records, out_);
  } else {
    WriteJson(records, out_);
  }
}

int Program::Run() {
  const absl::StatusOr<int> code = command_();
  out_.flush();
  return code.ok() ? *code : Fail(code.status());
}

int Program::Fail(const absl::Status& status) {
  const absl::Status server = CheckServer();
  if (!server.ok() && (IsUnreachable(status) || absl::IsUnavailable(status))) {
    err_ << "lengthwise: " << server.message() << "\n";
    return kUnreachable;
  }
  // The message may quote a file that somebody else wrote.
  err_ << "lengthwise: " << platform::PrintableText(status.message());
  if (NothingListens(status)) {
    err_ << "; start `lengthwise_server`, pass --server HOST:PORT, or train here with "
            "`lengthwise run SPEC`";
  }
  err_ << "\n";
  if (IsUnreachable(status)) return kUnreachable;
  return absl::IsInvalidArgument(status) ? kUsage : kFailure;
}

CLI::App* Program::AddCommand(CLI::App& app, const std::string& name,
                              const std::string& description, const std::string& group,
                              const std::string& examples, Command command) {
  CLI::App* added = app.add_subcommand(name, description);
  added->group(group);
  added->footer(absl::StrCat("Examples:\n  ", absl::StrReplaceAll(examples, {{"\n", "\n  "}})));
  added->callback([this, command = std::move(command)] { SetCommand(command); });
  added->add_option("--color", color, "Colours: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  return added;
}

void Program::AddServerOption(CLI::App* command) {
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    const bool is_server = absl::string_view(kind.name) == "server";
    std::string& value = is_server ? server : access_[kind.name];
    const std::string fallback = *kind.fallback == '\0' ? "" : absl::StrCat(" or ", kind.fallback);
    CLI::Option* option =
        command
            ->add_option(absl::StrCat("--", kind.name), value,
                         absl::StrCat(kind.help, "; default $", kind.variable, fallback))
            ->type_name(kind.type);
    if (!is_server) option->group("Credentials (see `lengthwise config`)");
  }
}

void Program::AddDataDirOption(CLI::App* command) {
  command
      ->add_option("--data_dir", data_dir,
                   "Directory of `lengthwise run`; asks the server of the run that uses it, or a "
                   "private one, instead of --server")
      ->check(NotEmpty())
      ->type_name("DIR");
}

CLI::Validator Program::NotEmpty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? "empty" : std::string(); }, "");
}

void Program::AddOutputOption(CLI::App* command, const std::vector<std::string>& formats) {
  const std::string all_but_last = absl::StrJoin(formats.begin(), std::prev(formats.end()), ", ");
  command->add_option("--output", output, absl::StrCat(all_but_last, " or ", formats.back()))
      ->check(CLI::IsMember(formats))
      ->type_name("FORMAT");
}

void Program::AddYesOption(CLI::App* command, bool& yes) {
  command->add_flag("--yes", yes, "Skips the confirmation, for scripts");
}

absl::Status Program::Confirm(const std::string& deed, const std::string& command) {
  if (isatty(STDIN_FILENO) != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this ", deed, "; cannot ask for confirmation without a terminal: run `", command, "`"));
  }
  out_.flush();
  const InterruptGuard interrupts;  // before the question, which Ctrl-C may answer at once
  err_ << "This " << deed << ". Continue? [y/N] " << std::flush;
  const std::string answer =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(ReadLine(interrupts)));
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was done");
}

void DefineCommandLine(CLI::App& app, Program& program) {
  app.set_version_flag(
      "--version",
      [] {
        return absl::StrCat(
            platform::VersionText("lengthwise"), "\n", platform::BuildText(), "\n",
            DescribeWorker(FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")));
      },
      "Print the versions of this program, of the worker of `lengthwise run` and of its LibTorch, "
      "and whether CUDA can be used");
  app.get_formatter()->column_width(32);
  app.require_subcommand(1);
  app.add_option("--server", program.server)->group("");
  app.add_option("--output", program.output)
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->group("");
  app.add_option("--color", program.color)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group("");
  app.footer(
      "`lengthwise COMMAND --help` explains a command. The beginning:\n"
      "  lengthwise run experiments/quickstart.yaml");
  for (const auto add : kCommands) add(app, program);
}

namespace {

int Execute(const std::vector<std::string>& arguments, Program& program) {
  CLI::App app(
      "Trains and evaluates models on one question: does what was learned on short inputs "
      "hold on long ones?",
      "lengthwise");
  DefineCommandLine(app, program);

  if (arguments.empty()) {
    program.err() << app.help();
    return kUsage;
  }
  if (arguments[0] == kCompleteCommand) {
    return PrintCompletion(app, program, {arguments.begin() + 1, arguments.end()});
  }
  // CLI11 reads the arguments from the back.
  std::vector<std::string> reversed;
  // Arguments after "--" belong to another program.
  const auto others = std::find(arguments.begin(), arguments.end(), "--");
  for (auto argument = arguments.end(); argument != arguments.begin();) {
    const bool ours = --argument < others;
    reversed.push_back(ours ? WithUnderscores(*argument) : *argument);
  }
  // `help COMMAND` stands for `COMMAND --help`.
  if (reversed.back() == "help") {
    reversed.pop_back();
    reversed.insert(reversed.begin(), "--help");
  }
  try {
    app.parse(reversed);
  } catch (const CLI::Success& request) {  // --help, --version
    app.exit(request, program.out(), program.err());
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    program.err() << "lengthwise: " << ExplainMistake(app, error) << "\n";
    return kUsage;
  }
  return program.Run();
}

// Returns a failure if not all of the output could be written, as on a full disk.
int FinishOutput(Program& program, int code) {
  if (program.out().flush().good()) return code;
  // errno is only valid right after a failed write, so provoke another one with a line end.
  program.out().clear();
  errno = 0;
  program.out() << "\n" << std::flush;
  const int why = errno == 0 ? EIO : errno;
  const absl::Status status = platform::FileError(why, "write", "all of the output");
  program.err() << "lengthwise: " << std::string(status.message()) << "\n";
  return code == kSuccess ? kFailure : code;
}

}  // namespace

int Main(const std::vector<std::string>& arguments, Program& program) {
  return FinishOutput(program, Execute(arguments, program));
}

std::string RandomRequestId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x", device(), device(), device());
}

}  // namespace lengthwise::client
