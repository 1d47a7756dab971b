// DirectoryArtifactStore: artifacts as files in a directory. Checkpoints may have a directory of
// their own, on a shared file system.
//
//   <directory>/<experiment>/<trial>/<sha256>.safetensors   a checkpoint
//   <directory>/<experiment>/data/<sha256>.jsonl            a file of examples
//   <directory>/uploads/data/<sha256>.jsonl                 the same file as it was uploaded: a
//                                                           hard link if possible
#ifndef LENGTHWISE_SERVER_STORAGE_DIRECTORY_ARTIFACT_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_DIRECTORY_ARTIFACT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/storage/artifact_store.h"
#include "server/storage/shared_store.h"

namespace lengthwise::server {

// Thread-safe. While a shared store is not mounted, every call that needs it returns UNAVAILABLE.
class DirectoryArtifactStore : public ArtifactStore {
 public:
  // Creates the directory, and deletes files of interrupted writers. With `shared`, checkpoints are
  // in that store and only files of examples are in `directory`. The only files deleted are those
  // with names that this class makes, and symbolic links are not followed.
  static absl::StatusOr<std::unique_ptr<DirectoryArtifactStore>> Open(
      const std::string& directory, std::unique_ptr<SharedStore> shared = nullptr);

  std::string elsewhere() const override { return shared_ == nullptr ? "" : shared_->directory(); }
  absl::StatusOr<std::unique_ptr<Writer>> Write(const ArtifactId& id, int64_t size_bytes) override;
  // A file that was checked or written is not read again while its size and modification time stay.
  absl::Status Verify(const ArtifactId& id, int64_t size_bytes = 0) override;
  absl::Status VerifyQuickly(const ArtifactId& id, int64_t size_bytes, int64_t most_bytes) override;
  // A hard link if the file system can, otherwise a copy.
  absl::Status Copy(const ArtifactId& from, const std::string& experiment,
                    const std::string& trial) override;
  // Deleting the artifact does not affect an open reader.
  absl::StatusOr<std::unique_ptr<Reader>> Open(const ArtifactId& id) const override;
  absl::StatusOr<std::vector<std::string>> ListExperiments() const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& experiment,
                                                const std::string& trial) const override;
  absl::StatusOr<ArtifactUsage> Usage(const std::string& experiment = "") const override;
  absl::Status Delete(const ArtifactId& id, const Decision& goes) override;
  absl::Status DeleteExperiment(const std::string& experiment, const Decision& goes) override;
  bool DeleteUnusedUploads(absl::Duration age = absl::Hours(1)) override;

 private:
  struct Verified {
    int64_t size = 0;
    absl::Time modified;
    bool damaged = false;
  };

  DirectoryArtifactStore(std::string directory, std::unique_ptr<SharedStore> shared)
      : directory_(std::move(directory)), shared_(std::move(shared)) {}
  // Directory of the artifacts of such a trial, and of all checkpoints.
  const std::string& RootOf(absl::string_view trial) const {
    return IsElsewhere(trial) ? shared_->directory() : directory_;
  }
  const std::string& CheckpointsRoot() const { return RootOf(""); }
  // UNAVAILABLE if the trial's artifacts are in a shared store that is not mounted.
  absl::Status CheckMounted(absl::string_view trial) const {
    return IsElsewhere(trial) ? shared_->Check() : absl::OkStatus();
  }
  // Returns `status`, or UNAVAILABLE if it says that an artifact is lost and the store is not
  // mounted.
  absl::Status UnlessUnmounted(absl::string_view trial, const absl::Status& status) const;
  absl::StatusOr<std::string> PathOf(const ArtifactId& id) const;
  // Creates the trial's directory, durably. Syncs nothing that this object has created before.
  absl::Status MakeDirectory(const ArtifactId& id);
  absl::Status Remember(const std::string& path, bool damaged = false);
  // Forgets what was verified below a directory, and that it is durable.
  void ForgetBelow(const std::string& directory);
  // Deletes an artifact, and its manifest if it has one.
  absl::Status DeleteFiles(const std::string& path);
  // Deletes the trial's directory. In a shared store, other files in it stay.
  absl::Status DeleteTrial(const std::string& directory);

  friend class ArtifactFileWriter;

  const std::string directory_;
  const std::unique_ptr<SharedStore> shared_;  // null: checkpoints are in directory_
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
  // Directories of experiments and trials that are durable.
  absl::flat_hash_set<std::string> durable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_DIRECTORY_ARTIFACT_STORE_H_
