// The server as a process: from flags to an exit code.
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

// Serves until SIGTERM or SIGINT, then ends streams with UNAVAILABLE, lets calls end for up to two
// seconds and returns. A second signal ends the process at once, unless both are SIGTERM. To be
// called before there are other threads: signals are blocked in all.
//
// Errors: what `open` returns; FAILED_PRECONDITION when an address cannot be bound, a certificate
// cannot be used, other machines reach a server that has no tokens, others than its user could
// change its tokens, or tokens that it had are missing; errors of the audit log's file but a full
// disk; the ready file's errors.
absl::Status Serve(const Flags& flags, const OpenCore& open);

// Makes the token of flags.create_admin_token. The server may be running. Run by root, it leaves
// the tokens to the owner of the data directory, whose server reads them. ALREADY_EXISTS where the
// file is there, and the errors of the token store.
absl::Status CreateAdminToken(const Flags& flags);

// Deletes all tokens in flags.core.data_dir (TokenStore::RemoveAll).
absl::Status RemoveAllTokens(const Flags& flags);

// The whole of main: parses flags, serves, and gives the exit code: 0, 1 with a line on stderr, 2
// for wrong flags.
int RunProcess(int argc, const char* const* argv, const OpenCore& open);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_PROCESS_H_
