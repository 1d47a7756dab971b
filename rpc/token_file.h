// Reads and writes a token in a file that only its owner can read. Programs take tokens only this
// way: every user of the machine can read option values in the process list.
#ifndef LENGTHWISE_RPC_TOKEN_FILE_H_
#define LENGTHWISE_RPC_TOKEN_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"

namespace lengthwise::rpc {

// Creates the file with mode 0600 and writes the token and a newline. ALREADY_EXISTS if the file
// exists, so that no token is overwritten by accident.
absl::Status WriteTokenFile(const std::string& path, absl::string_view token_text);

// Returns the token in a file, without surrounding white space. Errors name the file and the
// remedy: NOT_FOUND; FAILED_PRECONDITION if group or others can read it; INVALID_ARGUMENT if it
// holds no token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// A token file that is reloaded when it changes: a token is renewed by replacing the file while the
// program runs. Thread-safe.
class TokenFile {
 public:
  // Reads the file. Errors are those of ReadTokenFile.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);

  // Returns the file's current token, or the last readable one if the file cannot be read now.
  std::string token();

 private:
  // Identifies the version of the file: differs for another file or other content.
  struct Version {
    ino_t inode = 0;
    int64_t modified_ns = 0;
    int64_t size = 0;
    bool operator==(const Version&) const = default;
  };

  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  static Version VersionOf(const std::string& path);

  const std::string path_;
  platform::Mutex mutex_;
  Version version_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TOKEN_FILE_H_
