// Resolves a program's connection settings from its command line, environment and configuration
// file, in this order of precedence.
//
// The file is $XDG_CONFIG_HOME/lengthwise/config.yaml, by default
// ~/.config/lengthwise/config.yaml. $LENGTHWISE_CONFIG names another file, or none if empty:
//
//   server: gpu-head.example.org:7070
//   token_file: ~/.config/lengthwise/ada.token
//   tls_ca: house-ca.pem        # relative to the file's directory
//   runs_dir: /scratch/ada/runs # of `lengthwise run`
//
// The file's credentials belong to the file's `server`. If the command line or the environment
// names another server, they are ignored, so that the file's token is never sent to it.
#ifndef LENGTHWISE_RPC_SETTINGS_H_
#define LENGTHWISE_RPC_SETTINGS_H_

#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

struct SettingKind {
  // Key in the file; the option, if it has one, is "--{name}".
  const char* name;
  const char* variable;
  // Placeholder of the value in help texts.
  const char* type;
  const char* help;
  // Value if the setting is set nowhere.
  const char* fallback;
  // Says how to reach the server. Other settings are no options of every program.
  bool is_access = true;
};

inline constexpr std::array<SettingKind, 7> kSettings = {{
    {"server", "LENGTHWISE_SERVER", "HOST:PORT",
     "Server address, or a comma-separated list if the server moves after a failover",
     "127.0.0.1:7070"},
    {"token_file", "LENGTHWISE_TOKEN_FILE", "PATH",
     "File with the token for the server, readable by its owner only", ""},
    {"tls_ca", "LENGTHWISE_TLS_CA", "PATH",
     "PEM file of the authority that signed the server's certificate, or \"system\" for those of "
     "the operating system; enables encryption",
     ""},
    {"tls_certificate", "LENGTHWISE_TLS_CERTIFICATE", "PATH",
     "PEM file of the client certificate, if the server requires one", ""},
    {"tls_key", "LENGTHWISE_TLS_KEY", "PATH", "PEM file of the certificate's private key", ""},
    {"tls_server_name", "LENGTHWISE_TLS_SERVER_NAME", "NAME",
     "Name that the server's certificate must have, if it differs from the address", ""},
    {"runs_dir", "LENGTHWISE_RUNS_DIR", "PATH",
     "Directory of `lengthwise run`, which commands that read use if no server is configured", "",
     /*is_access=*/false},
}};

struct Setting {
  // Empty: not set.
  std::string value;
  // Origin of the value: "--server", "$LENGTHWISE_SERVER", the file's path or "default". For a
  // file's value that belongs to another server, the reason why it is ignored.
  std::string origin;
};

class Settings {
 public:
  // `name` is one of kSettings.
  const Setting& operator[](absl::string_view name) const;
  const std::string& Value(absl::string_view name) const { return (*this)[name].value; }

  // Path of the configuration file that was read; empty if none was.
  std::string file;
  std::map<std::string, Setting, std::less<>> all;
};

using Environment = std::function<const char*(const char*)>;

// `flags` are the given options by name. INVALID_ARGUMENT for an invalid file, with its path, the
// key and the accepted values; NOT_FOUND if $LENGTHWISE_CONFIG names a missing file.
absl::StatusOr<Settings> ResolveSettings(const std::map<std::string, std::string>& flags,
                                         const Environment& environment);

// Returns the path at which the configuration file is expected; empty for none.
std::string SettingsFile(const Environment& environment);

// Returns an environment without settings or configuration file, for a program that gets all its
// settings on its command line.
std::vector<std::pair<std::string, std::string>> EmptySettingsEnvironment();

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_SETTINGS_H_
