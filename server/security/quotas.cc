#include "server/security/quotas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/status.h"

namespace lengthwise::server {
namespace {

// Delay that a refused stream is told. The end of another stream is not predictable.
constexpr absl::Duration kStreamRetry = absl::Seconds(2);

}  // namespace

Quotas::Quotas(const Options& options, std::function<absl::Time()> now)
    : options_(options), now_(std::move(now)) {}

absl::Status Quotas::TakeCall(const std::string& principal) {
  if (options_.calls_per_second <= 0) return absl::OkStatus();
  absl::Duration wait;
  {
    platform::MutexLock lock(mutex_);
    wait = calls_.try_emplace(principal, options_.calls_per_second, std::max(1.0, options_.burst))
               .first->second.Take(now_());
  }
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return rpc::ExhaustedFor(
      wait, absl::StrCat(principal, " makes more than ", options_.calls_per_second,
                         " calls a second; call again in ", absl::FormatDuration(wait),
                         ", or have the server's --max_calls_per_second raised"));
}

absl::StatusOr<Quotas::Stream> Quotas::OpenStream(const std::string& principal) {
  platform::MutexLock lock(mutex_);
  int64_t& open = streams_[principal];
  if (options_.streams > 0 && open >= options_.streams) {
    return rpc::ExhaustedFor(
        kStreamRetry,
        absl::StrCat(principal, " has ", open,
                     " streams open, the most that it may; end some, or have the server's "
                     "--max_streams raised"));
  }
  ++open;
  return Stream(this, [this, principal](void*) {
    platform::MutexLock locked(mutex_);
    const auto of = streams_.find(principal);
    if (--of->second == 0) streams_.erase(of);
  });
}

}  // namespace lengthwise::server
