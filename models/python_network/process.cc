#include "models/python_network/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::models {
namespace {

// Addresses that a SharedMemory may grow to. Unused ones cost nothing.
constexpr size_t kMostBytes = size_t{1} << 38;
// The end of what the module prints that an error shows.
constexpr size_t kShownOutput = 1000;
constexpr int64_t kMostAnswer = int64_t{64} << 20;

// Names of what the module sees of the worker's environment, which may hold tokens.
constexpr char kKept[] =
    "PATH HOME LANG LC_ALL LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV TMPDIR TZ MKL_CBWR "
    "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER";
// One order of sums, on a GPU too, and one order of sets of text.
constexpr const char* kGiven[] = {"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1",
                                  "OPENBLAS_NUM_THREADS=1", "CUBLAS_WORKSPACE_CONFIG=:4096:8",
                                  "PYTHONHASHSEED=0"};

// So that a module that asks for 100 GB gets an exception instead of ending its machine.
int64_t MemoryLimit() { return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE); }

// Prints the versions and the device, its argument. The working directory, which `-c` puts first,
// has no torch.
constexpr char kDescribe[] = R"(
import importlib.util, os, platform, sys
sys.path = [place for place in sys.path if place]
found = importlib.util.find_spec("torch")
if found is None or found.origin is None:
    sys.exit("has no PyTorch")
told = {}
with open(os.path.join(os.path.dirname(found.origin), "version.py")) as file:
    exec(file.read(), told)
device = sys.argv[1]
if device.startswith("cuda") and not (told.get("cuda") or told.get("hip")):
    sys.exit(f"has torch {told['__version__']}, which has no CUDA to compute on {device}")
place = "the CPU" if device == "cpu" else device
print(f"torch {told['__version__']}, Python {platform.python_version()}, on {place}")
)";

std::string Chosen(const char* variable, const char* otherwise) {
  const char* chosen = std::getenv(variable);
  return chosen == nullptr || *chosen == '\0' ? otherwise : chosen;
}

// Appends what can be read to `text`. Returns the number of bytes; 0 at the end.
ssize_t Take(int file, std::string& text) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(file, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  return count;
}

}  // namespace

std::string DefaultInterpreter() { return Chosen("LENGTHWISE_PYTHON_NETWORKS", "python3"); }
std::string DefaultPythonDevice() { return Chosen("LENGTHWISE_PYTHON_DEVICE", "cpu"); }

absl::StatusOr<std::string> DescribeInterpreter(const std::string& interpreter,
                                                const std::string& device) {
  ASSIGN_OR_RETURN(
      const platform::ChildProcess::Output said,
      platform::ChildProcess::Run({interpreter, "-B", "-c", kDescribe, device}, absl::Seconds(20)));
  const std::string text = platform::PrintableText(absl::StripAsciiWhitespace(said.text));
  if (said.exit.has_value() && said.exit->ok()) return text;
  return absl::FailedPreconditionError(
      absl::StrCat(interpreter, " ", said.exit.has_value() ? text : "gives no answer"));
}

SharedMemory::SharedMemory(const char* name) : file_(memfd_create(name, 0)) {
  void* start =
      mmap(nullptr, kMostBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  start_ = static_cast<uint8_t*>(start);
}

SharedMemory::~SharedMemory() { munmap(start_, kMostBytes); }

void SharedMemory::Reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  if (static_cast<size_t>(bytes) > kMostBytes || ftruncate(file_.get(), bytes) != 0) {
    throw std::bad_alloc();
  }
  bytes_ = bytes;
}

