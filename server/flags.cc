#include "server/flags.h"

#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "command_line/definition.h"
#include "platform/user_directories.h"
#include "platform/version.h"
#include "rpc/address.h"
#include "server/security/token_records.h"
#include "server/storage/sqlite_schema.h"
#include "specification/checks.h"

namespace lengthwise::server {
namespace {

// More than the pages that the database's log may have before it is copied, so that a deletion on
// a full disk always comes to its end.
constexpr int64_t kReserveBytes = int64_t{16} << 20;

using command_line::Command;

// A check of a flag's value: returns the error, or an empty text.
std::string CheckAddress(const std::string& address) {
  if (address.empty() || !rpc::HostOf(address).empty()) return {};
  return absl::StrCat("\"", address, "\" is not HOST:PORT");
}

std::string CheckInterval(const std::string& text) {
  absl::Duration value;
  return absl::ParseDuration(text, &value) && value >= absl::Milliseconds(10) &&
                 value <= absl::Hours(24)
             ? ""
             : "not from 10ms to 24h";
}

std::string CheckRetention(const std::string& text) {
  return specification::ParseRetention(text) ? "" : "no time";
}

void AddDuration(Command command, const std::string& name, absl::Duration& value,
                 const std::string& help) {
  command.AddOption(absl::StrCat(name, " DURATION"), value, help)
      .Check(CheckInterval)
      .ShowDefault();
}

// Adds a limit of `usage`, which 0 lifts.
template <typename Number>
void AddLimit(Command command, const std::string& usage, Number& value, const std::string& help) {
  command.AddOption(usage, value, absl::StrCat(help, ". 0: no limit")).NonNegative().ShowDefault();
}

void AddAccess(Command command, Flags& flags) {
  command.AddOption("--tls_certificate PATH", flags.tls_certificate,
                    "PEM file with the server's certificate and its chain. Encrypts the API");
  command.AddOption("--tls_key PATH", flags.tls_key, "PEM file with the certificate's private key");
  command.AddOption(
      "--tls_client_ca PATH", flags.tls_client_ca,
      "PEM file with an authority's certificate. Workers must present a certificate that it has "
      "signed");
  command.AddOption(
      "--create_admin_token PATH", flags.create_admin_token,
      "Create an administrator's token in the data directory, write it to this new file "
      "and exit. From the first token on, every caller needs one");
  command.AddFlag("--remove_all_tokens", flags.remove_all_tokens,
                  "Delete all tokens in the data directory and exit. From its next start on, the "
                  "server is open to everyone who can reach it");
  command.AddOption("--oidc_issuer URL", flags.oidc.issuer,
                    "Identity provider (OpenID Connect) whose tokens (JWT) the server accepts "
                    "beside its own: their claim iss");
  command.AddOption("--oidc_audience TEXT", flags.oidc.audience,
                    "What the claim aud of a JWT must name");
  command.AddOption("--oidc_keys PATH|URL", flags.oidc.keys,
                    "The provider's public keys (JWK set), read every 30 s");
  command
      .AddOption("--oidc_principal_claim NAME", flags.oidc.principal_claim,
                 "Claim of a JWT that names the principal, which people must not be able to choose")
      .ShowDefault();
  command
      .AddOption(
          "--oidc_role_claim NAME", flags.oidc.role_claim,
          "Claim of a JWT with one of the roles viewer, submitter, worker, backup and admin, "
          "or a list with exactly one of them")
      .ShowDefault();
  command.AddOption(
      "--audit_log PATH", flags.audit_log,
      "File that records changes and refused calls, one JSON object per line; rotated "
      "to PATH.1 ... PATH.7 at 16 MiB. \"off\": no audit log [audit.log in the data "
      "directory, for a server with tokens]");
  AddLimit(command, "--max_calls_per_second N", flags.quotas.calls_per_second,
           "Maximum calls per second of one principal");
  AddLimit(command, "--max_unended_trials N", flags.core.max_unended_trials,
           "Maximum number of queued and running trials of one owner");
  AddLimit(command, "--max_owner_bytes N", flags.core.max_owner_bytes,
           "Disk use of one owner's experiments in bytes from which submissions and uploads are "
           "refused; running trials go on");
  command
      .AddOption("--max_data_bytes N", flags.core.max_data_bytes,
                 "Maximum size of a file of examples in bytes, up to 1 GiB. A principal may upload "
                 "eight times this per hour")
      .Range(int64_t{1}, int64_t{1} << 30)
      .ShowDefault();
  command.AddFlag("--allow_python_networks", flags.core.allow_python_networks,
                  "Accept experiments with users' PyTorch modules (network `python`), whose code "
                  "workers with the same flag run");
  command
      .AddOption("--python_networks_from ROLE", flags.python_networks_from,
                 "Role whose tokens may submit such experiments, beside administrators'")
      .OneOf({"submitter", "admin"})
      .ShowDefault();
  AddLimit(command, "--max_streams N", flags.quotas.streams,
           "Maximum number of open watches and other streams of one principal");
}

// Whether other machines see what is sent to a URL.
bool IsPlainText(absl::string_view url) {
  if (!absl::ConsumePrefix(&url, "http://")) return false;
  const std::string host(url.substr(0, url.find('/')));
  return !rpc::IsLoopback(absl::StrContains(host, ":") ? host : absl::StrCat(host, ":80"));
}

// Checks flags that depend on each other. Returns the error, or an empty text.
std::string CheckTogether(const Flags& flags) {
  const bool has_tls = !flags.tls_certificate.empty();
  const std::pair<bool, const char*> mistakes[] = {
      {flags.listen.empty(), "--listen is empty"},
      {flags.core.heartbeat_interval * 2 > flags.core.scheduler.lease_duration,
       "--heartbeat_interval must be at most half of --lease_duration"},
      {flags.remove_all_tokens && !flags.create_admin_token.empty(),
       "--remove_all_tokens and --create_admin_token contradict each other"},
      {has_tls == flags.tls_key.empty(), "--tls_certificate and --tls_key go together"},
      {flags.is_private && has_tls, "--private and --tls_certificate contradict each other"},
      {!flags.tls_client_ca.empty() && !has_tls,
       "--tls_client_ca needs --tls_certificate and --tls_key"},
      {!flags.insecure_api.empty() && has_tls,
       "--insecure_api and --tls_certificate contradict each other"}};
  for (const auto& [is_made, error] : mistakes) {
    if (is_made) return error;
  }
  if (flags.insecure_api.empty() && !has_tls && !rpc::IsLoopback(flags.listen)) {
    return absl::StrCat(flags.listen,
                        " can be reached by other machines. Encrypt it with --tls_certificate and "
                        "--tls_key, listen on 127.0.0.1, or allow plain text with "
                        "--insecure_api plain_text");
  }
  if (!flags.insecure_metrics && !flags.metrics_listen.empty() &&
      !rpc::IsLoopback(flags.metrics_listen)) {
    return absl::StrCat(flags.metrics_listen,
                        " can be reached by other machines, and the metrics are plain text. Listen "
                        "on 127.0.0.1, or allow it with --insecure_metrics");
  }
  const WebTokens::Options& oidc = flags.oidc;
  if (oidc.issuer.empty() != oidc.audience.empty() || oidc.issuer.empty() != oidc.keys.empty()) {
    return "--oidc_issuer, --oidc_audience and --oidc_keys go together";
  }
  if (IsPlainText(oidc.keys)) {
    return absl::StrCat("--oidc_keys ", oidc.keys,
                        " is plain text: whoever changes the traffic can make tokens of everybody. "
                        "Use https, or a file");
  }
  if (!flags.insecure_s3 && absl::StartsWith(flags.core.artifacts, "s3://") &&
      IsPlainText(flags.core.s3.endpoint)) {
    return absl::StrCat("--s3_endpoint ", flags.core.s3.endpoint,
                        " is plain text: whoever reads the traffic can fetch the checkpoints. Use "
                        "https, or allow it with --insecure_s3");
  }
  return {};
}

}  // namespace

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  flags.core.data_dir = platform::DataDirectory().value_or("./.local/share/lengthwise");

