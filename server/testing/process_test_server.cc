// The server's process for process_test. The data directory "/fake" is a new directory, "/locked"
// cannot be opened, and a server on "/stuck" never finishes stopping.
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "platform/status_macros.h"
#include "server/process.h"

namespace {

using lengthwise::server::CommandLoop;
using lengthwise::server::Core;
using lengthwise::server::CoreOptions;

absl::StatusOr<std::unique_ptr<Core>> Open(const CoreOptions& options) {
  if (options.data_dir == "/locked") {
    return absl::FailedPreconditionError("another server has /locked open");
  }
  if (options.data_dir != "/fake" && options.data_dir != "/stuck") return Core::Open(options);
  const char* const parent = getenv("TEST_TMPDIR");
  std::string directory = std::string(parent == nullptr ? "/tmp" : parent) + "/data.XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return absl::InternalError("no directory");
  CoreOptions opened = options;
  opened.data_dir = directory;
  ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(opened));
  if (options.data_dir == "/stuck") {
    core->loop().PostCommand({.apply = []() -> CommandLoop::Answer {
                                while (true) pause();
                              },
                              .fail = [](const absl::Status&) {}});
  }
  return core;
}

}  // namespace

int main(int argc, char** argv) { return lengthwise::server::RunProcess(argc, argv, Open); }