PythonProcess::PythonProcess(const std::string& interpreter, absl::Duration call_limit)
    : PythonProcess(call_limit) {
  // From here on the destructor runs also if this throws.
  const auto expect = [](bool holds, const std::string& otherwise) {
    if (!holds) throw NetworkError(otherwise, /*permanent=*/false);
  };
  std::error_code error;
  folder_ = (std::filesystem::temp_directory_path(error) / "lengthwise_network_XXXXXX").string();
  const bool is_made = mkdtemp(folder_.data()) != nullptr;
  expect(is_made, absl::StrCat("cannot make a folder for the network's files in ", folder_, ": ",
                               std::generic_category().message(errno)));
  int sockets[2], pipe_ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "cannot make a pair of sockets");
  control_ = platform::Descriptor(sockets[0]);
  const platform::Descriptor theirs(sockets[1]);
  expect(pipe2(pipe_ends, O_CLOEXEC) == 0, "cannot make a pipe");
  output_ = platform::Descriptor(pipe_ends[0]);
  const platform::Descriptor prints(pipe_ends[1]);
  // The process gets the other ends alone, so that the end of either process ends the other.
  fcntl(control_.get(), F_SETFD, FD_CLOEXEC);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> arguments = {"env", "-C", folder_, "-i"};
  const std::vector<std::string> kept = absl::StrSplit(kKept, ' ');
  for (const std::string& name : kept) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) arguments.push_back(absl::StrCat(name, "=", value));
  }
  arguments.insert(arguments.end(), std::begin(kGiven), std::end(kGiven));
  // A path, unlike a name, begins at this process's working directory.
  const bool is_path = absl::StrContains(interpreter, '/');
  for (const std::string& argument :
       {is_path ? std::filesystem::absolute(interpreter).string() : interpreter, std::string("-B"),
        std::string("-c"), std::string(kChildSource), absl::StrCat(theirs.get()),
        absl::StrCat(state_.descriptor()), absl::StrCat(inputs_.descriptor()), folder_,
        absl::StrCat(MemoryLimit())}) {
    arguments.push_back(argument);
  }
  auto process = platform::ChildProcess::Start({.arguments = std::move(arguments),
                                                .output_descriptor = prints.get(),
                                                .error_descriptor = prints.get()});
  expect(process.ok(), std::string(process.status().message()));
  process_ = *std::move(process);
}

PythonProcess::~PythonProcess() {
  if (process_ != nullptr) {
    kill(-process_->pid(), SIGKILL);
    process_.reset();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

nlohmann::json PythonProcess::Call(const nlohmann::json& request) {
  if (!ended_.empty()) throw NetworkError(ended_, /*permanent=*/false);
  const std::string line = absl::StrCat(request.dump(), "\n");
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count =
        send(control_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // the answer says why
    sent += static_cast<size_t>(count);
  }
  nlohmann::json answer = nlohmann::json::parse(ReadLine(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) FailEnded("answers what is no JSON object", /*permanent=*/true);
  if (const auto error = answer.find("error"); error != answer.end()) {
    throw NetworkError(platform::PrintableText(error->get<std::string>()),
                       !answer.value("is_local", false));
  }
  return answer;
}

std::string PythonProcess::ReadLine() {
  const absl::Time deadline = absl::Now() + call_limit_;
  while (true) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    pollfd files[2] = {{.fd = control_.get(), .events = POLLIN},
                       {.fd = output_.get(), .events = POLLIN}};
    poll(files, output_.is_open() ? 2 : 1, 1000);
    if ((files[1].revents & (POLLIN | POLLHUP)) != 0) {
      if (Take(output_.get(), printed_) == 0) output_ = platform::Descriptor();
      if (printed_.size() > 2 * kShownOutput) printed_.erase(0, printed_.size() - kShownOutput);
    }
    const bool readable = (files[0].revents & (POLLIN | POLLHUP)) != 0;
    if (readable && Take(control_.get(), received_) == 0) {
      const auto exit = process_->WaitFor(absl::Seconds(5));
      const int signal = exit.has_value() ? exit->signal : 0;
      FailEnded(exit.has_value()
                    ? absl::StrCat(
                          exit->ToString(),
                          signal == SIGKILL ? ", perhaps because the machine's memory ran out" : "")
                    : "closed its connection",
                // It ignores SIGTERM, but not while it starts.
                /*permanent=*/signal != SIGKILL && signal != SIGTERM);
    }
    if (static_cast<int64_t>(received_.size()) > kMostAnswer) {
      FailEnded("answers too much", /*permanent=*/true);
    }
    if (absl::Now() > deadline) {
      FailEnded(absl::StrCat("did not answer for ", absl::FormatDuration(call_limit_),
                             ", perhaps because of an endless loop"),
                /*permanent=*/true);
    }
  }
}

void PythonProcess::FailEnded(absl::string_view why, bool permanent) {
  kill(-process_->pid(), SIGKILL);
  ended_ = absl::StrCat("the network's process ", why);
  if (output_.is_open()) Take(output_.get(), printed_);
  if (!printed_.empty()) {
    absl::StrAppend(&ended_, "\nit printed at last:\n",
                    platform::PrintableText(absl::string_view(printed_).substr(
                        printed_.size() - std::min(printed_.size(), kShownOutput))));
  }
  throw NetworkError(ended_, permanent);
}

}  // namespace lengthwise::models
