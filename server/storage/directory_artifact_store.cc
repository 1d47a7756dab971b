#include "server/storage/directory_artifact_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/descriptors.h"
#include "platform/failpoint.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kDataSuffix = ".jsonl";

// Bytes per read of a Reader.
constexpr size_t kChunkBytes = 1 << 20;
constexpr int kUploadsAtOnce = 50;

// True for a directory that is not a symbolic link.
bool IsOwnDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(std::filesystem::symlink_status(path, error));
}

// Deletes a directory unless it holds other files.
absl::Status DeleteIfEmpty(const std::string& path) {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) {
    return absl::OkStatus();
  }
  return platform::FileError(errno, "delete", path);
}

// Deletes files of interrupted writers. Does not follow symbolic links. Keeps files with other
// names. A directory that cannot be read is not of this store, or damaged: it keeps no server from
// starting.
absl::Status DeleteUnfinished(const std::string& root) {
  namespace fs = std::filesystem;
  ASSIGN_OR_RETURN(const auto experiments, platform::ListDirectory(root));
  for (const std::string& experiment : experiments) {
    const std::string path = absl::StrCat(root, "/", experiment);
    if (!IsOwnDirectory(path)) continue;
    std::error_code error;
    fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                           error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry.depth() == 0) continue;
      entry.disable_recursion_pending();
      if (!IsTemporaryArtifactFile(entry->path().filename().string())) continue;
      RETURN_IF_ERROR(platform::DeleteFile(entry->path().string()));
    }
  }
  return absl::OkStatus();
}

// Reads an open file.
class FileReader : public ArtifactStore::Reader {
 public:
  // `path` is for errors.
  FileReader(platform::Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  absl::StatusOr<std::string> Next() override {
    std::string chunk(kChunkBytes, '\0');
    while (true) {
      const ssize_t count = read(file_.get(), chunk.data(), chunk.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return platform::FileError(errno, "read", path_);
      chunk.resize(count);
      return chunk;
    }
  }

 private:
  const platform::Descriptor file_;
  const std::string path_;
};

}  // namespace

class ArtifactFileWriter : public ArtifactStore::Writer {
 public:
  ArtifactFileWriter(DirectoryArtifactStore& store, ArtifactId id, std::string path,
                     std::unique_ptr<platform::AtomicFile> file, int64_t size_bytes)
      : store_(store),
        id_(std::move(id)),
        path_(std::move(path)),
        file_(std::move(file)),
        size_bytes_(size_bytes) {}

  absl::Status Append(absl::string_view data) override {
    received_ += static_cast<int64_t>(data.size());
    if (received_ > size_bytes_) return WrongSize();
    hash_.Update(data);
    return file_->Append(data);
  }

  absl::Status Finish() override {
    if (received_ != size_bytes_) return WrongSize();
    const std::string sha256 = hash_.Finish();
    if (sha256 != id_.sha256) {
      return absl::DataLossError(absl::StrCat("the artifact's bytes have SHA-256 ", sha256,
                                              ", but the header announced ", id_.sha256,
                                              "; send it again"));
    }
    ASSIGN_OR_RETURN(const auto lock, store_.locks_.Share(path_));
    if (id_.trial == kDataFiles && IsThere()) return store_.Remember(path_);
    RETURN_IF_ERROR(store_.CheckMounted(id_.trial));
    absl::Status status = file_->Commit();
    LENGTHWISE_FAILPOINT("artifact.commit.after");
    // Otherwise a later upload would find the file and report it as durable, although its directory
    // was not synced.
    if (!status.ok() && id_.trial == kDataFiles) store_.DeleteFiles(path_).IgnoreError();
    if (status.ok()) status = store_.Remember(path_);
    // If the store was unmounted meanwhile, the file is below its mount point.
    if (absl::Status mounted = store_.CheckMounted(id_.trial); !mounted.ok()) return mounted;
    return status;
  }

 private:
  absl::Status WrongSize() const {
    return absl::DataLossError(absl::StrCat("the artifact has ", received_,
                                            " bytes so far, but the header announced ", size_bytes_,
                                            "; send it again"));
  }

