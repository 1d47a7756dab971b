#include "client/commands/program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "catalogue/suggestion.h"
#include "client/commands/commands.h"
#include "client/commands/python_program.h"
#include "client/connection/private_service.h"
#include "client/diagnosis/diagnosis.h"
#include "client/display/terminal.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "platform/version.h"

namespace lengthwise::client {
namespace {

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
  return Palette(redraws() && (no_color == nullptr || *no_color == '\0'));
}

bool Program::redraws() const {
  const char* set = std::getenv("TERM");
  const absl::string_view terminal = set == nullptr ? "unset" : set;
  return is_terminal && terminal != "dumb" && !terminal.empty();
}

std::string Program::Wrapped(const std::string& sentence) const {
  return is_terminal ? Wrap(sentence, width(), 0) : sentence;
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
  ASSIGN_OR_RETURN(private_service_,
                   PrivateService::Open({.data_dir = data_dir, .release_leases = trains}));
  connection_ = std::make_unique<Connection>(private_service_->address());
  return connection_.get();
}

absl::StatusOr<Connection*> Program::ConnectToTrain() {
  if (connection_ != nullptr || data_dir.empty()) return Connect();
  return ConnectToDirectory(/*trains=*/true);
}

bool Program::serves_alone() const {
  return private_service_ != nullptr && !private_service_->joined().has_value();
}

absl::Status Program::CheckServer() const {
  if (private_service_ == nullptr || serves_alone()) return absl::OkStatus();
  return private_service_->joined()->Check();
}

void Program::EndWithInput() const {
  if (!until_eof) return;
  std::thread([] {
    std::array<char, 256> ignored;
    while (read(STDIN_FILENO, ignored.data(), ignored.size()) > 0) {
    }
    kill(getpid(), SIGTERM);
  }).detach();
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

absl::StatusOr<Connection*> Program::ConnectToRead() {
  ChooseDirectoryToRead();
  return Connect();
}

void Program::ChooseDirectoryToRead() {
  if (connection_ != nullptr || !data_dir.empty()) return;
  data_dir = DirectoryReadByDefault();
  if (data_dir.empty()) return;
  err_ << Wrapped("note: no server is configured, so this reads the runs in " + data_dir) << "\n";
}

std::string Program::DirectoryReadByDefault() const {
  const auto settings = Settings();
  if (!settings.ok() || (*settings)["server"].origin != "default") return "";
  const std::string& directory = settings->Value("runs_dir");
  if (!HoldsExperiments(directory)) return "";
  const Connection connection(settings->Value("server"));
  const auto asked = connection.Call<v1::Server>(v1::GetServerRequest());
  return NothingListens(asked.status()) ? directory : "";
}

absl::StatusOr<rpc::Settings> Program::Settings() const {
  std::map<std::string, std::string> flags = access_;
  flags["server"] = server;
  ASSIGN_OR_RETURN(rpc::Settings settings, rpc::ResolveSettings(flags, getenv));
  std::string& runs = settings.all["runs_dir"].value;
  std::error_code error;
  runs = std::filesystem::absolute(runs.empty() ? DefaultDataDirectory() : runs, error).string();
  return settings;
}

std::vector<std::string> Program::Given(std::vector<std::string> command) const {
  const std::vector<std::string> given = chosen_->Given();
  command.insert(command.end(), given.begin(), given.end());
  return command;
}

absl::StatusOr<int> Program::RunPython(std::vector<std::string> arguments, bool asks_server,
                                       std::ostream* printed) {
  rpc::ChannelOptions channel;
  if (asks_server) {
    ASSIGN_OR_RETURN(const auto connection, ConnectToRead());
    channel = connection->channel_options();
  }
  // Options must come before "--".
  if (is_terminal) {
    arguments.insert(std::find(arguments.begin(), arguments.end(), "--"), "--screen");
  }
  const auto names = std::find(arguments.begin(), arguments.end(), "--");
  arguments.insert(names, {"--output", output, "--columns", absl::StrCat(width()), "--color",
                           palette().enabled() ? "always" : "never"});
  ASSIGN_OR_RETURN(const int code, client::RunPython(arguments, channel,
                                                     printed != nullptr ? *printed : out_, err_));
  // Python knows only the server's address.
  if (code == kUnreachable) {
    RETURN_IF_ERROR(CheckServer());
  }
  return code;
}

std::string Program::WhereArguments() const {
  if (!data_dir.empty()) return Argument("data_dir", data_dir);
  std::string text = Argument("server", server);
  for (const auto& [name, value] : access_) text += Argument(name, value);
  return text;
}

int Program::Write(const Records& records) {
  WriteRecords(records, output == "csv" ? RecordFormat::kCsv : RecordFormat::kJson, out_);
  return kSuccess;
}

int Program::Write(const Table& table) {
  out_ << table.Render(width(), palette());
  return kSuccess;
}

int Program::Run() {
  const absl::StatusOr<int> code = action_();
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
    const auto settings = Settings();
    const bool is_default = settings.ok() && (*settings)["server"].origin == "default";
    const std::vector<command_line::OptionDescription> options = chosen_->Describe().options;
    const bool takes_directory = std::any_of(options.begin(), options.end(), [](const auto& one) {
      return one.names[0] == "--data_dir";
    });
    err_ << "; start `lengthwise_server`, pass --server HOST:PORT, or "
         << (is_default && takes_directory
                 ? "name the directory of a `lengthwise run` with --data_dir DIR"
                 : "train here with `lengthwise run SPEC`");
  }
  err_ << "\n";
  if (output == kEvents) {
    WriteJsonLine({"error"}, {absl::StatusCodeToString(status.code())}, out_);
  }
  if (IsUnreachable(status)) return kUnreachable;
  return absl::IsInvalidArgument(status) ? kUsage : kFailure;
}

Command Program::AddCommand(Command parent, const std::string& name, const std::string& description,
                            const std::string& group, const std::string& examples, Action action) {
  const Command added =
      parent.AddCommand(name, description)
          .Group(group)
          .Footer(absl::StrCat("Examples:\n  ", absl::StrReplaceAll(examples, {{"\n", "\n  "}})));
  added.OnChosen([this, added, action = std::move(action)] {
    chosen_ = added;
    action_ = action;
  });
  added.AddOption("--color WHEN", color, "Colours: auto, always or never")
      .OneOf({"auto", "always", "never"});
  return added;
}

void Program::AddServerOption(Command command) {
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    if (!kind.is_access) continue;
    const bool is_server = absl::string_view(kind.name) == "server";
    std::string& value = is_server ? server : access_[kind.name];
    const std::string fallback = *kind.fallback == '\0' ? "" : absl::StrCat(" or ", kind.fallback);
    const Option option =
        command.AddOption(absl::StrCat("--", kind.name, " ", kind.type), value,
                          absl::StrCat(kind.help, "; default $", kind.variable, fallback));
    if (!is_server) option.Group("Credentials (see `lengthwise config`)");
  }
}

