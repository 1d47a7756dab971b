// Artifacts: uploads and downloads of checkpoints by the workers that hold a trial's lease,
// downloads of models by users, and uploads of files of examples.
#ifndef LENGTHWISE_SERVER_COORDINATION_ARTIFACTS_H_
#define LENGTHWISE_SERVER_COORDINATION_ARTIFACTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/leases.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "server/coordination/usage.h"
#include "server/storage/artifact_store.h"
#include "server/storage/disk_reserve.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Remembers why the server cannot store what workers send. Thread-safe.
class DiskFault {
 public:
  // Takes the result of a write.
  void Note(const absl::Status& written) {
    platform::MutexLock lock(mutex_);
    written_ = written;
  }
  // The result of the last write.
  absl::Status written() const {
    platform::MutexLock lock(mutex_);
    return written_;
  }

 private:
  mutable platform::Mutex mutex_;
  absl::Status written_ ABSL_GUARDED_BY(mutex_);
};

// One upload in progress, which becomes durable when it is finished.
using ArtifactWriter = ArtifactStore::Writer;

// A trial's newest checkpoint, or the archive of its network, verified and opened.
struct OpenedModel : StoredModel {
  std::unique_ptr<ArtifactStore::Reader> bytes;
};

// Thread-safe. Works on the caller's thread and blocks on the disk. `caller` is the principal that
// must hold the lease: PERMISSION_DENIED unless it is the trial's newest lease and the trial is
// running. UNAVAILABLE if the disk cannot be read or written.
class Artifacts {
 public:
  // All references must outlive it. `max_bytes` and `max_data_bytes` are the maximum sizes of an
  // artifact and of a file of examples. The file `uploads` keeps what each principal uploaded in
  // the last hour, so that a restart resets no limit.
  Artifacts(Storage& storage, ArtifactStore& store, const DiskReserve& reserve,
            const LeaseIds& lease_ids, Usage& usage, int64_t max_bytes, int64_t max_data_bytes,
            std::string uploads);

  absl::StatusOr<std::unique_ptr<ArtifactWriter>> Write(
      const v1::UploadArtifactRequest::Header& header, std::string caller);
  // Starts the upload of a file of examples. Lines are parsed as they arrive: INVALID_ARGUMENT for
  // the first line that is not an example. RESOURCE_EXHAUSTED if the principal announces more bytes
  // in an hour than eight files of the maximum size have: an unused file stays on the disk for an
  // hour; or if it has no disk space left for the file (Usage::CheckBytes).
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> WriteData(
      const v1::UploadDataRequest::Header& header, const std::string& principal);
  // Verifies an artifact of the trial, or a file of examples of its experiment, and opens it.
  absl::StatusOr<std::unique_ptr<ArtifactStore::Reader>> Open(
      const v1::DownloadArtifactRequest& request, absl::string_view caller);
  // UNIMPLEMENTED unless checkpoints are in an object store.
  absl::StatusOr<v1::SignTransferResponse> SignTransfer(const v1::SignTransferRequest& request,
                                                        absl::string_view caller);
  // Verifies the newest checkpoint of a trial and opens it, or with `is_network` the archive of its
  // network. NOT_FOUND if the trial does not exist or has none.
  absl::StatusOr<OpenedModel> OpenModel(absl::string_view trial, bool is_network = false);
  // Why the last checkpoint could not be written; OK if it was.
  absl::Status fault() const { return fault_.written(); }
  // Number and total bytes of the files of examples stored since the start.
  int64_t stored_files() const { return stored_files_; }
  int64_t stored_file_bytes() const { return stored_file_bytes_; }

 private:
  class CheckedWriter;
  class DataWriter;

  absl::StatusOr<TrialPath> CheckLease(absl::string_view trial, absl::string_view lease_id,
                                       int64_t token, absl::string_view caller);
  // The size of a checkpoint. INVALID_ARGUMENT below 1; RESOURCE_EXHAUSTED above the limits of the
  // server and of the store.
  absl::Status CheckSize(int64_t size_bytes) const;
  absl::Status TakeUpload(const std::string& principal, int64_t bytes);
  // As OpenModel, but opens nothing.
  absl::StatusOr<StoredModel> FindModel(absl::string_view trial_name, bool is_network);

  Storage& storage_;
  ArtifactStore& store_;
  const DiskReserve& reserve_;
  const LeaseIds& lease_ids_;
  Usage& usage_;
  const int64_t max_bytes_;
  const int64_t max_data_bytes_;
  const std::string uploads_file_;
  DiskFault fault_;
  std::atomic<int64_t> stored_files_ = 0;
  std::atomic<int64_t> stored_file_bytes_ = 0;
  platform::Mutex mutex_;
  // When each principal's uploads no longer count: an upload of all the bytes of an hour moves it
  // by an hour.
  std::map<std::string, absl::Time> uploads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_ARTIFACTS_H_
