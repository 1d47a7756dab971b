#include "worker/connection/reachability.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rpc/channel.h"

namespace lengthwise::worker {
namespace {

Reachability::Options WithDefaults(Reachability::Options options) {
  if (!options.now) options.now = [] { return absl::Now(); };
  if (!options.log) {
    options.log = [](platform::LogLevel level, const std::string& text) {
      platform::Log(level, text);
    };
  }
  return options;
}

}  // namespace

Reachability::Reachability(Options options) : options_(WithDefaults(std::move(options))) {}

void Reachability::Failed(const absl::Status& status, bool answered) {
  platform::MutexLock lock(mutex_);
  const absl::Time now = options_.now();
  if (now - last_logged_ < options_.repeat) return;
  last_logged_ = now;
  const bool away = !answered && (status.code() == absl::StatusCode::kUnavailable ||
                                  status.code() == absl::StatusCode::kDeadlineExceeded);
  options_.log(
      platform::LogLevel::kWarning,
      away ? absl::StrCat(options_.subject, " unreachable (", ShortReason(status), "); retrying")
           : absl::StrCat(options_.subject, " answers ", status.ToString(), "; retrying"));
}

void Reachability::Succeeded() {
  platform::MutexLock lock(mutex_);
  if (last_logged_ == absl::InfinitePast()) return;
  last_logged_ = absl::InfinitePast();
  options_.log(platform::LogLevel::kInfo, absl::StrCat(options_.subject, " reached again"));
}

std::string ShortReason(const absl::Status& status) {
  std::string message = rpc::ConnectFailure(std::string(status.message()));
  if (message.empty()) return absl::StatusCodeToString(status.code());
  message[0] = absl::ascii_tolower(static_cast<unsigned char>(message[0]));
  return message;
}

}  // namespace lengthwise::worker
