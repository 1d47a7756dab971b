#include "server/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/version.h"
#include "server/monitoring/endpoint.h"
#include "server/services/catalogue_entries.h"
#include "server/services/rpc_server.h"
#include "specification/catalogues.h"

namespace lengthwise::server {
namespace {

// For clients that read slowly, and for those between two calls: gRPC waits until they have
// answered a last ping, which they do in their next call only. Streams that are read end at once.
constexpr absl::Duration kGrace = absl::Seconds(1);

// SIGTERM when the parent ends. `parent` is who it was when the process started.
absl::Status ExitWithParent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
    return absl::ErrnoToStatus(errno, "cannot ask for a signal at the parent's end");
  }
  // It may have ended before the line above.
  if (getppid() != parent) return absl::CancelledError("the parent process has ended");
  return absl::OkStatus();
}

// Readers see the whole file or none.
absl::Status WriteReadyFile(const std::string& path, absl::string_view text) {
  absl::StatusOr<std::unique_ptr<platform::AtomicFile>> file = platform::AtomicFile::Create(path);
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Append(text); !status.ok()) return status;
  return (*file)->Commit();
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

absl::Status Serve(const Flags& flags, const OpenCoordinator& open) {
  const pid_t parent = getppid();
  // Threads that come later inherit this, so that the signals wait for sigwait below.
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (flags.exit_with_parent) {
    if (absl::Status status = ExitWithParent(parent); !status.ok()) return status;
  }
  // One of an earlier server would name the wrong address.
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());

  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = open(flags.coordinator);
  if (!coordinator.ok()) return coordinator.status();

  RpcServer::Options options;
  options.listen = flags.listen;
  options.catalogue = CatalogueEntries(specification::AllCatalogues());
  std::unique_ptr<MonitoringEndpoint> metrics;
  if (!flags.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> endpoint =
        MonitoringEndpoint::Start(flags.metrics_listen, platform::kVersion, **coordinator);
    if (!endpoint.ok()) return endpoint.status();
    metrics = *std::move(endpoint);
    options.interceptors.push_back(metrics->rpc_metrics().Interceptor());
  }
  absl::StatusOr<std::unique_ptr<RpcServer>> server =
      RpcServer::Start(std::move(options), **coordinator);
  if (!server.ok()) return server.status();

  const std::string metrics_address = metrics == nullptr ? "" : metrics->address();
  if (!flags.ready_file.empty()) {
    if (absl::Status status = WriteReadyFile(
            flags.ready_file, absl::StrCat((*server)->address(), "\n", metrics_address, "\n"));
        !status.ok()) {
      return status;
    }
  }
  platform::LogInfo(absl::StrCat(
      "serving on ", (*server)->address(),
      metrics == nullptr ? "" : absl::StrCat(", metrics on http://", metrics_address, "/metrics"),
      ", data in ", flags.coordinator.data_dir));

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  platform::LogInfo(absl::StrCat("stopping on ", signal_number == SIGINT ? "SIGINT" : "SIGTERM",
                                 "; a second signal stops at once"));
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());
  (*server)->Stop(kGrace);
  platform::LogInfo("stopped");
  return absl::OkStatus();
}

int RunProcess(int argc, const char* const* argv, const OpenCoordinator& open) {
  const std::variant<Flags, int> flags = ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&flags)) return *exit_code;
  // gRPC's own log speaks of file descriptors where the line below says what to do.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const absl::Status status = Serve(std::get<Flags>(flags), open);
  if (status.ok()) return 0;
  platform::LogError(std::string(status.message()));
  return 1;
}

}  // namespace lengthwise::server
