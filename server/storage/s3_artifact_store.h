// S3ArtifactStore: checkpoints as objects of an S3-compatible store (--artifacts s3://...). Files
// of examples stay in the data directory.
//
//   <prefix>/<experiment>/<trial>/<sha256>.safetensors   a checkpoint
//   <prefix>/lengthwise_store.json                       the mark, as in shared_store.h
//   <prefix>/lengthwise_probe                            exists while a server starts
//
// Workers move the bytes: the server signs requests for them. It trusts an object because the store
// compares its bytes with the checksum that is signed and refuses to replace it; a store that does
// not is refused at start. An object counts as stored once the server has asked the store for it
// (SignPut). The server keeps a list of all objects in memory, read at start, so that the command
// loop never waits for the store. Whoever copies or deletes does.
#ifndef LENGTHWISE_SERVER_STORAGE_S3_ARTIFACT_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_S3_ARTIFACT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/storage/artifact_store.h"
#include "server/storage/backup.h"
#include "server/storage/s3_client.h"
#include "server/storage/s3_presign.h"

namespace lengthwise::server {

// A client for "s3://bucket[/prefix]". INVALID_ARGUMENT names the setting that is wrong or missing;
// FAILED_PRECONDITION without libcurl.
absl::StatusOr<std::unique_ptr<S3Client>> OpenS3(const std::string& url, const S3Options& options);

// For RestoreBackup.
CheckpointPlace CheckpointsInS3(std::shared_ptr<S3Client> client);

// Thread-safe.
class S3ArtifactStore : public ArtifactStore {
 public:
  struct Options {
    std::string data_dir;
    // As SharedStore::Options.
    bool take_over = false;
    bool has_checkpoints = false;
    // Life of the URLs for workers.
    absl::Duration url_life = absl::Hours(1);
    // Longest wait for a copy, which holds one of the threads for users' transfers.
    absl::Duration copy_timeout = absl::Seconds(10);
  };
  // Tests, marks and lists the store. `files` holds the files of examples. FAILED_PRECONDITION if
  // the store takes bytes with a wrong checksum or replaces objects, belongs to another data
  // directory or holds other objects; UNAVAILABLE if it does not answer.
  static absl::StatusOr<std::unique_ptr<S3ArtifactStore>> Open(
      const Options& options, std::unique_ptr<S3Client> client,
      std::unique_ptr<ArtifactStore> files);

  void Interrupt() override { client_->Cancel(); }
  std::string elsewhere() const override { return client_->Url(); }
  // 5 GiB, the largest object that one request can store. Of an object that is sent in parts, S3
  // compares SHA-256 for each part and not for the whole, so it could not refuse wrong bytes.
  int64_t max_bytes() const override { return int64_t{5} << 30; }
  // For workers without libcurl: the bytes pass through the server.
  absl::StatusOr<std::unique_ptr<Writer>> Write(const ArtifactId& id, int64_t size_bytes) override;
  absl::StatusOr<std::optional<SignedTransfer>> SignPut(const ArtifactId& id,
                                                        int64_t size_bytes) override;
  absl::StatusOr<SignedTransfer> SignGet(const ArtifactId& id) override;
  // Reads an object that neither a worker's signed request nor this server stored.
  absl::Status Verify(const ArtifactId& id, int64_t size_bytes = 0) override;
  // Reads nothing, whatever `most_bytes`.
  absl::Status VerifyQuickly(const ArtifactId& id, int64_t size_bytes, int64_t most_bytes) override;
  // Asks the store. Reads nothing.
  absl::Status Find(const ArtifactId& id) override;
  // The store copies the object. UNAVAILABLE after `copy_timeout`.
  absl::Status Copy(const ArtifactId& from, const std::string& experiment,
                    const std::string& trial) override;
  // The reader compares the checksum, and ends with DATA_LOSS for damaged bytes. The artifact then
  // counts as damaged.
  absl::StatusOr<std::unique_ptr<Reader>> Open(const ArtifactId& id) const override;
  absl::StatusOr<std::vector<std::string>> ListExperiments() const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& experiment,
                                                const std::string& trial) const override;
  absl::StatusOr<ArtifactUsage> Usage(const std::string& experiment = "") const override;
  absl::Status Delete(const ArtifactId& id, const Decision& goes) override;
  absl::Status DeleteExperiment(const std::string& experiment, const Decision& goes) override;
  bool DeleteUnusedUploads(absl::Duration age = absl::Hours(1)) override;

 private:
  class RelayWriter;
  class RangeReader;

  // What is known of an object.
  struct Known {
    int64_t size = 0;
    std::string etag;
    bool is_verified = false;  // its bytes, with this etag
    bool is_damaged = false;
  };
  using Objects = std::map<std::string, Known>;  // by key
  // Threads that delete an experiment: each deletion waits for the store.
  static constexpr size_t kDeleters = 4;

  S3ArtifactStore(Options options, std::unique_ptr<S3Client> client,
                  std::unique_ptr<ArtifactStore> files, std::string mark)
      : options_(std::move(options)),
        client_(std::move(client)),
        files_(std::move(files)),
        mark_(std::move(mark)) {}

  // UNAVAILABLE unless the mark is there with this server's key: an object that is missing from a
  // missing bucket, or from one that another server has taken over, is not lost.
  absl::Status CheckMark() const;
  // As CheckMark, but does not ask again within a second of an answer.
  absl::Status CheckMarkOnceASecond();
  // Forgets an object that is missing.
  absl::StatusOr<S3Object> Head(const std::string& key) const;
  // Asks the store whether it has the whole, undamaged artifact, which is then remembered. Deletes
  // an object of this name with other bytes: nobody can use it, and it keeps the artifact from
  // being stored. The caller holds the object.
  absl::StatusOr<bool> IsStored(const std::string& key, const std::string& sha256,
                                int64_t size_bytes);
  // Reads an object of the store.
  absl::StatusOr<bool> HasChecksum(const S3Object& object, const std::string& sha256) const;
  absl::Status AbsenceOf(const std::string& key) const;
  std::optional<Known> FindKnown(const std::string& key) const;
  void Forget(const std::string& key) const;
  // Adds an object. The caller holds it, so that it cannot have been deleted since it was seen.
  void Remember(const S3Object& object, bool is_verified);
  // Changes what is known of an object, if it is still known.
  void Update(const S3Object& object, bool is_verified, bool is_damaged) const;
  // Keys that begin with `prefix`, of objects and of signed PUTs: a worker may have sent these
  // without asking again.
  std::vector<std::string> KeysBelow(const std::string& prefix) const;
  // The caller owns the key's lock.
  absl::Status DeleteObject(const std::string& key);

  const Options options_;
  const std::unique_ptr<S3Client> client_;
  const std::unique_ptr<ArtifactStore> files_;
  const std::string mark_;  // the whole text of the mark

  mutable platform::Mutex mutex_;
  mutable Objects objects_ ABSL_GUARDED_BY(mutex_);
  // Keys for which a PUT was signed since they were last known to be absent.
  std::set<std::string> signed_ ABSL_GUARDED_BY(mutex_);
  absl::Time mark_seen_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_S3_ARTIFACT_STORE_H_
