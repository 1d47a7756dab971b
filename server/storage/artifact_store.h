// ArtifactStore: the bytes of checkpoints and of files of examples, in a directory. Checkpoints may
// have a directory of their own, on a shared file system.
//
//   <directory>/<experiment>/<trial>/<sha256>.safetensors   a checkpoint
//   <directory>/<experiment>/<trial>/<sha256>.json          its manifest, {"trial", "step",
//                                                           "size_bytes", "sha256"}
//   <directory>/<experiment>/data/<sha256>.jsonl            a file of examples
//   <directory>/uploads/data/<sha256>.jsonl                 the same file as it was uploaded: a
//                                                           hard link if possible
//
// Files appear whole and durable or not at all. Directories are named by ids
// (server/resource_id.h); an id longer than a file name may be becomes its beginning and its hash.
// Anything else is refused, so that no name leads out of the directory.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/descriptors.h"
#include "platform/mutex.h"
#include "server/storage/artifact_usage.h"
#include "server/storage/shared_store.h"

namespace lengthwise::server {

struct ArtifactId {
  std::string experiment;  // ids, not names
  std::string trial;
  std::string sha256;
};

// Stands in place of a trial for an experiment's files of examples. No trial has this id.
inline constexpr absl::string_view kDataFiles = "data";
// Stands in place of an experiment for uploads. No experiment has this id: experiment ids end in a
// number.
inline constexpr absl::string_view kUploads = "uploads";

// Suffix of an artifact's file name.
absl::string_view SuffixOf(absl::string_view trial);

// True if the error means that an artifact is permanently gone or damaged. Other errors
// (permissions, descriptors, a failing disk) mean that it cannot be read now, and say nothing about
// its contents.
bool IsLost(const absl::Status& status);

// Thread-safe. Errors are those of platform/files.h, in addition to those named. While a shared
// store is not mounted, every call that needs it returns UNAVAILABLE: nothing counts as missing or
// deleted.
class ArtifactStore {
 public:
  // One artifact being written. Destroyed without Finish, it leaves no file.
  class Writer {
   public:
    virtual ~Writer() = default;
    // DATA_LOSS if there are more bytes than announced.
    virtual absl::Status Append(absl::string_view data) = 0;
    // DATA_LOSS if size or checksum differ from those announced.
    virtual absl::Status Finish() = 0;
  };

  // Reads the bytes of one artifact. Deleting the artifact does not affect an open reader.
  class Reader {
   public:
    // Reads an open file. `path` is for errors.
    explicit Reader(platform::Descriptor file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {}
    // Returns the next bytes, at most 1 MiB; empty at the end.
    absl::StatusOr<std::string> Next();

   private:
    const platform::Descriptor file_;
    const std::string path_;
  };

  // Creates the directory, and deletes files of interrupted writers. With `shared`, checkpoints are
  // in that store and only files of examples are in `directory`. In a shared store, the only files
  // deleted are those with names that this class makes, and symbolic links are not followed.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(
      const std::string& directory, std::unique_ptr<SharedStore> shared = nullptr);

  // Path of an artifact below the directory of a store. INVALID_ARGUMENT for ids that cannot be
  // names.
  static absl::StatusOr<std::string> PathIn(const std::string& root, const ArtifactId& id);

  // INVALID_ARGUMENT for ids that cannot be names.
  absl::StatusOr<std::unique_ptr<Writer>> Write(const ArtifactId& id, int64_t size_bytes,
                                                int64_t step);

  // Checks that an artifact exists and is whole and undamaged. A file that this object has checked
  // or written is not read again while its size and modification time stay. `size_bytes` 0: any
  // size. NOT_FOUND; DATA_LOSS.
  absl::Status Verify(const ArtifactId& id, int64_t size_bytes = 0);

  // As Verify, for callers that cannot wait: does not read a file of more than `most_bytes` that
  // was not checked before. Such a file counts as undamaged until Verify was called for it.
  absl::Status VerifyQuickly(const ArtifactId& id, int64_t size_bytes, int64_t most_bytes);

