// What a server's operator decides.
#ifndef LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_
#define LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace lengthwise::server {

struct CoreOptions {
  // Directory of the database and the artifacts; made if it is missing.
  std::string data_dir;
  // A backup's directory, which becomes the data directory before it is opened; that must then be
  // missing or empty. Empty: none.
  std::string restore_from;
  // A lease expires after this long without a heartbeat.
  absl::Duration lease_duration = absl::Seconds(30);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // Attempts that may fail temporarily before a trial is FAILED. Expired and released leases do
  // not count.
  int32_t max_failed_attempts = 3;
  // A lease is not preempted for a higher priority before it has run this long.
  absl::Duration preempt_after = absl::Minutes(1);
  // Trials of an experiment.
  int64_t max_trials = 100'000;
  // Queued and running trials of one owner; 0 for no limit.
  int64_t max_unended_trials = 1'000'000;
  // Largest artifact accepted, bytes.
  int64_t max_artifact_bytes = int64_t{8} << 30;
  // Largest file of examples accepted, bytes.
  int64_t max_data_bytes = int64_t{1} << 30;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_CORE_OPTIONS_H_
