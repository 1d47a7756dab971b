#include "server/storage/disk_reserve.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/log.h"

namespace lengthwise::server {

DiskReserve::DiskReserve(std::string path, int64_t bytes, Measure measure)
    : path_(std::move(path)),
      bytes_(bytes),
      measure_(std::move(measure)),
      // Not if a process ended while it was made.
      is_taken_([this] {
        const auto file = platform::GetFileStatus(path_);
        return file.ok() && file->size >= bytes_;
      }()) {}

absl::Status DiskReserve::room() const {
  platform::MutexLock lock(mutex_);
  return room_;
}

void DiskReserve::SetRoom(const absl::Status& room) {
  platform::MutexLock lock(mutex_);
  if (room.ok() != room_.ok()) {
    if (room.ok()) {
      platform::LogInfo("there is space on the disk again: new data is accepted");
    } else {
      platform::LogError(room.message());
    }
  }
  room_ = room;
}

int64_t DiskReserve::FreeBytes() const {
  const absl::StatusOr<platform::DiskSpace> disk = measure_(platform::DirectoryOf(path_));
  return disk.ok() ? disk->free_bytes : std::numeric_limits<int64_t>::max();
}

void DiskReserve::Take() {
  if (bytes_ == 0 || is_taken_ || is_impossible_) return;
  const int64_t needed = bytes_ + kMargin;
  if (FreeBytes() >= needed) {
    const absl::Status status = platform::AllocateFile(path_, bytes_);
    is_taken_ = status.ok();
    if (!is_taken_) platform::DeleteFile(path_).IgnoreError();
    // Such as a limit of file sizes. Writes fail with errors of their own.
    is_impossible_ = !is_taken_ && FreeBytes() >= needed;
    if (is_impossible_) {
      platform::LogWarning("no space is kept for deletions on a full disk: ", status.message());
    }
  }
  SetRoom(is_taken_ || is_impossible_
              ? absl::OkStatus()
              : absl::ResourceExhaustedError(absl::StrCat(
                    "disk full: ", platform::DirectoryOf(path_), " has ", FreeBytes() >> 20,
                    " MiB free, and new data needs ", needed >> 20,
                    "; free some space, for example with `lengthwise delete EXPERIMENT`, nothing "
                    "stored is lost")));
}

bool DiskReserve::GiveUp() {
  if (bytes_ == 0 || !is_taken_) return false;
  // One write was larger than the space that is left, or a quota of the user ended it.
  if (FreeBytes() >= kMargin) return false;
  is_taken_ = false;
  const bool made_room = platform::DeleteFile(path_).ok();
  Take();
  return made_room;
}

}  // namespace lengthwise::server
