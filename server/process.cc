#include "server/process.h"

#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "monitoring/http_endpoint.h"
#include "platform/data_directory_names.h"
#include "platform/descriptors.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/periodic_thread.h"
#include "platform/private_socket.h"
#include "platform/process_usage.h"
#include "platform/rotated_file.h"
#include "platform/service_lifecycle.h"
#include "platform/status_macros.h"
#include "rpc/address.h"
#include "rpc/token.h"
#include "server/api/rpc_server.h"
#include "server/api/services.h"
#include "server/edge/certificate_files.h"
#include "server/metrics/endpoint.h"
#include "server/security/audit_log.h"
#include "server/security/token_store.h"
#include "server/storage/sqlite_schema.h"
#include "specification/catalogues.h"

namespace lengthwise::server {
namespace {

// Time for clients that read slowly, and for idle ones: gRPC waits until they answer a last ping,
// which they only do in their next call. Streams that are being read end at once.
constexpr absl::Duration kGrace = absl::Seconds(1);
// Fewer open files leave too few connections for a worker and its user.
constexpr int64_t kLeastDescriptors = 64;

// Timeout of the server's connection to itself. The edge and gRPC answer it without the core, so a
// full disk does not delay it.
constexpr absl::Duration kSelfCheckPatience = absl::Seconds(10);

// Interval at which the owners' usage is measured.
constexpr absl::Duration kUsageInterval = absl::Minutes(10);

// Larger blocks get pages of their own, which go back to the system when they are freed, and so
// does more than this at the end of an arena. Otherwise the C library learns from the first large
// answer to keep tens of MiB at the end of each arena, which malloc_trim does not return. The parts
// of an artifact, of up to 1 MiB, stay below it: the pages of each would be cleared by the system.
constexpr int kLargeBlock = 3 << 20;
// With this much more memory than at its least, the server returns what it does not use. The C
// library would keep it, for example after a flood.
constexpr int64_t kTrimBytes = 32 << 20;
constexpr absl::Duration kTrimInterval = absl::Seconds(10);
// How often a private server without its client looks for other users.
constexpr absl::Duration kUsersInterval = absl::Milliseconds(50);
// How often the files of certificates are read again.
constexpr absl::Duration kCertificatesInterval = absl::Seconds(10);

// Limited, because Protobuf logs invalid UTF-8 before a call's token is checked.
void LogOfProtobuf(google::protobuf::LogLevel, const char*, int, const std::string& text) {
  static auto* const log = new platform::LimitedLog(absl::Seconds(10));
  log->Warning(absl::StrCat("protobuf: ", text));
}

// The supervisor restarts the server. Nothing acknowledged is lost.
void EndUnreachable(const absl::Status& status) {
  platform::LogError("exiting: the server cannot be reached from its own machine (",
                     status.message(), "); start it again");
  _exit(1);
}

// The server of a client (--private) ends with it, or, if the client has gone but others use the
// data directory, after the last of them.
void FollowClient(const std::string& users_file) {
  char word = 0;
  ssize_t got = 0;
  do {
    got = read(STDIN_FILENO, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) kill(getpid(), SIGKILL);
  auto alone = platform::FileLock::Acquire(users_file);
  for (; absl::IsAborted(alone.status()); alone = platform::FileLock::Acquire(users_file)) {
    absl::SleepFor(kUsersInterval);
  }
  // Until this process has ended, so that newcomers wait and then start a server of their own.
  static platform::FileLock* const held [[maybe_unused]] = alone.ok() ? alone->release() : nullptr;
  kill(getpid(), SIGTERM);
}

// The socket of a private server. Its name is that of the data directory, which only one server at
// a time can lock.
absl::StatusOr<std::string> SocketFor(const std::string& data_dir) {
  struct stat status;
  if (stat(data_dir.c_str(), &status) != 0) return platform::FileError(errno, "read", data_dir);
  return platform::PrivateSocketPath(
      absl::StrCat(absl::Hex(status.st_dev), "-", absl::Hex(status.st_ino)));
}

// Those that stop the server, and SIGHUP.
sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

// While this object lives, root acts as the owner of a data directory, because the server could not
// read files that belong to root. Keeps the right to traverse directories that the owner may not,
// such as systemd's /var/lib/private. No effect for other users. For single-threaded programs.
class AsOwnerOf {
 public:
  explicit AsOwnerOf(const std::string& directory) {
    struct stat status;
    if (geteuid() != 0 || stat(directory.c_str(), &status) != 0) return;
    became_ = true;
    if (setegid(status.st_gid) != 0 || seteuid(status.st_uid) != 0) return;
    __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    if (syscall(SYS_capget, &header, sets) != 0) return;
    sets[0].effective |= 1U << CAP_DAC_READ_SEARCH;
    syscall(SYS_capset, &header, sets);  // if this fails, opening such a directory reports it
  }
  ~AsOwnerOf() {
    if (became_ && (seteuid(0) != 0 || setegid(0) != 0)) abort();
  }
  AsOwnerOf(const AsOwnerOf&) = delete;
  AsOwnerOf& operator=(const AsOwnerOf&) = delete;

 private:
  bool became_ = false;
};

// The audit log's file. An empty path means no audit log.
platform::RotatedFile AuditFile(const Flags& flags) {
  if (flags.audit_log == "off") return {};
  return {.path = flags.audit_log.empty() ? absl::StrCat(flags.core.data_dir, "/audit.log")
                                          : flags.audit_log};
}

// Records in the audit log what a user did on the server's machine, without the server. If the line
// cannot be written, the log says so.
void RecordLocalChange(const Flags& flags, absl::string_view flag, const std::string& resource,
                       const std::string& made = "") {
  const platform::RotatedFile file = AuditFile(flags);
  if (file.path.empty()) return;
  const absl::Status status = platform::AppendLines(
      file, FormatAuditLine({.time = absl::Now(),
                             .caller = {.principal = absl::StrCat("uid:", getuid())},
                             .peer = "this machine",
                             .method = absl::StrCat("lengthwise_server ", flag),
                             .resource = resource,
                             .made = made}));
  if (!status.ok()) platform::LogError("cannot write to the audit log: ", status.message());
}

// Null without an audit log. A full disk does not prevent the server from serving.
absl::StatusOr<std::unique_ptr<AuditLog>> OpenAuditLog(const Flags& flags, bool has_tokens) {
  AuditLog::Options options;
  options.file = AuditFile(flags);
  options.with_anonymous = !flags.audit_log.empty();
  if (options.file.path.empty()) return nullptr;
  if (has_tokens || options.with_anonymous) {
    const absl::Status status = platform::AppendLines(options.file, "");
    if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  }
  return std::make_unique<AuditLog>(std::move(options));
}

}  // namespace

absl::Status CreateAdminToken(const Flags& flags) {
  const std::string& data_dir = flags.core.data_dir;
  RETURN_IF_ERROR(platform::CreateDirectories(data_dir));
  absl::StatusOr<std::unique_ptr<TokenStore>> tokens = absl::UnknownError("not opened");
  absl::StatusOr<v1::CreateTokenResponse> created = absl::UnknownError("not made");
  bool was_open = false;
  {
    const AsOwnerOf owner(data_dir);
    tokens = TokenStore::Open(data_dir, absl::Now, TokenStore::IfMissing::kAccept);
    if (!tokens.ok()) return tokens.status();
    was_open = !(*tokens)->IsRequired();
    v1::CreateTokenRequest request;
    request.set_principal("admin");
    request.set_role(v1::ADMIN);
    created = (*tokens)->Create(request);
    if (!created.ok()) return created.status();
  }
  absl::Status status = rpc::WriteTokenFile(flags.create_admin_token, created->text());
  const AsOwnerOf owner(data_dir);
  if (!status.ok()) {
    // Nobody has the secret of this token.
    v1::RevokeTokenRequest revoke;
    revoke.set_token_id(created->token().token_id());
    (*tokens)->Revoke(revoke).IgnoreError();
    // A running server without tokens stays open: nobody has one.
    if (was_open) TokenStore::RemoveAll(data_dir).IgnoreError();
    return status;
  }
  RecordLocalChange(flags, "--create_admin_token", "admin ADMIN", created->token().token_id());
  platform::LogInfo("wrote token ", created->token().token_id(),
                    " of admin, valid for 90 days, to ", flags.create_admin_token,
                    "; every caller of this server now needs a token");
  return absl::OkStatus();
}

absl::Status RemoveAllTokens(const Flags& flags) {
  const AsOwnerOf owner(flags.core.data_dir);
  RETURN_IF_ERROR(TokenStore::RemoveAll(flags.core.data_dir));
  RecordLocalChange(flags, "--remove_all_tokens", flags.core.data_dir);
  platform::LogWarning("deleted all tokens in ", flags.core.data_dir,
                       "; a server started there now is open to everyone who can reach "
                       "it, a running one refuses every caller until it is restarted");
  return absl::OkStatus();
}

std::function<bool()> SelfCheck(std::function<absl::Status()> check,
                                std::function<void(const absl::Status&)> give_up) {
  return [check = std::move(check), give_up = std::move(give_up), failures = 0]() mutable {
    const absl::Status status = check();
    if (status.ok()) {
      failures = 0;
      return true;
    }
    platform::LogWarning("the server cannot be reached from its own machine: ", status.message());
    if (++failures < kSelfCheckFailures) return true;
    give_up(status);
    return false;
  };
}

absl::Status Serve(const Flags& flags, const OpenCore& open) {
  const pid_t starter = platform::StartingProcess();
  // Later threads inherit the mask, so the signals stay pending until sigwait below.
  const sigset_t signals = Signals();
  const bool has_terminal = isatty(STDERR_FILENO) == 1;
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (flags.exit_with_parent) {
    RETURN_IF_ERROR(platform::EndWithParent(starter));
  }
  if (flags.is_private) {
    std::thread(FollowClient, absl::StrCat(flags.core.data_dir, "/", platform::kUsersFile))
        .detach();
  }
  if (const int64_t limit = platform::RaiseDescriptorLimit(); limit < kLeastDescriptors) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process may open ", limit, " files, expected at least ",
                     kLeastDescriptors, "; raise the limit, `ulimit -n`"));
  }
  google::protobuf::SetLogHandler(LogOfProtobuf);
  ASSIGN_OR_RETURN(const std::unique_ptr<Core> core, open(flags.core));
  // A file of an earlier server would name the wrong address. That of a server that still runs on
  // this directory stays: `open` has failed then.
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());

  RpcServer::Options options;
  options.edge.listen = flags.listen;
  std::unique_ptr<TokenStore> tokens;
  if (flags.is_private) {
    ASSIGN_OR_RETURN(options.socket, SocketFor(flags.core.data_dir));
  } else {
    ASSIGN_OR_RETURN(tokens, TokenStore::Open(flags.core.data_dir));
  }
  if (tokens != nullptr && !flags.oidc.issuer.empty()) {
    ASSIGN_OR_RETURN(auto web, WebTokens::Open(flags.oidc));
    tokens->Accept(std::move(web));
  }
  const bool has_tokens = tokens != nullptr && tokens->IsRequired();
  if (!rpc::IsLoopback(flags.listen) && !has_tokens) {
    if (flags.insecure_api != "open") {
      return absl::FailedPreconditionError(absl::StrCat(
          "other machines can reach ", flags.listen,
          ", but the server has no tokens, so everyone could do everything; create the first with "
          "`lengthwise_server --data_dir ",
          flags.core.data_dir,
          " --create_admin_token PATH`, or allow it with --insecure_api open"));
    }
    platform::LogWarning("everyone who can reach ", flags.listen,
                         " can do everything: there are no tokens");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<AuditLog> audit, OpenAuditLog(flags, has_tokens));

  std::unique_ptr<CertificateFiles> certificates;
  if (!flags.tls_certificate.empty()) {
    ASSIGN_OR_RETURN(certificates,
                     CertificateFiles::Open({.certificate = flags.tls_certificate,
                                             .key = flags.tls_key,
                                             .client_authority = flags.tls_client_ca}));
    options.edge.encryption = certificates->encryption();
  }
  options.tokens = tokens.get();
  options.audit = audit.get();
  options.gate.workers_need_certificate = !flags.tls_client_ca.empty();
  options.gate.quotas = flags.quotas;
  options.catalogue = CatalogueEntries(specification::AllCatalogues());
  std::unique_ptr<MonitoringEndpoint> metrics;
  if (!flags.metrics_listen.empty()) {
    ASSIGN_OR_RETURN(metrics, MonitoringEndpoint::Start(
                                  flags.metrics_listen, [&core] { return core->GetStatistics(); },
                                  audit.get(), tokens.get(), certificates.get()));
    options.interceptors.push_back(metrics->rpc_metrics().Interceptor());
    options.streams = metrics->streams();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   RpcServer::Start(std::move(options), *core));

  std::unique_ptr<monitoring::HttpEndpoint> probe;
  if (!flags.probe_listen.empty()) {
    ASSIGN_OR_RETURN(probe, monitoring::HttpEndpoint::StartProbe(flags.probe_listen));
  }

  // Clients that are given the data directory ask this server instead of starting their own.
  const bool needs_credentials = !flags.tls_certificate.empty() || has_tokens;
  if (const absl::Status status = core->DescribeHolder(
          absl::StrCat(server->address(), "\n", needs_credentials ? "needs credentials\n" : ""));
      !status.ok()) {
    if (flags.is_private) return status;
    platform::LogWarning("clients cannot find this server by its data directory: ",
                         status.message());
  }

  const std::string metrics_address = metrics == nullptr ? "" : metrics->address();
  if (!flags.ready_file.empty()) {
    RETURN_IF_ERROR(platform::WriteFileAtomically(
        flags.ready_file, absl::StrCat(server->address(), "\n", metrics_address, "\n")));
  }
  platform::LogInfo(
      "serving on ", server->address(), flags.tls_certificate.empty() ? "" : " with TLS",
      has_tokens || flags.is_private ? "" : ", open to everyone without a token",
      metrics == nullptr ? "" : absl::StrCat(", metrics on http://", metrics_address, "/metrics"),
      probe == nullptr ? "" : absl::StrCat(", probes on http://", probe->address(), "/healthz"),
      ", data in ", flags.core.data_dir);

  if (absl::Status status = platform::NotifyReady(absl::StrCat("serving on ", server->address()));
      !status.ok()) {
    platform::LogWarning(status.message());
  }

  const platform::PeriodicThread trim(
      kTrimInterval, [least = platform::ReadProcessUsage().resident_bytes]() mutable {
        const int64_t resident = platform::ReadProcessUsage().resident_bytes;
        least = std::min(least, resident);
        if (resident > least + kTrimBytes) malloc_trim(0);
        return true;
      });
  std::optional<platform::PeriodicThread> measure;
  if (metrics != nullptr) {
    measure.emplace(kUsageInterval / 10, [&core] {
      core->usage().Owners(kUsageInterval).IgnoreError();
      return true;
    });
  }
  std::optional<platform::PeriodicThread> self_check;
  // A private server, which nobody would start again, goes on when its socket is gone.
  if (!flags.is_private) {
    const auto check = [&server] { return server->edge().CheckReachable(kSelfCheckPatience); };
    self_check.emplace(flags.self_check_interval, SelfCheck(check, EndUnreachable));
  }
  const auto refresh_certificates = [&] {
    if (certificates != nullptr) {
      certificates->Refresh([&](const Encryption& of) { return server->edge().SetEncryption(of); });
    }
    return true;
  };
  auto refresh =
      std::make_unique<platform::PeriodicThread>(kCertificatesInterval, refresh_certificates);
  int signal_number = 0;
  while (true) {
    sigwait(&signals, &signal_number);
    if (signal_number != SIGHUP) break;
    if (has_terminal) break;  // it was closed
    platform::LogInfo("SIGHUP: reading the certificates again");
    refresh_certificates();
  }
  platform::LogInfo("stopping on SIG", sigabbrev_np(signal_number),
                    "; a second signal stops at once");
  // Only informs the service manager.
  platform::NotifyStopping().IgnoreError();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());
  core->DescribeHolder("").IgnoreError();
  refresh.reset();
  self_check.reset();
  server->Stop(kGrace);
  platform::LogInfo("stopped");
  return absl::OkStatus();
}

