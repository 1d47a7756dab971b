// Tokens of the API: their text, and the files that hold them. Programs take tokens only from files
// that their owner alone can read: every user of the machine can read option values in the process
// list.
#ifndef LENGTHWISE_RPC_TOKEN_H_
#define LENGTHWISE_RPC_TOKEN_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/files.h"
#include "platform/mutex.h"

namespace lengthwise::rpc {

inline constexpr size_t kTokenIdDigits = 12;
inline constexpr size_t kTokenSecretDigits = 64;
// Maximum size of a token file, and of a JWT.
inline constexpr size_t kMaxTokenBytes = 8 << 10;
// Metadata that carries a token: "authorization: Bearer lw_...".
inline constexpr char kAuthorizationKey[] = "authorization";
inline constexpr char kBearerPrefix[] = "Bearer ";

// The text is "lw_{token_id}_{secret}", 12 and 64 lower-case hexadecimal digits. The id is public
// and names the token in lists and errors; the secret has 256 random bits.
struct TokenText {
  std::string token_id;
  std::string secret;

  bool operator==(const TokenText&) const = default;
};

std::string FormatTokenText(const TokenText& token);

// Parses the text of a token. INVALID_ARGUMENT for anything else, including surrounding white
// space. The message never repeats the input, which may be a secret.
absl::StatusOr<TokenText> ParseTokenText(absl::string_view text);

// Returns true if the text has the form of a JWT (RFC 7519), which identity providers make and some
// servers accept.
bool IsWebToken(absl::string_view text);

// Returns true if the text has the form of a token's id.
bool IsTokenId(absl::string_view text);

// Creates the file with mode 0600 and writes the token and a newline. ALREADY_EXISTS if the file
// exists, so that no token is overwritten by accident.
absl::Status WriteTokenFile(const std::string& path, absl::string_view token_text);

// Returns the token or JWT in a file, without surrounding white space. Errors name the file and the
// remedy: NOT_FOUND; FAILED_PRECONDITION if group or others can read it; INVALID_ARGUMENT if it
// holds no token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// A token file that is reloaded when it changes: a token is renewed by replacing the file while the
// program runs. Thread-safe.
class TokenFile {
 public:
  // Reads the file. Errors are those of ReadTokenFile. `warn`, which may be empty, takes the error
  // of each later version of the file that cannot be used.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(
      const std::string& path, std::function<void(const std::string&)> warn = {});

  // Returns the file's current token, or the last readable one if the file cannot be read now.
  std::string token();

 private:
  TokenFile(std::string path, std::function<void(const std::string&)> warn)
      : path_(std::move(path)), warn_(std::move(warn)) {}
  // Differs for another file or other content.
  platform::FileStatus CurrentVersion() const;

  const std::string path_;
  const std::function<void(const std::string&)> warn_;
  platform::Mutex mutex_;
  platform::FileStatus version_ ABSL_GUARDED_BY(mutex_);  // of token_
  // The newest version that could not be used, or version_.
  platform::FileStatus reported_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TOKEN_H_
