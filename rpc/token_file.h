// A token in a file that only its owner may read: how programs are given one. A token is never an
// option's value, which every user of the machine can read in the list of processes.
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

// Makes the file with mode 0600 and writes the token and a newline to it. ALREADY_EXISTS where
// there is one: a token is not overwritten by accident.
absl::Status WriteTokenFile(const std::string& path, absl::string_view token_text);

// The token in a file, without white space around it. Errors name the file and what to do:
// NOT_FOUND; FAILED_PRECONDITION where group or others may read it; INVALID_ARGUMENT where it holds
// no token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// A token file that may be replaced while the program runs, which is how a token is renewed.
// Thread-safe.
class TokenFile {
 public:
  // Reads the file; its errors are those of ReadTokenFile.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);

  // What the file holds now; what it held last where it cannot be read now.
  std::string token();

 private:
  // Another file at the same path, or another content, has another one of these.
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
