// Records of the store. Keys are the store's own numbers; ids are shown to users.
#ifndef LENGTHWISE_SERVER_STORAGE_RECORDS_H_
#define LENGTHWISE_SERVER_STORAGE_RECORDS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "server/scheduling/trial_past.h"

namespace lengthwise::server {

// Times are stored in microseconds; this one means "not yet".
inline absl::Time NoTime() { return absl::UnixEpoch(); }

inline bool HasEnded(v1::TrialState state) { return state != v1::QUEUED && state != v1::RUNNING; }

// Checkpoints that a trial keeps while it may go on: it falls back to the second if the newest is
// damaged.
inline constexpr int64_t kKeptCheckpoints = 2;

struct ExperimentRecord {
  int64_t key = 0;
  // "<name>-<number>", assigned by the store: numbers count from 1 for each name and are never
  // reused. In a store that was restored from a backup, "<name>-<number>.<tag>" with the
  // restoration's tag, because the numbers assigned after the backup are unknown.
  std::string id;
  std::string name;
  // Unique unless empty.
  std::string request_id;
  // Hash of the request. Distinguishes a repeated request from another one with the same id.
  std::string request_fingerprint;
  std::string owner;
  int32_t priority = 0;
  // Serialized v1::ExperimentSpecification with all defaults.
  std::string specification;
  // Serialized v1::SpecificationText as the author wrote it. Empty if there was none.
  std::string source;
  absl::Time create_time = NoTime();
  absl::Time end_time = NoTime();
  v1::TrialCounts counts;
  // How long the artifacts stay after the end: 0 as long as the server's default, infinite for
  // ever. Written only.
  absl::Duration retention;
};

// The properties that trials with one pack key share.
struct PackRecord {
  int64_t key = 0;
  int64_t experiment = 0;
  std::string pack_key;
  // Serialized v1::TrialSpecification without learning rate and seeds. Where it is written, also
  // without what `shared` has.
  std::string specification;
  // Written only: key of what they share (StorageWriter::InsertShared). 0: nothing.
  int64_t shared = 0;
  // Labels, for filters.
  std::string task;
  std::string network;
  std::string encoding;
};

struct TrialRecord : TrialPast {
  int64_t key = 0;
  int64_t experiment = 0;
  std::string experiment_id;  // read-only
  int32_t index = 0;
  std::string id;
  int64_t pack = 0;
  double learning_rate = 0;
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
  v1::TrialState state = v1::QUEUED;
  std::string reason;
  std::string worker;
  // Fencing token of the newest lease. 0 before the first.
  int64_t token = 0;
  int64_t checkpoint_step = 0;
  absl::Time create_time = NoTime();  // the experiment's; read-only
  // Time of the last queueing: by submission, extension, retry, or loss of the worker.
  absl::Time queue_time = NoTime();
  absl::Time start_time = NoTime();
  absl::Time end_time = NoTime();
  // Serialized v1::Outcome, if the trial succeeded.
  std::string outcome;
};

// Decides, together with its record, when and where a trial runs.
struct TrialPlacement {
  int32_t priority = 0;
  std::string owner;
  std::string pack_key;
  // Size of PackRecord::specification as it is read.
  int64_t pack_bytes = 0;
};

// Empty fields match everything.
struct TrialFilter {
  v1::TrialState state = v1::TRIAL_STATE_UNSPECIFIED;
  std::string task;
  std::string network;
  std::string encoding;
};

struct EventRecord {
  int64_t position = 0;  // assigned by the store
  int64_t experiment = 0;
  int64_t trial = 0;
  int32_t attempt = 0;
  // 0 for events of the server.
  int64_t sequence = 0;
  int64_t step = 0;
  // Field number of the fact in v1::Event's oneof.
  int kind = 0;
  // Serialized v1::Event without the fields above and without the trial's name.
  std::string payload;
};

// A request that created an experiment.
struct KnownRequest {
  std::string experiment_id;
  std::string fingerprint;
  bool is_deleted = false;  // the experiment was deleted
};

// The key of lease ids (LeaseIds of server/coordination/leases.h). Generated once, when the store
// is created or upgraded.
struct LeaseKey {
  // Random. As secret as the store.
  std::string key;
  // Leases with smaller tokens were granted by an older release, whose ids do not use the key.
  int64_t first_token = 1;
};

// Artifacts that may no longer be needed. The transaction after which they are not inserts the
// record; the sweeper looks at the store again before it deletes (Sweep of
// server/coordination/retention.h).
struct SweepRecord {
  int64_t key = 0;  // assigned by the store
  // Ids, and a SHA-256. Without a trial: all artifacts of the experiment, unless it exists. Without
  // a SHA-256: what the trial does not keep once it has ended.
  std::string experiment;
  std::string trial;
  std::string sha256;
  int32_t attempt = 0;  // that replaced the artifact `sha256`
};

// New leases are held back.
struct HoldRecord {
  std::string worker;  // empty: of all workers
  std::string why;     // "drained by ada: new disks"
};

struct LeaseRecord {
  int64_t token = 0;
  std::string worker;
  absl::Time grant_time = NoTime();
  // Number of trials when granted. 0 if an older release did not record it.
  int32_t size = 0;
  // Owner of the trials when granted. Empty if an older release did not record it. Written only.
  std::string owner;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_RECORDS_H_
