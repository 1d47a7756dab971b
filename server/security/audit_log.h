// AuditLog: who did what and when, one JSON object per line.
//
//   {"time": "2026-11-22T18:04:05.123456Z", "principal": "ada", "role": "submitter",
//    "token_id": "0123456789ab", "peer": "10.0.0.7:41234",
//    "method": "ExperimentService/CancelExperiment", "resource": "experiments/table1-1",
//    "outcome": "OK"}
//
// Optional fields: "token_maker" (the principal that created the token), "made" (a new experiment,
// token or backup), "request_id", "dry_run", "reason" (for an outcome other than OK) and
// "suppressed". Principal, role and token_id are null for an unknown caller.
// Callers' texts are truncated, in ASCII, and stripped of anything that looks like a token's
// secret.
#ifndef LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_
#define LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/rotated_file.h"
#include "platform/token_bucket.h"
#include "proto/access_service.pb.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

struct AuditRecord {
  absl::Time time;  // set by AuditLog
  // Without a principal: unknown.
  Caller caller;
  // "10.0.0.7:41234"; of a private server, gRPC's name of the socket.
  std::string peer;
  // "lengthwise.v1.ExperimentService/CancelExperiment".
  std::string method;
  // The object of the call, and the name of what it created.
  std::string resource;
  std::string made;
  std::string request_id;
  std::string stated_reason;  // the caller's, such as that of a cancellation
  bool dry_run = false;
  absl::Status outcome;
  // Number of lines suppressed before this one. Set by AuditLog.
  int64_t suppressed = 0;
};

// The line, including its newline.
std::string FormatAuditLine(const AuditRecord& record);

// Thread-safe. A thread of its own writes, so recording never waits for the disk and never fails.
// A principal has a budget of failed calls, and all unknown callers share one: a flood of failures
// must not push earlier actions out of the log. Each line has the number of its principal's lines
// that were suppressed since the previous one.
// If the disk cannot be written, the server's log says so once; up to 10,000 lines wait, and the
// number of lines lost beyond that is recorded as a line once the disk works again.
class AuditLog {
 public:
  static constexpr double kFailuresPerSecond = 1;
  static constexpr double kFailuresAtOnce = 100;

  struct Options {
    platform::RotatedFile file;
    // Also records calls of the anonymous caller of a server without tokens.
    bool with_anonymous = false;
    // Interval between attempts after a failed write.
    absl::Duration retry = absl::Seconds(1);
  };

  explicit AuditLog(Options options);
  // Writes the waiting lines. Lines that cannot be written then are lost.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Record(AuditRecord record);

  // Numbers of lines, for the metrics.
  struct Counts {
    int64_t written = 0;
    int64_t suppressed = 0;
    int64_t lost = 0;
  };
  Counts counts() const;
  // True if the last write failed.
  bool is_failing() const;

 private:
  struct Failures {
    platform::TokenBucket bucket{kFailuresPerSecond, kFailuresAtOnce};
    int64_t suppressed = 0;
  };

  void Run();
  // Lines that could not be written return to the front of the queue.
  void WriteQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::deque<AuditRecord> queue_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // taken from the queue, being written
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);  // by principal
  int64_t lost_unsaid_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_
