// The audit log: who did what when, one JSON object a line.
//
//   {"time": "2026-11-22T18:04:05.123456Z", "principal": "ada", "role": "submitter",
//    "token_id": "0123456789ab", "peer": "10.0.0.7:41234",
//    "method": "ExperimentService/CancelExperiment", "resource": "experiments/table1-1",
//    "outcome": "OK"}
//
// Where they apply, also "made" (a new experiment, token or backup), "request_id", "dry_run",
// "reason" (of an outcome other than OK) and "suppressed" (audit_trail.h). Principal, role and
// token_id are null for a caller who is not known. Texts of callers are bounded, in ASCII, and
// without what looks like a token's secret.
#ifndef LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_
#define LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/rotated_file.h"
#include "proto/access_service.pb.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

struct AuditRecord {
  absl::Time time;
  // Without a principal: not known.
  Caller caller;
  // As gRPC writes it: "ipv4:10.0.0.7:41234".
  std::string peer;
  // "lengthwise.v1.ExperimentService/CancelExperiment".
  std::string method;
  // What the call is about, and the name of what it has made.
  std::string resource;
  std::string made;
  std::string request_id;
  bool dry_run = false;
  absl::Status outcome;
  // Lines that were left out before this one.
  int64_t suppressed = 0;
};

// The line, with its newline.
std::string FormatAuditLine(const AuditRecord& record);

// Thread-safe. A thread of its own writes: recording never waits for the disk, and never fails. A
// disk that cannot be written is said in the server's log once; up to 10,000 lines wait for it, and
// how many were lost beyond that is a line of its own when it can be written again.
class AuditLog {
 public:
  struct Options {
    platform::RotatedFile file;
    // Records calls of a server without tokens, too.
    bool with_anonymous = false;
    // How long a write that failed is not repeated.
    absl::Duration retry = absl::Seconds(1);
  };

  explicit AuditLog(Options options);
  // Writes what waits; what cannot be written then is lost.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Record(AuditRecord record);
  bool with_anonymous() const { return options_.with_anonymous; }

  // Of lines; for the metrics.
  struct Counts {
    int64_t written = 0;
    int64_t suppressed = 0;
    int64_t lost = 0;
  };
  Counts counts() const;
  // Whether the disk refused the last write.
  bool is_failing() const;

 private:
  void Run();
  // What was not written is at the front of the queue again.
  void WriteQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::deque<AuditRecord> queue_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // taken from the queue to be written
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  int64_t lost_unsaid_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUDIT_LOG_H_
