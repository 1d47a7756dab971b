#include "client/commands/python_program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/commands/program.h"
#include "client/display/terminal.h"
#include "platform/child_process.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"

namespace lengthwise::client {
namespace {

// Maximum delay of a forwarded signal.
constexpr int kPollMilliseconds = 100;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool HasPackage(const std::string& python) {
  // -I: as without the user's settings and the modules of the current directory.
  const auto asked = platform::ChildProcess::Run(
      {python, "-I", "-c",
       "import importlib.util, sys; sys.exit(importlib.util.find_spec('lengthwise') is None)"},
      absl::Seconds(10));
  return asked.ok() && asked->exit.has_value() && asked->exit->ok();
}

// Returns empty values for the user's settings of Python and Matplotlib, which both take for unset.
// They are meant for other programs and break this one: $PYTHONPATH has the packages of another
// Python, and $PYTHONWARNINGS may turn a library's warning into an error. $MPLCONFIGDIR stays,
// because it only says where a cache is.
std::vector<std::pair<std::string, std::string>> WithoutPythonSettings() {
  // RunPython sets the last two; the others say where bytecode is written.
  std::vector<absl::string_view> kept = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
                                         "PYTHONSAFEPATH", "PYTHONUTF8"};
  // A Python of the user's choice may need them to find its packages. The environments that we
  // install are complete.
  if (!Variable("LENGTHWISE_PYTHON").empty()) {
    for (const char* name : {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"}) {
      kept.emplace_back(name);
    }
  }
  std::vector<std::pair<std::string, std::string>> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const absl::string_view name = text.substr(0, text.find('='));
    if ((absl::StartsWith(name, "PYTHON") || name == "MATPLOTLIBRC") &&
        std::find(kept.begin(), kept.end(), name) == kept.end()) {
      settings.emplace_back(name, "");
    }
  }
  return settings;
}

std::filesystem::path ThisProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// Passes the data of both pipes on until both have ended, and signals to the process. Returns true
// if Python said that it lacks the package: those words are not passed on.
bool Forward(const platform::Pipe& out_pipe, std::ostream& out, const platform::Pipe& err_pipe,
             std::ostream& err, const InterruptGuard& interrupts, platform::ChildProcess& process) {
  int passed_on = 0;
  bool lacks_package = false;
  std::array<pollfd, 2> ends = {pollfd{.fd = out_pipe.read_end.get(), .events = POLLIN},
                                pollfd{.fd = err_pipe.read_end.get(), .events = POLLIN}};
  std::array<char, 1 << 16> buffer;
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int ready = poll(ends.data(), ends.size(), kPollMilliseconds);
    if (interrupts.count() > passed_on) {
      passed_on = interrupts.count();
      process.Signal(SIGTERM);
    }
    if (ready < 0) continue;  // EINTR
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t got = read(ends[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        const absl::string_view text(buffer.data(), static_cast<size_t>(got));
        lacks_package |= i == 1 && absl::StrContains(text, ": No module named lengthwise");
        if (i == 0 || !lacks_package) (i == 0 ? out : err) << text << std::flush;
      } else if (got == 0 || errno != EINTR) {
        ends[i].fd = -1;  // poll ignores it
      }
    }
  }
  return lacks_package;
}

}  // namespace

