#include "worker/connection/spool.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/status_macros.h"

namespace lengthwise::worker {
namespace {

using platform::MutexLock;

// Valid in this process only: the hash's seed differs between processes.
uint64_t Check(absl::string_view bytes) { return absl::HashOf(bytes); }

absl::Status MakePrivateDirectory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty()) {
    RETURN_IF_ERROR(platform::CreateDirectories(parent));
  }
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return platform::FileError(errno, "make directory", path);
}

}  // namespace

absl::StatusOr<Spool::Record> Spool::Reserve(int64_t size, std::shared_ptr<File>& file) {
  MutexLock lock(mutex_);
  if (bytes_ + size > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the spool in ", options_.directory,
                                                     " has reached --spool_bytes, ",
                                                     options_.max_bytes, " bytes"));
  }
  auto newest = files_.find(newest_);
  if (newest == files_.end() || newest->second->size >= options_.file_bytes) {
    RETURN_IF_ERROR(MakePrivateDirectory(options_.directory));
    auto made = std::make_shared<File>();
    ASSIGN_OR_RETURN(made->file, platform::TemporaryFile::Create(options_.directory));
    newest = files_.emplace(++newest_, std::move(made)).first;
  }
  file = newest->second;
  const Record record = {.file = newest_, .offset = file->size, .size = size};
  file->size += size;
  ++file->records;
  bytes_ += size;
  return record;
}

std::optional<Spool::Record> Spool::Write(absl::string_view bytes) {
  std::shared_ptr<File> file;
  absl::StatusOr<Record> record = Reserve(static_cast<int64_t>(bytes.size()), file);
  absl::Status status = record.status();
  if (status.ok()) {
    // Without the lock, because the disk may be slow. The record is this caller's alone, and its
    // file is not reclaimed before Release.
    status = file->file->Write(record->offset, bytes);
    if (!status.ok()) Release(*record);
  }
  Log(status);
  if (!status.ok()) return std::nullopt;
  record->check = Check(bytes);
  return *record;
}

absl::StatusOr<std::string> Spool::Read(const Record& record) {
  std::shared_ptr<File> file;
  {
    MutexLock lock(mutex_);
    const auto found = files_.find(record.file);
    if (found == files_.end()) return absl::DataLossError("the record was released");
    // Keeps the file open during the read, even if its records are released meanwhile.
    file = found->second;
  }
  absl::StatusOr<std::string> bytes = file->file->Read(record.offset, record.size);
  if (bytes.ok() && Check(*bytes) != record.check) {
    return absl::DataLossError(
        absl::StrCat("spooled data in ", options_.directory, " was changed on the disk"));
  }
  return bytes;
}

void Spool::Release(const Record& record) {
  MutexLock lock(mutex_);
  const auto found = files_.find(record.file);
  if (found == files_.end() || --found->second->records > 0) return;
  bytes_ -= found->second->size;
  files_.erase(found);  // closing the unnamed file frees its space
}

int64_t Spool::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

void Spool::Log(const absl::Status& status) {
  std::string message(status.message());
  MutexLock lock(mutex_);
  if (message == failure_) return;
  failure_ = std::move(message);
  if (status.ok()) {
    platform::LogInfo("the spool accepts events and checkpoints again");
  } else {
    platform::LogWarning(failure_,
                         "; training waits when memory is full, until the server accepts events");
  }
}

}  // namespace lengthwise::worker