  command_line::CommandLine line(
      "lengthwise_server",
      "The Lengthwise server: accepts experiments, leases their trials to workers and stores the "
      "results.");
  line.SetVersion(
      [] {
        return absl::StrCat(platform::VersionText("lengthwise_server"), "\ndatabase schema ",
                            kSchemaVersion, ", worker API ", platform::kWorkerApiVersion);
      },
      "Print the versions of the program, of its database and of the workers' API");
  const Command command = line.root();
  command.AddOption("--listen HOST:PORT", flags.listen, "Address of the API. Port 0: a free port")
      .Check(CheckAddress)
      .ShowDefault();
  command
      .AddOption("--data_dir DIR", flags.core.data_dir,
                 "Directory of the database and, without --artifacts, the checkpoints. Created if "
                 "missing")
      .ShowDefault();
  command.AddOption(
      "--artifacts DIR|s3://BUCKET/PREFIX", flags.core.artifacts,
      "Place of the checkpoints: a directory, for example on NFS, as an absolute path "
      "outside --data_dir, created if missing; or an object store, with the credentials "
      "in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY [artifacts in --data_dir]");
  command
      .AddOption("--s3_endpoint URL", flags.core.s3.endpoint,
                 "Address of the object store, http[s]://HOST[:PORT], also for the workers "
                 "[Amazon's of --s3_region]")
      .Environment("AWS_ENDPOINT_URL");
  command.AddOption("--s3_region REGION", flags.core.s3.region, "Region of the object store")
      .Environment("AWS_REGION")
      .ShowDefault();
  command.AddFlag(
      "--take_over_artifacts", flags.core.take_over_artifacts,
      "Make --artifacts this data directory's, although its mark says otherwise. Needed "
      "once, after a restore or a move");
  command.AddFlag("--check_upgrade", flags.check_upgrade,
                  "Say what the start of this release would do to the database in --data_dir, "
                  "which a server may be using, and exit. Changes nothing");
  command.AddOption(
      "--restore PATH", flags.core.restore_from,
      "Directory of a backup to copy into --data_dir first, which must be missing or empty");
  command
      .AddOption("--metrics_listen HOST:PORT", flags.metrics_listen,
                 "Address of the metrics for Prometheus. Empty: no metrics")
      .Check(CheckAddress)
      .ShowDefault();
  command
      .AddOption("--probe_listen HOST:PORT", flags.probe_listen,
                 "Address of http://HOST:PORT/healthz, which answers once the server serves, for "
                 "probes of Kubernetes and load balancers. It tells nothing else. Empty: none")
      .Check(CheckAddress);
  command
      .AddOption("--max_trials N", flags.core.max_trials,
                 "Maximum number of trials in one experiment")
      .Range(int64_t{1}, int64_t{1'000'000'000})
      .ShowDefault();
  command
      .AddOption("--max_grid_bytes N", flags.core.max_grid_bytes,
                 "Maximum size of one experiment in bytes when it is expanded: each task, network "
                 "and encoding of its grid has a copy of training and evaluation, with all "
                 "lengths. The server needs several times as much memory for a moment")
      .Range(int64_t{1} << 20, int64_t{1} << 32)
      .ShowDefault();
  command
      .AddOption(
          "--retention TIME", flags.retention,
          "Time from an experiment's end after which its checkpoints, models, attention maps "
          "and projections are deleted, such as 90d; other results stay. A specification's "
          "`retention` overrides it")
      .Check(CheckRetention, "a time such as 90d or 12h, or forever")
      .ShowDefault();
  AddDuration(
      command, "--lease_duration", flags.core.scheduler.lease_duration,
      "Lease duration. A lease expires after this long without a heartbeat, and its trials are "
      "requeued");
  command.AddFlag(
      "--release_leases", flags.core.release_leases,
      "At the start, requeue at once what an earlier server on --data_dir had leased, "
      "instead of after --lease_duration. `lengthwise run` sets it. Only for a directory "
      "whose workers have all ended: one that still runs loses its progress since its "
      "last checkpoint");
  AddDuration(command, "--self_check_interval", flags.self_check_interval,
              "Interval at which the server connects to its own address. After three failures in a "
              "row it exits, so that its supervisor restarts it");
  AddDuration(command, "--heartbeat_interval", flags.core.heartbeat_interval,
              "Interval of workers' heartbeats, at most half of --lease_duration");
  AddDuration(
      command, "--preempt_after", flags.core.scheduler.min_run,
      "Minimum run time of a lease before a higher priority may preempt it, if no worker is free");
  command
      .AddOption("--log_format FORMAT", flags.log_format,
                 "Format of the log's lines: text, or json, an object with time, level and text")
      .OneOf({"text", "json"})
      .ShowDefault();
  command
      .AddOption("--log_level LEVEL", flags.log_level,
                 "Least severity of the lines in the log: info, warning or error")
      .OneOf({"info", "warning", "error"})
      .ShowDefault();
  command.AddOption(
      "--ready_file PATH", flags.ready_file,
      "File to which the server writes its bound addresses once it serves: the API's, "
      "then the metrics', one per line");
  command.AddFlag("--exit_with_parent", flags.exit_with_parent,
                  "Stop when the process that started the server exits");
  command.AddFlag("--private", flags.is_private,
                  "Serve the program that started the server: standard input is a pipe from it. "
                  "The server is killed when the pipe ends. If a byte came through it before, the "
                  "server stops once no program uses --data_dir. It listens on a Unix socket that "
                  "its user alone can open, without tokens and metrics. `lengthwise` sets it");
  command
      .AddOption(
          "--insecure_api plain_text|open", flags.insecure_api,
          "Allow an API in plain text on an address that other machines can reach. Anyone on "
          "the network path can read tokens and answers. open: without tokens as well, for "
          "everyone who can reach it")
      .OneOf({"plain_text", "open"});
  command.AddFlag(
      "--insecure_metrics", flags.insecure_metrics,
      "Allow metrics, which are plain text, on an address that other machines can reach");
  command.AddFlag("--insecure_s3", flags.insecure_s3,
                  "Allow an --s3_endpoint in plain text on another machine. Anyone on the network "
                  "path can read checkpoints");
  AddAccess(command, flags);
  const absl::StatusOr<std::string> text =
      line.Parse(std::vector<std::string>(argv + 1, argv + argc));
  if (text.ok() && !text->empty()) {
    std::cout << *text;
    return 0;
  }
  const std::string wrong = text.ok() ? CheckTogether(flags) : std::string(text.status().message());
  if (!wrong.empty()) {
    std::cerr << "lengthwise_server: " << wrong << "\n";
    return 2;
  }
  const absl::Duration retention = *specification::ParseRetention(flags.retention);
  if (retention < absl::InfiniteDuration()) flags.core.retention = retention;
  flags.core.python_networks_from = ParseRole(flags.python_networks_from);
  // A private server's disk is its user's, who need not ask it to free space.
  if (!flags.is_private) flags.core.reserve_bytes = kReserveBytes;
  if (flags.is_private) flags.metrics_listen.clear();
  // In the environment and not on the command line, which every user of the machine can read.
  const auto secret = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  flags.core.s3.credentials = {.access_key_id = secret("AWS_ACCESS_KEY_ID"),
                               .secret_access_key = secret("AWS_SECRET_ACCESS_KEY"),
                               .session_token = secret("AWS_SESSION_TOKEN")};
  return flags;
}

}  // namespace lengthwise::server
