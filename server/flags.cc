#include "server/flags.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "platform/user_directories.h"
#include "platform/version_text.h"
#include "rpc/address.h"

namespace lengthwise::server {
namespace {

// CLI11's validators return what is wrong, or nothing.
std::string CheckAddress(const std::string& address) {
  if (address.empty() || !rpc::HostOf(address).empty()) return {};
  return absl::StrCat("\"", address, "\" is not HOST:PORT");
}

void AddDuration(CLI::App& app, const std::string& name, absl::Duration& value,
                 const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &value](const std::string& text) {
           if (!absl::ParseDuration(text, &value) || value < absl::Milliseconds(10) ||
               value > absl::Hours(24)) {
             throw CLI::ValidationError(
                 name, absl::StrCat("\"", text, "\" is not a duration such as 30s or 500ms"));
           }
         },
         absl::StrCat(help, " [", absl::FormatDuration(value), "]"))
      ->type_name("DURATION");
}

void AddAccess(CLI::App& app, Flags& flags) {
  app.add_option("--tls_certificate", flags.tls_certificate,
                 "PEM file of the server's certificate and its chain: the API is encrypted")
      ->type_name("PATH");
  app.add_option("--tls_key", flags.tls_key, "PEM file of the certificate's private key")
      ->type_name("PATH");
  app.add_option("--tls_client_ca", flags.tls_client_ca,
                 "PEM file of an authority: workers must show a certificate that it has signed")
      ->type_name("PATH");
  app.add_option("--create_admin_token", flags.create_admin_token,
                 "Make a token of an administrator in the data directory, write it to this new "
                 "file and end; from the first token on, every caller needs one")
      ->type_name("PATH");
  app.add_flag("--remove_all_tokens", flags.remove_all_tokens,
               "Delete all tokens in the data directory and end; from its next start on, the "
               "server is open to everyone who reaches it");
  app.add_option("--audit_log", flags.audit_log,
                 "File that says who changed what, and who was refused: a JSON object a line, "
                 "renamed to PATH.1 to PATH.7 at 16 MiB; or \"off\" [audit.log in the data "
                 "directory, for a server with tokens]")
      ->type_name("PATH");
  const CLI::Validator not_negative = CLI::Validator(CLI::NonNegativeNumber).description("");
  app.add_option("--max_calls_per_second", flags.quotas.calls_per_second,
                 "Of one principal; 0 for no limit")
      ->check(not_negative)
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--max_unended_trials", flags.core.max_unended_trials,
                 "Queued and running trials of one owner; 0 for no limit")
      ->check(not_negative)
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--max_data_bytes", flags.core.max_data_bytes,
                 "Largest file of examples that is accepted, bytes; at most 1 GiB. A principal may "
                 "upload eight times that in an hour")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--max_streams", flags.quotas.streams,
                 "Watches and other streams that one principal may have open; 0 for no limit")
      ->check(not_negative)
      ->type_name("N")
      ->capture_default_str();
}

// What the flags lack together, or nothing.
std::string CheckAddresses(const Flags& flags, bool insecure) {
  if (flags.tls_certificate.empty() != flags.tls_key.empty()) {
    return "--tls_certificate and --tls_key go together";
  }
  if (!flags.tls_client_ca.empty() && flags.tls_certificate.empty()) {
    return "--tls_client_ca needs --tls_certificate and --tls_key";
  }
  if (insecure) return {};
  if (flags.tls_certificate.empty() && !rpc::IsLoopback(flags.listen)) {
    return absl::StrCat(flags.listen,
                        " can be reached by other machines. Encrypt it with --tls_certificate and "
                        "--tls_key, listen on 127.0.0.1, or allow plain text with "
                        "--insecure_plain_text");
  }
  if (!flags.metrics_listen.empty() && !rpc::IsLoopback(flags.metrics_listen)) {
    return absl::StrCat(flags.metrics_listen,
                        " can be reached by other machines, and the metrics are plain text. Listen "
                        "on 127.0.0.1, or allow it with --insecure_plain_text");
  }
  return {};
}

}  // namespace

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  flags.core.data_dir = platform::DataDirectory().value_or("./.local/share/lengthwise");
  bool insecure = false;

  CLI::App app(
      "The Lengthwise server: accepts experiments, leases their trials to workers, keeps the "
      "results.");
  app.set_version_flag("--version", platform::VersionText("lengthwise_server"));
  app.add_option("--listen", flags.listen, "Address of the API; port 0 takes a free one")
      ->check(CheckAddress)
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--data_dir", flags.core.data_dir,
                 "Directory of the database and the checkpoints; made if it is missing")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--restore", flags.core.restore_from,
                 "A backup's directory, which is copied to a new or empty --data_dir first")
      ->type_name("PATH");
  app.add_option("--metrics_listen", flags.metrics_listen,
                 "Address of the metrics for Prometheus; empty turns them off")
      ->check(CheckAddress)
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--max_trials", flags.core.max_trials, "Most trials of one experiment")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  AddDuration(app, "--lease_duration", flags.core.lease_duration,
              "A worker that is silent for so long loses its trials");
  AddDuration(app, "--self_check_interval", flags.self_check_interval,
              "How often the server connects to its own address. It ends, for its supervisor to "
              "start it again, when that fails three times in a row");
  AddDuration(app, "--heartbeat_interval", flags.core.heartbeat_interval,
              "How often workers report; at most half of the lease duration");
  AddDuration(
      app, "--preempt_after", flags.core.preempt_after,
      "Trials that have run so long make room for a higher priority when no worker is free");
  app.add_option("--ready_file", flags.ready_file,
                 "File that gets the bound addresses when the server serves: the API's, then the "
                 "metrics', a line each")
      ->type_name("PATH");
  app.add_flag("--exit_with_parent", flags.exit_with_parent,
               "Stop when the process that started the server ends");
  app.add_flag("--insecure_plain_text", insecure,
               "Allow plain text on addresses that other machines reach, for the API without "
               "--tls_certificate and for the metrics: everyone on the way reads along");
  AddAccess(app, flags);
  try {
    app.parse(argc, argv);
    if (flags.listen.empty()) throw CLI::ValidationError("--listen", "is empty");
    if (flags.core.heartbeat_interval * 2 > flags.core.lease_duration) {
      throw CLI::ValidationError("--heartbeat_interval",
                                 "must be at most half of --lease_duration");
    }
    if (flags.remove_all_tokens && !flags.create_admin_token.empty()) {
      throw CLI::ValidationError(
          "--remove_all_tokens and --create_admin_token contradict each other");
    }
    if (const std::string wrong = CheckAddresses(flags, insecure); !wrong.empty()) {
      throw CLI::ValidationError(wrong);
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return flags;
}

}  // namespace lengthwise::server