  // True if these examples are stored already. Experiments share that file, so it is kept; a new
  // one would be a second copy. Restarts the upload's age.
  bool IsThere() {
    if (!store_.Verify(id_, size_bytes_).ok()) return false;
    std::error_code error;
    std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now(), error);
    // The process that wrote the file may have died before it synced the directory.
    return !error && platform::SyncDirectory(platform::DirectoryOf(path_)).ok();
  }

  DirectoryArtifactStore& store_;
  const ArtifactId id_;
  const std::string path_;
  const std::unique_ptr<platform::AtomicFile> file_;
  const int64_t size_bytes_;
  int64_t received_ = 0;
  platform::Sha256 hash_;
};

absl::StatusOr<std::unique_ptr<DirectoryArtifactStore>> DirectoryArtifactStore::Open(
    const std::string& directory, std::unique_ptr<SharedStore> shared) {
  RETURN_IF_ERROR(platform::CreateDirectories(directory));
  RETURN_IF_ERROR(DeleteUnfinished(directory));
  if (shared != nullptr) {
    RETURN_IF_ERROR(DeleteUnfinished(shared->directory()));
  }
  return std::unique_ptr<DirectoryArtifactStore>(
      new DirectoryArtifactStore(directory, std::move(shared)));
}

absl::Status DirectoryArtifactStore::UnlessUnmounted(absl::string_view trial,
                                                     const absl::Status& status) const {
  if (!IsLost(status)) return status;
  if (absl::Status mounted = CheckMounted(trial); !mounted.ok()) return mounted;
  return status;
}

absl::StatusOr<std::string> DirectoryArtifactStore::PathOf(const ArtifactId& id) const {
  return ArtifactPath(RootOf(id.trial), id);
}

absl::Status DirectoryArtifactStore::MakeDirectory(const ArtifactId& id) {
  const std::string& root = RootOf(id.trial);
  ASSIGN_OR_RETURN(const std::string above, ArtifactDirectory(root, id.experiment));
  ASSIGN_OR_RETURN(const std::string directory, ArtifactDirectory(root, id.experiment, id.trial));
  RETURN_IF_ERROR(CheckMounted(id.trial));
  for (const std::string& path : {above, directory}) {
    {
      platform::MutexLock lock(mutex_);
      if (durable_.contains(path) && IsOwnDirectory(path)) continue;
    }
    // Also if another call created it, or an earlier process that died before its sync.
    RETURN_IF_ERROR(platform::CreateDirectory(path));
    platform::MutexLock lock(mutex_);
    durable_.insert(path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Writer>> DirectoryArtifactStore::Write(
    const ArtifactId& id, int64_t size_bytes) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(id));
  RETURN_IF_ERROR(MakeDirectory(id));
  LENGTHWISE_FAILPOINT_OR_RETURN("artifact.directory.after");
  ASSIGN_OR_RETURN(std::unique_ptr<platform::AtomicFile> file, platform::AtomicFile::Create(path));
  return std::make_unique<ArtifactFileWriter>(*this, id, path, std::move(file), size_bytes);
}

absl::Status DirectoryArtifactStore::Remember(const std::string& path, bool damaged) {
  ASSIGN_OR_RETURN(const auto status, platform::GetFileStatus(path));
  platform::MutexLock lock(mutex_);
  verified_[path] = {.size = status.size, .modified = status.modified, .damaged = damaged};
  return absl::OkStatus();
}

absl::Status DirectoryArtifactStore::Verify(const ArtifactId& id, int64_t size_bytes) {
  return VerifyQuickly(id, size_bytes, std::numeric_limits<int64_t>::max());
}

absl::Status DirectoryArtifactStore::VerifyQuickly(const ArtifactId& id, int64_t size_bytes,
                                                   int64_t most_bytes) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(id));
  ASSIGN_OR_RETURN(const auto status, platform::GetFileStatus(path), UnlessUnmounted(id.trial, _));
  if (size_bytes > 0 && status.size != size_bytes) {
    return UnlessUnmounted(
        id.trial, absl::DataLossError(
                      absl::StrCat(path, " has ", status.size, " bytes instead of ", size_bytes)));
  }
  const absl::Status damaged =
      absl::DataLossError(absl::StrCat(path, " is damaged: its SHA-256 does not match"));
  {
    platform::MutexLock lock(mutex_);
    const auto known = verified_.find(path);
    if (known != verified_.end() && known->second.size == status.size &&
        known->second.modified == status.modified) {
      return known->second.damaged ? damaged : absl::OkStatus();
    }
  }
  if (status.size > most_bytes) return absl::OkStatus();
  platform::Sha256 hash;
  absl::Status read = platform::ReadFileInChunks(path, [&](absl::string_view chunk) {
    hash.Update(chunk);
    return true;
  });
  if (!read.ok()) return UnlessUnmounted(id.trial, read);
  const bool is_whole = hash.Finish() == id.sha256;
  if (!is_whole) {
    RETURN_IF_ERROR(CheckMounted(id.trial));
  }
  if (absl::Status known = Remember(path, !is_whole); !known.ok()) {
    return UnlessUnmounted(id.trial, known);
  }
  return is_whole ? absl::OkStatus() : damaged;
}

