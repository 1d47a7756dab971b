#include "server/security/audit_log.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "platform/log.h"
#include "proto/role_name.h"
#include "rpc/token.h"

namespace lengthwise::server {
namespace {

constexpr size_t kMaxWaiting = 10'000;
constexpr size_t kMaxTextBytes = 300;
// A run of fewer digits is not a token's secret.
constexpr size_t kSecretDigits = 48;

absl::string_view WordAt(absl::string_view text) {
  return text.substr(0, text.find_first_of(" \t\r\n\"'`<>(),;:"));
}

// A caller's text, truncated and without secrets. A pasted token keeps its id, which is not secret.
std::string Harmless(absl::string_view text) {
  std::string result;
  for (size_t begin = 0; begin < text.size() && result.size() <= kMaxTextBytes;) {
    const absl::string_view word = WordAt(text.substr(begin, rpc::kMaxTokenBytes));
    if (rpc::IsWebToken(word)) {
      absl::StrAppend(&result, "[JWT]");
      begin += word.size();
      continue;
    }
    size_t end = begin;
    while (end < text.size() && absl::ascii_isxdigit(text[end])) ++end;
    if (end - begin >= kSecretDigits) {
      absl::StrAppend(&result, "[", end - begin, " hexadecimal digits]");
      begin = end;
    } else {
      end = std::max(end, begin + 1);
      absl::StrAppend(&result, text.substr(begin, end - begin));
      begin = end;
    }
  }
  if (result.size() > kMaxTextBytes) {
    result.resize(kMaxTextBytes);
    result += "...";
  }
  return result;
}

}  // namespace

std::string FormatAuditLine(const AuditRecord& record) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time, absl::UTCTimeZone());
  const auto set = [&](const char* key, const std::string& text) {
    line[key] = text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const Caller& caller = record.caller;
  set("principal", caller.principal);
  set("role", caller.role == v1::ROLE_UNSPECIFIED ? "" : RoleName(caller.role));
  set("token_id", caller.token_id);
  if (!caller.token_maker.empty()) line["token_maker"] = caller.token_maker;
  line["peer"] = Harmless(record.peer);
  line["method"] = std::string(absl::StripPrefix(record.method, "lengthwise.v1."));
  if (!record.resource.empty()) line["resource"] = Harmless(record.resource);
  if (!record.made.empty()) line["made"] = Harmless(record.made);
  if (!record.request_id.empty()) line["request_id"] = Harmless(record.request_id);
  if (!record.stated_reason.empty()) line["stated_reason"] = Harmless(record.stated_reason);
  if (record.dry_run) line["dry_run"] = true;
  line["outcome"] = absl::StatusCodeToString(record.outcome.code());
  if (!record.outcome.ok()) line["reason"] = Harmless(record.outcome.message());
  if (record.suppressed > 0) line["suppressed"] = record.suppressed;
  // ASCII only; invalid UTF-8 becomes U+FFFD.
  return absl::StrCat(line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "\n");
}

AuditLog::AuditLog(Options options) : options_(std::move(options)), thread_([this] { Run(); }) {}

AuditLog::~AuditLog() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void AuditLog::Record(AuditRecord record) {
  const bool is_anonymous = !record.caller.principal.empty() && record.caller.token_id.empty();
  if (is_anonymous && !options_.with_anonymous) return;
  platform::MutexLock lock(mutex_);
  record.time = absl::Now();
  if (!record.outcome.ok()) {
    Failures& failures = failures_[record.caller.principal];
    if (failures.bucket.Take(record.time) > absl::ZeroDuration()) {
      ++failures.suppressed;
      return;
    }
    record.suppressed = std::exchange(failures.suppressed, 0);
  }
  counts_.suppressed += record.suppressed;
  if (queue_.size() + in_flight_ >= kMaxWaiting) {
    ++counts_.lost;
    ++lost_unsaid_;
    return;
  }
  queue_.push_back(std::move(record));
  changed_.NotifyAll();
}

AuditLog::Counts AuditLog::counts() const {
  platform::MutexLock lock(mutex_);
  return counts_;
}

bool AuditLog::is_failing() const {
  platform::MutexLock lock(mutex_);
  return failing_;
}

void AuditLog::Run() {
  platform::MutexLock lock(mutex_);
  while (true) {
    while (queue_.empty() && !stopping_) changed_.Wait(mutex_);
    if (!queue_.empty()) WriteQueue();
    if (stopping_ && (queue_.empty() || failing_)) break;
    const auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.retry);
    while (failing_ && !stopping_ && changed_.WaitUntil(mutex_, next)) {
    }
  }
  if (queue_.empty()) return;
  counts_.lost += static_cast<int64_t>(queue_.size());
  platform::LogError("lost ", queue_.size(), " lines of the audit log that could not be written");
}

void AuditLog::WriteQueue() {
  std::deque<AuditRecord> batch = std::exchange(queue_, {});
  in_flight_ = batch.size();
  const int64_t lost = std::exchange(lost_unsaid_, 0);
  // Without the lock: Record must not wait for the disk.
  mutex_.Unlock();
  std::string lines;
  if (lost > 0) {
    lines = FormatAuditLine({.time = batch.front().time,
                             .method = "AuditLog",
                             .outcome = absl::DataLossError(absl::StrCat(
                                 lost, " lines were lost: the disk could not be written"))});
  }
  for (const AuditRecord& record : batch) lines += FormatAuditLine(record);
  const absl::Status status = platform::AppendLines(options_.file, lines);
  mutex_.Lock();
  in_flight_ = 0;
  if (status.ok()) {
    counts_.written += static_cast<int64_t>(batch.size());
    if (std::exchange(failing_, false)) {
      // Lines may have been lost since this batch was taken. The next batch records them in the
      // file.
      platform::LogInfo("the audit log is written again; lines lost: ", lost + lost_unsaid_);
    }
    return;
  }
  if (!std::exchange(failing_, true)) {
    platform::LogError("the audit log cannot be written; the service continues: ",
                       status.message());
  }
  lost_unsaid_ += lost;
  queue_.insert(queue_.begin(), std::make_move_iterator(batch.begin()),
                std::make_move_iterator(batch.end()));
}

}  // namespace lengthwise::server
