// ArtifactStore: the bytes of checkpoints and of files of examples, in a directory.
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

// Thread-safe. Errors are those of platform/files.h, in addition to those named.
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
    // Of an open file.
    explicit Reader(platform::Descriptor file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {}
    // Returns the next bytes, at most 1 MiB; empty at the end.
    absl::StatusOr<std::string> Next();

   private:
    const platform::Descriptor file_;
    const std::string path_;
  };

  // Creates the directory, and deletes files of interrupted writers.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(const std::string& directory);

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
  int64_t Count(const std::string& experiment, const std::string& trial) const;

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

  explicit ArtifactStore(std::string directory) : directory_(std::move(directory)) {}
  absl::StatusOr<std::string> DirectoryOf(absl::string_view experiment) const;
  absl::StatusOr<std::string> DirectoryOf(absl::string_view experiment,
                                          absl::string_view trial) const;
  absl::StatusOr<std::string> PathOf(const ArtifactId& id) const;
  // Creates the trial's directory, durably.
  absl::Status MakeDirectory(const ArtifactId& id);
  absl::Status Remember(const std::string& path, bool damaged = false);

  friend class ArtifactFileWriter;

  const std::string directory_;
  // Held from the check of an upload's age to the deletion or renewal that depends on it. Acquired
  // before mutex_.
  platform::Mutex uploads_mutex_;
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
