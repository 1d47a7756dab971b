// The command line of lengthwise_server.
#ifndef LENGTHWISE_SERVER_FLAGS_H_
#define LENGTHWISE_SERVER_FLAGS_H_

#include <string>
#include <variant>

#include "absl/time/time.h"
#include "server/coordination/core.h"
#include "server/security/quotas.h"
#include "server/security/web_tokens.h"

namespace lengthwise::server {

struct Flags {
  std::string listen = "127.0.0.1:7070";
  // Empty: no metrics.
  std::string metrics_listen = "127.0.0.1:9464";
  // Empty: no probes.
  std::string probe_listen;
  // "text" or "json".
  std::string log_format = "text";
  // "info", "warning" or "error".
  std::string log_level = "info";
  // File to which the addresses are written once the server serves. Empty: none.
  std::string ready_file;
  bool exit_with_parent = false;
  // The server of a client, whose pipe is standard input: on a Unix socket, without metrics.
  bool is_private = false;
  CoreOptions core;
  // Paths. Empty: plain text.
  std::string tls_certificate;
  std::string tls_key;
  // Path of the authority that must have signed workers' certificates. Empty: they need none.
  std::string tls_client_ca;
  // If not empty: create an administrator's token, write it to this file and exit.
  std::string create_admin_token;
  // Delete all tokens and exit.
  bool remove_all_tokens = false;
  // Say what a start would do to the database, and exit.
  bool check_upgrade = false;
  // Path of the audit log. Empty: "audit.log" in the data directory, once there are tokens. "off":
  // none.
  std::string audit_log;
  // What other machines may reach without encryption. Of the API "plain_text", or "open" if it
  // needs no token either; empty: it may not be reached so.
  std::string insecure_api;
  bool insecure_metrics = false;
  bool insecure_s3 = false;
  Quotas::Options quotas;
  // Without an issuer: no tokens of an identity provider.
  WebTokens::Options oidc;
  // As ExperimentSpecification.retention.
  std::string retention = "forever";
  // A RoleName.
  std::string python_networks_from = "submitter";
  // Interval at which the server connects to its own address.
  absl::Duration self_check_interval = absl::Seconds(10);
};

// Returns the flags, or the exit code if there is nothing to run: 0 after --help or --version, 2
// after a wrong flag, which was reported on stderr.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_FLAGS_H_
