// Checkpoints' bytes: <directory>/<experiment>/<trial>/<sha256>.safetensors, each with a manifest
// <sha256>.json that says whose it is: {"trial", "step", "size_bytes", "sha256"}. Files of examples
// stand beside the trials: <directory>/<experiment>/data/<sha256>.jsonl, each the same file as
// <directory>/uploads/data/<sha256>.jsonl by a second name where the file system can. Files appear
// whole and durable or not at all. Directories are named by ids (server/resource_id.h), ids that
// are longer than a file name may be by their beginning and their hash; anything else is refused,
// so that no name leads out of the directory.
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

// In the place of a trial: an experiment's files of examples. No trial has this id.
inline constexpr absl::string_view kDataFiles = "data";
// In the place of an experiment: what was uploaded. No experiment has this id, for theirs end in a
// number.
inline constexpr absl::string_view kUploads = "uploads";

// The ending of an artifact's file.
absl::string_view SuffixOf(absl::string_view trial);

// Whether an error says that an artifact is gone or damaged for good. Other errors say that it
// could not be read now (no rights, no descriptors, a disk that fails), and nothing of what it
// holds.
bool IsLost(const absl::Status& status);

// Thread-safe. Errors are those of platform/files.h beside those named.
class ArtifactStore {
 public:
  // One artifact on its way in. Dropped without Finish it leaves nothing.
  class Writer {
   public:
    virtual ~Writer() = default;
    // DATA_LOSS: more bytes than announced.
    virtual absl::Status Append(absl::string_view data) = 0;
    // DATA_LOSS: size or checksum are not those announced.
    virtual absl::Status Finish() = 0;
  };

  // The bytes of one artifact. What deletes the artifact meanwhile changes nothing of what it
  // reads.
  class Reader {
   public:
    // Of an open file.
    explicit Reader(platform::Descriptor file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {}
    // The next bytes, at most 1 MiB; none at the end.
    absl::StatusOr<std::string> Next();

   private:
    const platform::Descriptor file_;
    const std::string path_;
  };

  // Makes the directory and deletes what interrupted writers left.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(const std::string& directory);

  // INVALID_ARGUMENT: ids that cannot be names.
  absl::StatusOr<std::unique_ptr<Writer>> Write(const ArtifactId& id, int64_t size_bytes,
                                                int64_t step);

  // Checks that an artifact is there, whole and undamaged. What this object has checked before (or
  // written) is not read again while its size and time of change stay. `size_bytes` 0: any size.
  // NOT_FOUND; DATA_LOSS.
  absl::Status Verify(const ArtifactId& id, int64_t size_bytes = 0);

  // The same for callers that cannot wait: what has more than `most_bytes` and was not checked
  // before is not read, and counts as undamaged until somebody has called Verify.
  absl::Status VerifyQuickly(const ArtifactId& id, int64_t size_bytes, int64_t most_bytes);

  // Gives a trial an artifact of another's, durably: the same file under a second name where the
  // file system can, a copy otherwise. Either goes without the other. NOT_FOUND; DATA_LOSS.
  absl::Status Copy(const ArtifactId& from, const std::string& experiment, const std::string& trial,
                    int64_t step);

  // NOT_FOUND.
  absl::StatusOr<std::unique_ptr<Reader>> Open(const ArtifactId& id) const;

  // Ids of the experiments that have artifacts.
  absl::StatusOr<std::vector<std::string>> ListExperiments() const;
  // A trial's artifacts; 0 also for one that cannot be there.
  int64_t Count(const std::string& experiment, const std::string& trial) const;

  // OK also for one that is not there.
  absl::Status Delete(const ArtifactId& id);
  // Deletes a trial's artifacts but these.
  absl::Status KeepOnly(const std::string& experiment, const std::string& trial,
                        const std::vector<std::string>& sha256s);
  absl::Status DeleteExperiment(const std::string& experiment);
  // Deletes the artifacts of some trials of an experiment: a few milliseconds. True when there are
  // more.
  absl::StatusOr<bool> DeleteSome(const std::string& experiment);
  // Deletes files of examples that were uploaded more than `age` ago and that no experiment has. A
  // file system without second names lets all go: experiments have their own. At most 50 at once;
  // true when there may be more.
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
  // Makes the trial's directory, durably.
  absl::Status MakeDirectory(const ArtifactId& id);
  absl::Status Remember(const std::string& path, bool damaged = false);

  friend class ArtifactFileWriter;

  const std::string directory_;
  // Held between the look at an upload's age and what follows from it; before mutex_.
  platform::Mutex uploads_mutex_;
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
