// How many trials an owner may have that have not ended.
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/coordination/engine.h"
#include "server/services/status.h"

namespace lengthwise::server {
namespace {

// Trials end when they end: it is not worth while to wait for some with a call open.
constexpr absl::Duration kTryAgain = absl::Minutes(5);

}  // namespace

absl::Status Engine::CheckQuota(const std::string& owner, int64_t added) {
  const int64_t limit = options_.max_unended_trials;
  // No owner has more than there are of all, which is known without asking the store.
  if (limit <= 0 || scheduler_->queued() + scheduler_->running() + added <= limit) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t unended, writer_.CountUnendedTrials(owner));
  if (unended + added <= limit) return absl::OkStatus();
  return ExhaustedFor(
      kTryAgain,
      absl::StrCat(
          owner, " has ", unended,
          unended == 1 ? " trial that has not ended, and " : " trials that have not ended, and ",
          added, " more would pass the limit of ", limit,
          "; submit fewer, wait, cancel some, or have the server's --max_unended_trials "
          "raised"));
}

}  // namespace lengthwise::server