void Program::AddServerOrDataDirOptions(Command command) {
  AddServerOption(command);
  command
      .AddOption(
          "--data_dir DIR", data_dir,
          "Directory of `lengthwise run`; asks the server of the run that uses it, or a "
          "private one, instead of --server. Commands that only read use "
          "$LENGTHWISE_RUNS_DIR or ~/.local/share/lengthwise/runs if no server is configured")
      .NotEmpty();
}

namespace {

constexpr char kSelect[] = "--select LENGTHS";
constexpr char kSelectHelp[] =
    "Scores that choose learning rates and best seeds: seen (of seen lengths, or of validation "
    "sequences) or unseen; default: evaluation.select of the specification, with --compare the "
    "paper's rule";

}  // namespace

void Program::AddSelectOption(Command command, std::string& select) {
  command.AddOption(kSelect, select, kSelectHelp).OneOf({"seen", "unseen"});
}

void Program::AddSelectOption(Command command) {
  command.AddOption(kSelect, kSelectHelp).OneOf({"seen", "unseen"});
}

void Program::AddOutputOption(Command command, const std::vector<std::string>& formats) {
  command.AddOption("--output FORMAT", output, catalogue::Alternatives(formats)).OneOf(formats);
}

void Program::AddUntilEofOption(Command command) {
  command.AddFlag("--until_eof", until_eof,
                  "Ends, as after Ctrl-C, when standard input ends; for programs that start this "
                  "one. A specification from standard input then ends with a NUL byte");
}

void Program::AddYesOption(Command command, bool& yes) {
  command.AddFlag("--yes", yes, "Skips the confirmation, for scripts");
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

CommandLine DefineCommandLine(Program& program) {
  CommandLine line("lengthwise",
                   "Trains and evaluates models on one question: does what was learned on short "
                   "inputs hold on long ones?");
  line.SetVersion(
      [] {
        return absl::StrCat(
            platform::VersionText("lengthwise"), "\n", platform::BuildText(), "\n",
            DescribeWorker(FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY")));
      },
      "Print the versions of this program, of the worker of `lengthwise run` and of its LibTorch, "
      "and whether CUDA can be used");
  const Command root = line.root().RequireCommand().Footer(
      "`lengthwise COMMAND --help` explains a command. The beginning:\n"
      "  lengthwise run experiments/quickstart.yaml");
  root.AddOption("--server", program.server, "").Group("");
  root.AddOption("--output", program.output, "").OneOf({"table", "json", "csv"}).Group("");
  root.AddOption("--color", program.color, "").OneOf({"auto", "always", "never"}).Group("");
  for (const auto add : kCommands) add(root, program);
  return line;
}

namespace {

int Execute(const std::vector<std::string>& arguments, Program& program) {
  CommandLine line = DefineCommandLine(program);
  if (arguments.empty()) {
    program.err() << line.Help();
    return kUsage;
  }
  if (arguments[0] == kCompleteCommand) {
    return PrintCompletion(line.root(), program, {arguments.begin() + 1, arguments.end()});
  }
  const absl::StatusOr<std::string> text = line.Parse(arguments);
  if (!text.ok()) {
    program.err() << "lengthwise: " << std::string(text.status().message()) << "\n";
    return kUsage;
  }
  if (text->empty()) return program.Run();
  program.out() << *text;
  return kSuccess;
}

// Returns a failure if not all of the output could be written, as on a full disk. Says nothing if
// its reader has ended, as `head` does: the exit code is then that of a program killed by SIGPIPE.
int FinishOutput(Program& program, int code) {
  if (program.out().flush().good()) return code;
  // errno is only valid right after a failed write, so provoke another one with a line end.
  program.out().clear();
  errno = 0;
  program.out() << "\n" << std::flush;
  const int why = errno == 0 ? EIO : errno;
  if (why == EPIPE) return program.stopped_training ? code : 128 + SIGPIPE;
  const absl::Status status = platform::FileError(why, "write", "all of the output");
  program.err() << "lengthwise: " << std::string(status.message()) << "\n";
  return code == kSuccess ? kFailure : code;
}

}  // namespace

int Main(const std::vector<std::string>& arguments, Program& program) {
  return FinishOutput(program, Execute(arguments, program));
}

std::string Argument(absl::string_view name, const std::string& value) {
  return value.empty() ? "" : absl::StrCat(" --", name, " ", platform::ShellWord(value));
}

std::string RandomRequestId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x", device(), device(), device());
}

}  // namespace lengthwise::client
