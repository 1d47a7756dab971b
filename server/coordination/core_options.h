// Settings of a server that its operator chooses.
#ifndef LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_
#define LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/storage/s3_options.h"

namespace lengthwise::server {

struct CoreOptions {
  // Directory of the database and the artifacts. Created if missing.
  std::string data_dir;
  // Place of the checkpoints: a directory on a shared file system (server/storage/shared_store.h)
  // or "s3://bucket/prefix" (server/storage/s3_artifact_store.h). Empty: "artifacts" in data_dir.
  std::string artifacts;
  S3Options s3;
  // Makes `artifacts` this data directory's, although its mark says otherwise.
  bool take_over_artifacts = false;
  // Directory of a backup to restore into data_dir before opening it; data_dir must be missing or
  // empty. Empty: no restore.
  std::string restore_from;
  // A lease expires after this long without a heartbeat.
  absl::Duration lease_duration = absl::Seconds(30);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // A trial becomes FAILED after this many attempts that failed temporarily. Expired and released
  // leases do not count.
  int32_t max_failed_attempts = 3;
  // Minimum run time of a lease before a higher priority may preempt it.
  absl::Duration preempt_after = absl::Minutes(1);
  // Maximum number of trials in one experiment.
  int64_t max_trials = 100'000;
  // Maximum number of queued and running trials of one owner. 0: no limit.
  int64_t max_unended_trials = 1'000'000;
  // Maximum size of an artifact in bytes.
  int64_t max_artifact_bytes = int64_t{8} << 30;
  // Maximum size of a file of examples in bytes.
  int64_t max_data_bytes = int64_t{1} << 30;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_
