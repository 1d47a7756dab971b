// The server's process: from flags to an exit code.
#ifndef LENGTHWISE_SERVER_PROCESS_H_
#define LENGTHWISE_SERVER_PROCESS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/coordination/core.h"
#include "server/flags.h"

namespace lengthwise::server {

using OpenCore = std::function<absl::StatusOr<std::unique_ptr<Core>>(const CoreOptions&)>;

// Serves until SIGTERM or SIGINT, then ends streams with UNAVAILABLE, gives calls up to two
// seconds to end and returns. A second signal of either kind kills the process at once, which loses
// nothing that was acknowledged. Call it before there are other threads: signals are blocked in
// all.
//
// Errors: those of `open`; FAILED_PRECONDITION if an address cannot be bound, a certificate cannot
// be used, other machines can reach a server without tokens, another user could change its tokens,
// or its tokens are missing; errors of the audit log's file, except a full disk; errors of the
// ready file.
absl::Status Serve(const Flags& flags, const OpenCore& open);

// Creates the token of flags.create_admin_token. The server may be running. Run as root, it leaves
// the tokens owned by the owner of the data directory, so that the server can read them.
// ALREADY_EXISTS if the file exists; errors of the token store.
absl::Status CreateAdminToken(const Flags& flags);

// Deletes all tokens in flags.core.data_dir (TokenStore::RemoveAll).
absl::Status RemoveAllTokens(const Flags& flags);

// The body of main: parses flags, serves, and returns the exit code: 0; 1 after an error, which is
// one line on stderr; 2 for wrong flags.
int RunProcess(int argc, const char* const* argv, const OpenCore& open);

// Consecutive failures of a self-check before it gives up. A single one may be a paused machine.
inline constexpr int kSelfCheckFailures = 3;

// The work of a thread that regularly checks that the server can be reached, and gives up when it
// cannot. `check` must return within a bounded time. `give_up` is called once, with the last
// failure.
std::function<bool()> SelfCheck(std::function<absl::Status()> check,
                                std::function<void(const absl::Status&)> give_up);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_PROCESS_H_
