// The command line of lengthwise_server.
#ifndef LENGTHWISE_SERVER_FLAGS_H_
#define LENGTHWISE_SERVER_FLAGS_H_

#include <string>
#include <variant>

#include "absl/time/time.h"
#include "server/coordination/core_options.h"
#include "server/security/quotas.h"

namespace lengthwise::server {

struct Flags {
  std::string listen = "127.0.0.1:7070";
  // Empty: no metrics.
  std::string metrics_listen = "127.0.0.1:9464";
  // When not empty: where the addresses are written once the server serves.
  std::string ready_file;
  bool exit_with_parent = false;
  CoreOptions core;
  // Files; empty: plain text.
  std::string tls_certificate;
  std::string tls_key;
  // The file of the authority whose certificates workers must show; empty: they need none.
  std::string tls_client_ca;
  // When not empty: makes a token of an administrator, writes it to this file and ends.
  std::string create_admin_token;
  // Deletes all tokens and ends.
  bool remove_all_tokens = false;
  // Of the audit log; empty: "audit.log" in the data directory, once there are tokens; "off": none.
  std::string audit_log;
  Quotas::Options quotas;
  // How often the server connects to itself.
  absl::Duration self_check_interval = absl::Seconds(10);
};

// Returns the flags, or the exit code when there is nothing to run: 0 after --help or --version, 2
// after a wrong flag, whose reason went to stderr.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_FLAGS_H_
