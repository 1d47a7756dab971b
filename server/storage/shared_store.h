// SharedStore: ownership of a directory of checkpoints outside the data directory (--artifacts),
// such as one on NFS, Lustre or CephFS.
//
//   <directory>/lengthwise_store.json   the mark: the key and the data directory of its owner
//   <directory>/lengthwise_store.lock   locked while a server uses the directory
//   <data_dir>/checkpoint_store.json    the keys that this data directory accepts in the mark
//
// Every start writes a new key. A copy of the data directory therefore loses the store at the
// original's next start, and cannot delete checkpoints that it does not know.
#ifndef LENGTHWISE_SERVER_STORAGE_SHARED_STORE_H_
#define LENGTHWISE_SERVER_STORAGE_SHARED_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/files.h"

namespace lengthwise::server {

// Thread-safe.
class SharedStore {
 public:
  struct Options {
    // Absolute path. Created if missing; its parent must exist.
    std::string directory;
    std::string data_dir;
    // Makes the directory this data directory's, whatever its mark says.
    bool take_over = false;
    // The database names checkpoints, so a directory without a mark is not mounted.
    bool has_checkpoints = false;
  };

  // Locks and marks the directory, and deletes temporary files that a crash left at its top.
  // INVALID_ARGUMENT for a path that cannot be used; FAILED_PRECONDITION if the directory is not
  // mounted, belongs to another data directory, holds other files or is locked by another server.
  static absl::StatusOr<std::unique_ptr<SharedStore>> Open(const Options& options);

  // UNAVAILABLE unless the mark is there with this server's key. A file that is missing from an
  // unmounted directory is not lost.
  absl::Status Check() const;

  const std::string& directory() const { return directory_; }

 private:
  SharedStore(std::string directory, std::string mark, std::unique_ptr<platform::FileLock> lock)
      : directory_(std::move(directory)), mark_(std::move(mark)), lock_(std::move(lock)) {}

  const std::string directory_;
  const std::string mark_;  // the whole text of the mark
  const std::unique_ptr<platform::FileLock> lock_;
};

// Name of the mark in every place of checkpoints outside the data directory.
inline constexpr absl::string_view kStoreMark = "lengthwise_store.json";

// Decides whether a place of checkpoints (a directory or "s3://...") with this mark, nullopt for
// none, is the data directory's. Records the key of the next mark in the data directory, and
// returns the text of that mark, which the caller stores. FAILED_PRECONDITION if the mark is
// another's, unless `take_over`.
absl::StatusOr<std::string> NextMark(const std::string& place, const std::string& data_dir,
                                     const std::optional<std::string>& old_mark, bool take_over);

// FAILED_PRECONDITION if the checkpoints of this data directory are in a shared store. For servers
// without one: they would take all checkpoints for lost.
absl::Status CheckNeedsNoSharedStore(const std::string& data_dir);

// Records in a restored data directory that its checkpoints are in a shared store.
absl::Status RequireSharedStore(const std::string& data_dir);

// True for names that the server gives to files of artifacts: 64 hexadecimal digits and a known
// suffix.
bool IsArtifactFile(absl::string_view name);
// True for the name of a temporary file of one of them.
bool IsTemporaryArtifactFile(absl::string_view name);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SHARED_STORE_H_