absl::StatusOr<std::string> FindPython() {
  if (std::string given = Variable("LENGTHWISE_PYTHON"); !given.empty()) return given;
  const std::filesystem::path beside = ThisProgram().parent_path();
  std::vector<std::filesystem::path> places = {beside / "python",
                                               beside.parent_path() / "lib/lengthwise/python"};
  if (const auto cache = platform::CacheDirectory()) places.emplace_back(*cache + "/python");
  for (const auto& place : places) {
    const std::filesystem::path python = place / "bin/python";
    if (::access(python.c_str(), X_OK) == 0) return python.string();
  }
  for (const char* active : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string environment = Variable(active);
    if (std::string python = environment + "/bin/python3";
        !environment.empty() && HasPackage(python)) {
      return python;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("the Python environment is missing (looked for ", places.back().string(),
                   "); run deploy/install.sh, or set LENGTHWISE_PYTHON to a Python with the "
                   "package lengthwise"));
}

namespace {

constexpr char kPythonAdvice[] =
    "set LENGTHWISE_PYTHON to a Python with the package lengthwise, or run deploy/install.sh";

platform::ChildProcess::Options PythonProcess(const std::string& python,
                                              const std::vector<std::string>& arguments,
                                              const rpc::ChannelOptions& channel) {
  platform::ChildProcess::Options options{
      .arguments = {python, "-m", "lengthwise"},
      // The settings are resolved, so the environment and the configuration file must not add to
      // them. Nor may Python import modules from the current directory.
      .environment = {{"LENGTHWISE_CONFIG", ""},
                      {"LENGTHWISE_SERVER", channel.server},
                      {"LENGTHWISE_TOKEN_FILE", channel.token_file},
                      {"LENGTHWISE_TLS_CA", channel.tls_ca},
                      {"LENGTHWISE_TLS_CERTIFICATE", channel.tls_certificate},
                      {"LENGTHWISE_TLS_KEY", channel.tls_key},
                      {"LENGTHWISE_TLS_SERVER_NAME", channel.tls_server_name},
                      // If it needs `lengthwise`, it runs this program.
                      {"LENGTHWISE_CLIENT_BINARY", ThisProgram().string()},
                      // A notebook's backend is a module of its kernel. Figures are files here.
                      {"MPLBACKEND", "agg"},
                      {"PYTHONSAFEPATH", "1"},
                      {"PYTHONUTF8", "1"}}};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  const auto unset = WithoutPythonSettings();
  options.environment.insert(options.environment.end(), unset.begin(), unset.end());
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartPython(
    const std::vector<std::string>& arguments, const rpc::ChannelOptions& channel,
    std::string& first_line) {
  ASSIGN_OR_RETURN(auto python, FindPython());
  ASSIGN_OR_RETURN(auto out_pipe, platform::Pipe::Open());
  platform::ChildProcess::Options options = PythonProcess(python, arguments, channel);
  options.output_descriptor = out_pipe.write_end.get();
  ASSIGN_OR_RETURN(
      auto process, platform::ChildProcess::Start(options),
      absl::NotFoundError(absl::StrCat(std::string(_.message()), "; ", kPythonAdvice)));
  out_pipe.write_end = platform::Descriptor();
  first_line.clear();
  char next = 0;
  ssize_t got = 0;
  while ((got = read(out_pipe.read_end.get(), &next, 1)) == 1 && next != '\n') first_line += next;
  if (got != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("`lengthwise ", arguments.front(), "` did not start; what it said is above"));
  }
  return process;
}

absl::StatusOr<int> RunPython(const std::vector<std::string>& arguments,
                              const rpc::ChannelOptions& channel, std::ostream& out,
                              std::ostream& err) {
  ASSIGN_OR_RETURN(auto python, FindPython());
  ASSIGN_OR_RETURN(auto out_pipe, platform::Pipe::Open());
  ASSIGN_OR_RETURN(auto err_pipe, platform::Pipe::Open());
  platform::ChildProcess::Options options = PythonProcess(python, arguments, channel);
  options.output_descriptor = out_pipe.write_end.get();
  options.error_descriptor = err_pipe.write_end.get();
  options.own_process_group = false;
  const InterruptGuard interrupts;
  auto process = platform::ChildProcess::Start(options);
  if (!process.ok()) {
    return absl::NotFoundError(
        absl::StrCat(std::string(process.status().message()), "; ", kPythonAdvice));
  }
  out_pipe.write_end = platform::Descriptor();
  err_pipe.write_end = platform::Descriptor();
  const bool lacks_package = Forward(out_pipe, out, err_pipe, err, interrupts, **process);
  const auto exit = (*process)->WaitFor(absl::InfiniteDuration());
  if (exit->signal != 0 && interrupts.count() > 0) return kInterrupted;
  if (exit->signal != 0) {
    return absl::InternalError(absl::StrCat(python, " ", exit->ToString()));
  }
  if (lacks_package && exit->code != 0) {
    return absl::NotFoundError(absl::StrCat(python, " has no package lengthwise; ", kPythonAdvice));
  }
  return exit->code;
}

}  // namespace lengthwise::client
