#include "worker/connection/startup.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::worker {
namespace {

constexpr size_t kMaxLength = 60;

bool IsAllowed(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

std::string Sanitized(absl::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = absl::ascii_tolower(static_cast<unsigned char>(c));
    if (!IsAllowed(c)) c = '-';
  }
  return result;
}

}  // namespace

absl::Status ValidateWorkerId(absl::string_view id) {
  if (!id.empty() && id.size() <= kMaxLength && std::all_of(id.begin(), id.end(), IsAllowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("worker id \"", std::string(id),
                                                 "\": must have 1 to ", kMaxLength,
                                                 " of the characters a-z, 0-9 and -"));
}

std::string MakeWorkerId(absl::string_view host, absl::string_view device, pid_t process) {
  std::string device_name = Sanitized(device.substr(0, 20));
  std::erase(device_name, '-');  // "cuda:0" is "cuda0"
  const std::string tail = absl::StrCat("-", device_name, "-", process);
  // The host's first label is enough to recognize it.
  std::string name = Sanitized(host.substr(0, host.find('.')));
  if (name.empty()) name = "worker";
  name.resize(std::min(name.size(), kMaxLength - tail.size()));
  return name + tail;
}

absl::Duration Lifetime(const std::string& flag, const char* slurm_job_end, absl::Time now) {
  absl::Duration lifetime;
  if (!flag.empty() && absl::ParseDuration(flag, &lifetime)) return lifetime;
  int64_t end = 0;
  if (slurm_job_end == nullptr || !absl::SimpleAtoi(slurm_job_end, &end) || end <= 0) {
    return absl::InfiniteDuration();
  }
  return std::max(absl::FromUnixSeconds(end) - now, absl::ZeroDuration());
}

absl::Duration DrainReserve(absl::Duration lifetime, absl::Duration drain_timeout) {
  if (lifetime == absl::InfiniteDuration()) return absl::ZeroDuration();
  return std::min(drain_timeout, lifetime / 10);
}

}  // namespace lengthwise::worker
