#include "server/flags.h"

#include <arpa/inet.h>

#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "platform/version.h"

namespace lengthwise::server {
namespace {

std::string DefaultDataDir() {
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && data_home[0] == '/') return absl::StrCat(data_home, "/lengthwise");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "." : home, "/.local/share/lengthwise");
}

// "HOST:PORT" -> HOST; empty when it is not of that form.
absl::string_view Host(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return {};
  }
  return address.substr(0, colon);
}

// CLI11's validators return what is wrong, or nothing.
std::string CheckAddress(const std::string& address) {
  if (address.empty() || !Host(address).empty()) return {};
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

}  // namespace

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  flags.coordinator.data_dir = DefaultDataDir();
  bool insecure = false;

  CLI::App app(
      "The Lengthwise server: accepts experiments, leases their trials to workers, keeps the "
      "results.");
  app.set_version_flag("--version", absl::StrCat("lengthwise_server ", platform::kVersion));
  app.add_option("--listen", flags.listen, "Address of the API; port 0 takes a free one")
      ->check(CheckAddress)
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--data_dir", flags.coordinator.data_dir,
                 "Directory of the database and the checkpoints; made if it is missing")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--metrics_listen", flags.metrics_listen,
                 "Address of the metrics for Prometheus; empty turns them off")
      ->check(CheckAddress)
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--max_trials", flags.coordinator.max_trials, "Most trials of one experiment")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  AddDuration(app, "--lease_duration", flags.coordinator.lease_duration,
              "A worker that is silent for so long loses its trials");
  AddDuration(app, "--heartbeat_interval", flags.coordinator.heartbeat_interval,
              "How often workers report; at most half of the lease duration");
  AddDuration(
      app, "--preempt_after", flags.coordinator.preempt_after,
      "Trials that have run so long make room for a higher priority when no worker is free");
  app.add_option("--ready_file", flags.ready_file,
                 "File that gets the bound addresses when the server serves: the API's, then the "
                 "metrics', a line each")
      ->type_name("PATH");
  app.add_flag("--exit_with_parent", flags.exit_with_parent,
               "Stop when the process that started the server ends");
  app.add_flag("--insecure_plain_text", insecure,
               "Allow addresses that other machines reach, though the server has no encryption and "
               "no authentication yet");
  try {
    app.parse(argc, argv);
    if (flags.listen.empty()) throw CLI::ValidationError("--listen", "is empty");
    if (flags.coordinator.heartbeat_interval * 2 > flags.coordinator.lease_duration) {
      throw CLI::ValidationError("--heartbeat_interval",
                                 "must be at most half of --lease_duration");
    }
    for (const std::string& address : {flags.listen, flags.metrics_listen}) {
      if (insecure || address.empty() || IsLoopback(address)) continue;
      throw CLI::ValidationError(
          absl::StrCat(address,
                       " can be reached by other machines, and the server has no TLS yet: everyone "
                       "who reaches it may do "
                       "everything. Listen on 127.0.0.1, or allow it with --insecure_plain_text"));
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return flags;
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = Host(address);
  if (host == "localhost" || host == "[::1]") return true;
  in_addr parsed;
  return inet_pton(AF_INET, std::string(host).c_str(), &parsed) == 1 &&
         (ntohl(parsed.s_addr) >> 24) == 127;
}

}  // namespace lengthwise::server