absl::Status DirectoryArtifactStore::Copy(const ArtifactId& from, const std::string& experiment,
                                          const std::string& trial) {
  const ArtifactId to = {.experiment = experiment, .trial = trial, .sha256 = from.sha256};
  ASSIGN_OR_RETURN(const std::string old_path, PathOf(from));
  ASSIGN_OR_RETURN(const std::string path, PathOf(to));
  RETURN_IF_ERROR(Verify(from));
  ASSIGN_OR_RETURN(const auto lock, locks_.Share(path));
  RETURN_IF_ERROR(MakeDirectory(to));
  LENGTHWISE_FAILPOINT_OR_RETURN("artifact.copy.before");
  absl::Status status = platform::DeleteFile(path);
  if (status.ok()) status = platform::LinkOrCopyFile(old_path, path);
  LENGTHWISE_FAILPOINT("artifact.copy.after");
  if (status.ok()) status = platform::SyncDirectory(platform::DirectoryOf(path));
  // After a failed sync, a later one may succeed although the name is lost.
  if (!status.ok()) platform::DeleteFile(path).IgnoreError();
  if (status.ok()) status = Remember(path);
  // If the store was unmounted meanwhile, the copy is below its mount point.
  RETURN_IF_ERROR(CheckMounted(to.trial));
  return status;
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Reader>> DirectoryArtifactStore::Open(
    const ArtifactId& id) const {
  ASSIGN_OR_RETURN(const std::string path, PathOf(id));
  ASSIGN_OR_RETURN(platform::Descriptor file, platform::OpenForReading(path),
                   UnlessUnmounted(id.trial, _));
  return std::make_unique<FileReader>(std::move(file), path);
}

absl::StatusOr<std::vector<std::string>> DirectoryArtifactStore::ListExperiments() const {
  RETURN_IF_ERROR(CheckMounted(""));
  std::set<std::string> names;
  for (const std::string& root : {directory_, CheckpointsRoot()}) {
    ASSIGN_OR_RETURN(const auto listed, platform::ListDirectory(root));
    for (const std::string& name : listed) {
      if (IsOwnDirectory(absl::StrCat(root, "/", name))) names.insert(name);
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<ArtifactUsage> DirectoryArtifactStore::Usage(const std::string& experiment) const {
  const auto measure = [&](const std::string& root) -> absl::StatusOr<ArtifactUsage> {
    if (experiment.empty()) return MeasureArtifacts(root);
    ASSIGN_OR_RETURN(const std::string path, ArtifactDirectory(root, experiment));
    return MeasureArtifacts(path);
  };
  ASSIGN_OR_RETURN(ArtifactUsage usage, measure(directory_));
  if (shared_ == nullptr) return usage;
  ASSIGN_OR_RETURN(const ArtifactUsage shared, measure(shared_->directory()));
  // Afterwards, because a directory that is not mounted measures 0.
  RETURN_IF_ERROR(shared_->Check());
  usage.bytes += shared.bytes;
  usage.artifacts += shared.artifacts;
  return usage;
}

absl::StatusOr<std::vector<std::string>> DirectoryArtifactStore::List(
    const std::string& experiment, const std::string& trial) const {
  std::vector<std::string> sha256s;
  const auto above = ArtifactDirectory(RootOf(trial), experiment);
  const auto directory = ArtifactDirectory(RootOf(trial), experiment, trial);
  if (!directory.ok()) return sha256s;
  RETURN_IF_ERROR(CheckMounted(trial));
  if (IsElsewhere(trial) && !(IsOwnDirectory(*above) && IsOwnDirectory(*directory))) {
    return sha256s;
  }
  ASSIGN_OR_RETURN(const auto files, platform::ListDirectory(*directory));
  for (const std::string& file : files) {
    // An artifact and its manifest (ManifestPath) are neighbours in the sorted list.
    if (!IsArtifactFile(file) || (!sha256s.empty() && absl::StartsWith(file, sha256s.back()))) {
      continue;
    }
    sha256s.push_back(file.substr(0, 64));
  }
  return sha256s;
}

absl::Status DirectoryArtifactStore::Delete(const ArtifactId& id, const Decision& goes) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(id));
  RETURN_IF_ERROR(CheckMounted(id.trial));
  ASSIGN_OR_RETURN(const auto lock, locks_.Own(path));
  ASSIGN_OR_RETURN(const bool is_deleted, goes());
  return is_deleted ? DeleteFiles(path) : absl::OkStatus();
}

absl::Status DirectoryArtifactStore::DeleteFiles(const std::string& path) {
  {
    platform::MutexLock lock(mutex_);
    verified_.erase(path);
  }
  RETURN_IF_ERROR(platform::DeleteFile(path));
  LENGTHWISE_FAILPOINT("artifact.delete.between");
  return platform::DeleteFile(ManifestPath(path));
}

void DirectoryArtifactStore::ForgetBelow(const std::string& directory) {
  const std::string prefix = directory + "/";
  platform::MutexLock lock(mutex_);
  absl::erase_if(verified_,
                 [&](const auto& entry) { return absl::StartsWith(entry.first, prefix); });
  absl::erase_if(durable_, [&](const std::string& path) {
    return path == directory || absl::StartsWith(path, prefix);
  });
}

absl::Status DirectoryArtifactStore::DeleteExperiment(const std::string& experiment,
                                                      const Decision& goes) {
  LENGTHWISE_FAILPOINT("artifact.tree.before");
  RETURN_IF_ERROR(CheckMounted(""));
  ASSIGN_OR_RETURN(const auto lock, locks_.Own(experiment));
  for (const std::string& root : {directory_, CheckpointsRoot()}) {
    ASSIGN_OR_RETURN(const std::string path, ArtifactDirectory(root, experiment));
    ASSIGN_OR_RETURN(bool is_deleted, goes());
    if (!is_deleted || !IsOwnDirectory(path)) continue;
    ForgetBelow(path);
    std::error_code error;
    for (std::filesystem::directory_iterator trial(path, error), end; !error && trial != end;
         trial.increment(error)) {
      ASSIGN_OR_RETURN(is_deleted, goes());
      if (!is_deleted) return absl::OkStatus();
      RETURN_IF_ERROR(DeleteTrial(trial->path().string()));
    }
    RETURN_IF_ERROR(DeleteIfEmpty(path));
  }
  return absl::OkStatus();
}

absl::Status DirectoryArtifactStore::DeleteTrial(const std::string& directory) {
  if (shared_ == nullptr) return platform::DeleteTree(directory);
  if (!IsOwnDirectory(directory)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto files, platform::ListDirectory(directory));
  for (const std::string& file : files) {
    if (!IsArtifactFile(file) && !IsTemporaryArtifactFile(file)) continue;
    RETURN_IF_ERROR(platform::DeleteFile(absl::StrCat(directory, "/", file)));
  }
  return DeleteIfEmpty(directory);
}

bool DirectoryArtifactStore::DeleteUnusedUploads(absl::Duration age) {
  const std::string uploads = absl::StrCat(directory_, "/", kUploads, "/", kDataFiles);
  const auto files = platform::ListDirectory(uploads);
  if (!files.ok()) return false;
  int deleted = 0;
  for (const std::string& file : *files) {
    if (!absl::EndsWith(file, kDataSuffix)) continue;
    const std::string path = absl::StrCat(uploads, "/", file);
    const auto lock = locks_.Own(path);
    if (!lock.ok()) continue;
    std::error_code gone;
    const auto status = platform::GetFileStatus(path);
    if (std::filesystem::hard_link_count(path, gone) != 1 || gone || !status.ok() ||
        status->modified > absl::Now() - age) {
      continue;
    }
    DeleteFiles(path).IgnoreError();
    if (++deleted == kUploadsAtOnce) return true;
  }
  return false;
}

}  // namespace lengthwise::server