namespace {

absl::Status CheckUpgrade(const std::string& data_dir) {
  const AsOwnerOf owner(data_dir);
  ASSIGN_OR_RETURN(const std::string text,
                   DescribeUpgrade(absl::StrCat(data_dir, "/", platform::kDatabaseFile)));
  std::cout << text << "\n";
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags, const OpenCore& open) {
  if (flags.check_upgrade) return CheckUpgrade(flags.core.data_dir);
  if (flags.remove_all_tokens) return RemoveAllTokens(flags);
  if (!flags.create_admin_token.empty()) return CreateAdminToken(flags);
  return Serve(flags, open);
}

}  // namespace

int RunProcess(int argc, const char* const* argv, const OpenCore& open) {
  platform::PrepareFiles();
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  mallopt(M_TRIM_THRESHOLD, kLargeBlock);
  const std::variant<Flags, int> flags = ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&flags)) return *exit_code;
  platform::SetUpLog(std::get<Flags>(flags).log_format, std::get<Flags>(flags).log_level);
  // Debian's Abseil checks each of gRPC's locks for deadlocks, in one graph behind one spin lock.
  // That is 5 to 9 % of the cost of heartbeats of 10,000 workers, and most of the longest waits.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC logs file descriptors for errors that are logged below with their remedy.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Histories, models and tokens are for the server's user only.
  umask(077);
  const absl::Status status = Run(std::get<Flags>(flags), open);
  if (status.ok()) return 0;
  platform::LogError(status.message());
  return 1;
}

}  // namespace lengthwise::server
