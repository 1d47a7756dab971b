// How a program reaches its server: from its command line, its environment and the configuration
// file, in this order of precedence.
//
// The file is ~/.config/lengthwise/config.yaml ($XDG_CONFIG_HOME/lengthwise/config.yaml; another
// one where $LENGTHWISE_CONFIG names it; none where that is empty):
//
//   server: gpu-head.example.org:7070
//   token_file: ~/.config/lengthwise/ada.token
//   tls_ca: house-ca.pem        # relative to the file's directory
//
// What the file says beside `server` is for that server: where the command line or the environment
// name another one, the file's token is not shown to it.
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
  // In the file; the option is "--{name}".
  const char* name;
  const char* variable;
  // Of the value, in help texts.
  const char* type;
  const char* help;
  // Of what is nowhere set.
  const char* fallback;
};

inline constexpr std::array<SettingKind, 6> kSettings = {{
    {"server", "LENGTHWISE_SERVER", "HOST:PORT",
     "Server address; several, with commas between, if the server moves after a failover",
     "127.0.0.1:7070"},
    {"token_file", "LENGTHWISE_TOKEN_FILE", "PATH",
     "File with the token to show, readable by its owner alone", ""},
    {"tls_ca", "LENGTHWISE_TLS_CA", "PATH",
     "PEM file of the authority that signed the server's certificate, or \"system\" for those of "
     "the operating system; the connection is encrypted",
     ""},
    {"tls_certificate", "LENGTHWISE_TLS_CERTIFICATE", "PATH",
     "PEM file of the certificate to show, where the server asks for one", ""},
    {"tls_key", "LENGTHWISE_TLS_KEY", "PATH", "PEM file of the certificate's private key", ""},
    {"tls_server_name", "LENGTHWISE_TLS_SERVER_NAME", "NAME",
     "Name that the server's certificate must have, where it is reached under another one", ""},
}};

struct Setting {
  // Empty: not set.
  std::string value;
  // "--server", "$LENGTHWISE_SERVER", the file's path, "default"; for what the file has for another
  // server, why it is not used.
  std::string origin;
};

class Settings {
 public:
  // `name` is one of kSettings.
  const Setting& operator[](absl::string_view name) const;
  const std::string& Value(absl::string_view name) const { return (*this)[name].value; }

  // The configuration file that was read; empty: none.
  std::string file;
  std::map<std::string, Setting, std::less<>> all;
};

using Environment = std::function<const char*(const char*)>;

// `flags` are the options that were given, by name. INVALID_ARGUMENT for a file that cannot be
// understood: its path, the key, and what is accepted; NOT_FOUND for one that $LENGTHWISE_CONFIG
// names and that is not there.
absl::StatusOr<Settings> ResolveSettings(const std::map<std::string, std::string>& flags,
                                         const Environment& environment);

// Where the configuration file is looked for; empty: nowhere.
std::string SettingsFile(const Environment& environment);

// An environment in which nothing is set, whatever the user has configured: for a program that is
// told everything on its command line.
std::vector<std::pair<std::string, std::string>> EmptySettingsEnvironment();

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_SETTINGS_H_