  // Gives another trial the artifact, durably: a hard link if the file system can, otherwise a
  // copy. Deleting either keeps the other. NOT_FOUND; DATA_LOSS.
  absl::Status Copy(const ArtifactId& from, const std::string& experiment, const std::string& trial,
                    int64_t step);

  // NOT_FOUND.
  absl::StatusOr<std::unique_ptr<Reader>> Open(const ArtifactId& id) const;

  // Ids of the experiments that have artifacts.
  absl::StatusOr<std::vector<std::string>> ListExperiments() const;
  // Number of a trial's artifacts. 0 for ids that cannot be names.
  absl::StatusOr<int64_t> Count(const std::string& experiment, const std::string& trial) const;
  // Disk space of all artifacts, or of an experiment's.
  absl::StatusOr<ArtifactUsage> Usage() const;
  absl::StatusOr<ArtifactUsage> Usage(const std::string& experiment) const;
  // Empty without a shared store.
  std::string shared_directory() const { return shared_ == nullptr ? "" : shared_->directory(); }
  // True if the trial's artifacts are in a shared store, outside the data directory.
  bool IsShared(absl::string_view trial) const { return shared_ != nullptr && trial != kDataFiles; }

  // OK if there is no such artifact.
  absl::Status Delete(const ArtifactId& id);
  // Deletes all artifacts of a trial except these.
  absl::Status KeepOnly(const std::string& experiment, const std::string& trial,
                        const std::vector<std::string>& sha256s);
  absl::Status DeleteExperiment(const std::string& experiment);
  // Deletes the artifacts of some trials of an experiment, in a few milliseconds. True if there are
  // more.
  absl::StatusOr<bool> DeleteSome(const std::string& experiment);
  // Deletes uploaded files of examples that are older than `age` and that no experiment uses. On a
  // file system without hard links experiments have their own copies, so all such uploads go. At
  // most 50 per call; true if there may be more.
  bool DeleteUnusedUploads(absl::Duration age = absl::Hours(1));

 private:
  struct Verified {
    int64_t size = 0;
    absl::Time modified;
    bool damaged = false;
  };

  ArtifactStore(std::string directory, std::unique_ptr<SharedStore> shared)
      : directory_(std::move(directory)), shared_(std::move(shared)) {}
  // Directory of the artifacts of such a trial, and of all checkpoints.
  const std::string& RootOf(absl::string_view trial) const {
    return IsShared(trial) ? shared_->directory() : directory_;
  }
  const std::string& CheckpointsRoot() const { return RootOf(""); }
  // UNAVAILABLE if the trial's artifacts are in a shared store that is not mounted.
  absl::Status CheckMounted(absl::string_view trial) const {
    return IsShared(trial) ? shared_->Check() : absl::OkStatus();
  }
  // Returns `status`, or UNAVAILABLE if it says that an artifact is lost and the store is not
  // mounted.
  absl::Status UnlessUnmounted(absl::string_view trial, const absl::Status& status) const;
  static absl::StatusOr<std::string> DirectoryOf(const std::string& root,
                                                 absl::string_view experiment);
  static absl::StatusOr<std::string> DirectoryOf(const std::string& root,
                                                 absl::string_view experiment,
                                                 absl::string_view trial);
  absl::StatusOr<std::string> PathOf(const ArtifactId& id) const;
  // Creates the trial's directory, durably.
  absl::Status MakeDirectory(const ArtifactId& id);
  absl::Status Remember(const std::string& path, bool damaged = false);
  // Forgets what was verified below a directory.
  void ForgetBelow(const std::string& directory);
  // Deletes the trial's directory. In a shared store, other files in it stay.
  absl::Status DeleteTrial(const std::string& directory);
  // Deletes an experiment from a root.
  absl::Status DeleteExperimentIn(const std::string& root, const std::string& experiment);

  friend class ArtifactFileWriter;

  const std::string directory_;
  const std::unique_ptr<SharedStore> shared_;  // null: checkpoints are in directory_
  // Held from the check of an upload's age to the deletion or renewal that depends on it. Acquired
  // before mutex_.
  platform::Mutex uploads_mutex_;
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
