// The command line of lengthwise_server.
#ifndef LENGTHWISE_SERVER_FLAGS_H_
#define LENGTHWISE_SERVER_FLAGS_H_

#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "server/coordinator.h"

namespace lengthwise::server {

struct Flags {
  std::string listen = "127.0.0.1:7070";
  // Empty: no metrics.
  std::string metrics_listen = "127.0.0.1:9464";
  // When not empty: where the addresses are written once the server serves.
  std::string ready_file;
  bool exit_with_parent = false;
  Coordinator::Options coordinator;
};

// Returns the flags, or the exit code when there is nothing to run: 0 after --help or --version, 2
// after a wrong flag, whose reason went to stderr.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv);

// Whether "HOST:PORT" names this machine alone: 127.0.0.0/8, [::1] or localhost.
bool IsLoopback(absl::string_view address);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_FLAGS_H_
