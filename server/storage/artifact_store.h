// ArtifactStore: the bytes of checkpoints and of files of examples.
//
//   directory_artifact_store.h   in the data directory, or checkpoints on a shared file system
//   s3_artifact_store.h          checkpoints in an S3-compatible object store
//
// An artifact is named by its experiment, its trial and the SHA-256 of its bytes. It appears whole
// and durable or not at all.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/files.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Keeps what is stored under a name and what deletes it apart. Nobody waits: who finds a name taken
// tries again later. Thread-safe. Outlives its locks.
class NameLocks {
 public:
  // Held until destruction.
  class Lock {
   public:
    Lock(NameLocks& locks, std::string name) : locks_(locks), name_(std::move(name)) {}
    ~Lock() { locks_.Release(name_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    NameLocks& locks_;
    const std::string name_;
  };

  // For those who store. UNAVAILABLE while somebody owns the name.
  absl::StatusOr<std::unique_ptr<Lock>> Share(const std::string& name) {
    platform::MutexLock lock(mutex_);
    int& holders = holders_[name];
    if (holders < 0) {
      return absl::UnavailableError(absl::StrCat(name, " is being deleted; try again"));
    }
    ++holders;
    return std::make_unique<Lock>(*this, name);
  }
  // For the one who deletes. ABORTED while others hold the name.
  absl::StatusOr<std::unique_ptr<Lock>> Own(const std::string& name) {
    platform::MutexLock lock(mutex_);
    if (!holders_.try_emplace(name, -1).second) {
      return absl::AbortedError(absl::StrCat(name, " is being stored"));
    }
    return std::make_unique<Lock>(*this, name);
  }

 private:
  void Release(const std::string& name) {
    platform::MutexLock lock(mutex_);
    const auto holders = holders_.find(name);
    if (--holders->second <= 0) holders_.erase(holders);
  }

  platform::Mutex mutex_;
  // Number of those who share the name; -1: it is owned.
  absl::flat_hash_map<std::string, int> holders_ ABSL_GUARDED_BY(mutex_);
};

// Space of artifacts.
struct ArtifactUsage {
  int64_t artifacts = 0;
  // A hard-linked file counts once per measurement, so a file that two experiments share counts for
  // each of them.
  int64_t bytes = 0;
};

// Measures a directory of the artifact store and everything below it; zero if it does not exist.
// Files created or deleted during the call may or may not count.
absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory);

// Returns the space of the directory in which the checkpoints are (`elsewhere` as
// ArtifactStore::elsewhere). nullopt for the data directory or an object store, and while the
// directory is not mounted. Blocks while the directory's file server does not answer.
std::optional<platform::DiskSpace> MeasureDiskElsewhere(const std::string& elsewhere);

// Returns the one of which the smaller share is free.
const platform::DiskSpace& FullerDisk(const platform::DiskSpace& a, const platform::DiskSpace& b);

struct ArtifactId {
  std::string experiment;  // ids, not names
  std::string trial;
  std::string sha256;
  bool operator==(const ArtifactId&) const = default;
};

// Stands in place of a trial for an experiment's files of examples. No trial has this id.
inline constexpr absl::string_view kDataFiles = "data";
// Stands in place of an experiment for uploads. No experiment has this id: experiment ids end in a
// number.
inline constexpr absl::string_view kUploads = "uploads";

// Path of an artifact below `root`: "<root>/<experiment>/<trial>/<sha256><suffix>". Directories are
// named by ids (resource_id.h); an id longer than a file name may be becomes its beginning
// and its hash. INVALID_ARGUMENT for ids that cannot be names, so that no name leads out of `root`.
absl::StatusOr<std::string> ArtifactPath(const std::string& root, const ArtifactId& id);
// The directory of a trial in that path, or of an experiment.
absl::StatusOr<std::string> ArtifactDirectory(
    const std::string& root, absl::string_view experiment,
    std::optional<absl::string_view> trial = std::nullopt);

// Path of the manifest that earlier releases wrote beside an artifact.
std::string ManifestPath(absl::string_view artifact);

// True if the error means that an artifact is permanently gone or damaged. Other errors
// (permissions, descriptors, a failing disk) mean that it cannot be read now, and say nothing about
// its contents.
bool IsLost(const absl::Status& status);

// A request by which somebody else moves an artifact's bytes. Whoever has the URL can send it until
// it expires.
struct SignedTransfer {
  std::string url;
  std::map<std::string, std::string> headers;  // to be sent with it
};

// Thread-safe. Errors are those of platform/files.h, in addition to those named. While the place of
// the checkpoints cannot be reached, every call that needs it returns UNAVAILABLE: nothing counts
// as missing or deleted.
//
// Calls marked "quick" never wait for a network: the command loop makes them.
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

