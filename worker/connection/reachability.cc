#include "worker/connection/reachability.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rpc/channel.h"

namespace lengthwise::worker {
namespace {

// Between repeated warnings during an outage.
constexpr absl::Duration kRepeat = absl::Minutes(1);

}  // namespace

Reachability::Reachability(std::string subject, Clock now, Write write)
    : subject_(std::move(subject)), now_(std::move(now)), write_(std::move(write)) {}

void Reachability::Failed(const absl::Status& status, bool answered) {
  platform::MutexLock lock(mutex_);
  const absl::Time now = now_();
  if (now - last_logged_ < kRepeat) return;
  last_logged_ = now;
  const bool away = !answered && (status.code() == absl::StatusCode::kUnavailable ||
                                  status.code() == absl::StatusCode::kDeadlineExceeded);
  write_(platform::LogLevel::kWarning,
         away ? absl::StrCat(subject_, " unreachable (", ShortReason(status), "); retrying")
              : absl::StrCat(subject_, " answers ",
                             status.ToString(absl::StatusToStringMode::kWithNoExtraData),
                             "; retrying"));
}

void Reachability::Succeeded() {
  platform::MutexLock lock(mutex_);
  if (last_logged_ == absl::InfinitePast()) return;
  last_logged_ = absl::InfinitePast();
  write_(platform::LogLevel::kInfo, absl::StrCat(subject_, " reached again"));
}

std::string ShortReason(const absl::Status& status) {
  std::string message = rpc::ConnectFailure(std::string(status.message()));
  if (message.empty()) return absl::StatusCodeToString(status.code());
  message[0] = absl::ascii_tolower(static_cast<unsigned char>(message[0]));
  return message;
}

}  // namespace lengthwise::worker