  // Reads the bytes of one artifact. Deleting the artifact while it is read may end the reading
  // with an error.
  class Reader {
   public:
    virtual ~Reader() = default;
    // Returns the next bytes, at most 1 MiB; empty at the end.
    virtual absl::StatusOr<std::string> Next() = 0;
  };

  virtual ~ArtifactStore() = default;

  // Ends calls that wait for a network, and later ones, with UNAVAILABLE within about a second.
  virtual void Interrupt() {}

  // Where the checkpoints are if that is not the data directory: a directory or "s3://...". Empty
  // otherwise.
  virtual std::string elsewhere() const = 0;
  // True if the trial's artifacts are outside the data directory.
  bool IsElsewhere(absl::string_view trial) const {
    return !elsewhere().empty() && trial != kDataFiles;
  }

  // Maximum size of a checkpoint. Callers of Write and SignPut check it.
  virtual int64_t max_bytes() const { return std::numeric_limits<int64_t>::max(); }

  // INVALID_ARGUMENT for ids that cannot be names.
  virtual absl::StatusOr<std::unique_ptr<Writer>> Write(const ArtifactId& id,
                                                        int64_t size_bytes) = 0;

  // Signs the request that stores an artifact of this size. nullopt if it is stored already. An
  // object of this name that is damaged is deleted first.
  // UNIMPLEMENTED if artifacts go through the server.
  virtual absl::StatusOr<std::optional<SignedTransfer>> SignPut(const ArtifactId& id,
                                                                int64_t size_bytes) {
    return absl::UnimplementedError("artifacts are sent to the server");
  }
  // Signs the request that reads an artifact. NOT_FOUND; DATA_LOSS; UNIMPLEMENTED as SignPut.
  virtual absl::StatusOr<SignedTransfer> SignGet(const ArtifactId& id) {
    return absl::UnimplementedError("artifacts are read from the server");
  }

  // Checks that an artifact exists and is whole and undamaged. Bytes that this object has checked
  // or written are not read again while the artifact is unchanged. `size_bytes` 0: any size.
  // NOT_FOUND; DATA_LOSS.
  virtual absl::Status Verify(const ArtifactId& id, int64_t size_bytes = 0) = 0;

  // Quick. As Verify, but does not read an artifact of more than `most_bytes` that was not checked
  // before. It counts as undamaged until Verify was called for it.
  virtual absl::Status VerifyQuickly(const ArtifactId& id, int64_t size_bytes,
                                     int64_t most_bytes) = 0;

  // Looks for an artifact that VerifyQuickly does not know, and makes it known. For the start: an
  // object store may list an object late. NOT_FOUND.
  virtual absl::Status Find(const ArtifactId& id) { return VerifyQuickly(id, 0, 0); }

  // Gives another trial the artifact, durably. Deleting either keeps the other. NOT_FOUND;
  // DATA_LOSS.
  virtual absl::Status Copy(const ArtifactId& from, const std::string& experiment,
                            const std::string& trial) = 0;

  // NOT_FOUND.
  virtual absl::StatusOr<std::unique_ptr<Reader>> Open(const ArtifactId& id) const = 0;

  // Ids of the experiments that have artifacts.
  virtual absl::StatusOr<std::vector<std::string>> ListExperiments() const = 0;
  // SHA-256 of a trial's artifacts, and of what may become one without another call. None for ids
  // that cannot be names.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& experiment,
                                                        const std::string& trial) const = 0;
  // Space of an experiment's artifacts, or of all.
  virtual absl::StatusOr<ArtifactUsage> Usage(const std::string& experiment = "") const = 0;

  // Decides whether an artifact is deleted. Called while nobody can store it: an artifact that was
  // stored before is seen as stored by the decision, and one that comes later is refused with
  // UNAVAILABLE until the deletion is over. Any thread.
  using Decision = std::function<absl::StatusOr<bool>()>;
  // OK if there is no such artifact. ABORTED while it is being stored.
  virtual absl::Status Delete(const ArtifactId& id, const Decision& goes) = 0;
  // Deletes an experiment's artifacts, and decides again before each trial or artifact. ABORTED
  // while the experiment is held.
  virtual absl::Status DeleteExperiment(const std::string& experiment, const Decision& goes) = 0;
  // While the result lives, DeleteExperiment deletes nothing. Null if it is deleting.
  std::unique_ptr<NameLocks::Lock> Hold(const std::string& experiment) {
    auto lock = locks_.Share(experiment);
    return lock.ok() ? *std::move(lock) : nullptr;
  }
  // Deletes uploaded files of examples that are older than `age` and that no experiment uses. On a
  // file system without hard links experiments have their own copies, so all such uploads go. At
  // most 50 per call; true if there may be more.
  virtual bool DeleteUnusedUploads(absl::Duration age = absl::Hours(1)) = 0;

 protected:
  // By the artifact's path, or the experiment's id.
  NameLocks locks_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_STORE_H_
