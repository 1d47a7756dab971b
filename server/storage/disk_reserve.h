// DiskReserve: a file that keeps back space of the data directory's disk for deletions.
//
// A deletion is a write to the database, so it needs space. When the disk is full, the server gives
// up the file, refuses everything that brings new data, and still deletes experiments, by which
// people make room. Once there is room it takes the file again and goes on.
#ifndef LENGTHWISE_SERVER_STORAGE_DISK_RESERVE_H_
#define LENGTHWISE_SERVER_STORAGE_DISK_RESERVE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/files.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe, except that Take and GiveUp are for one thread.
class DiskReserve {
 public:
  // Free space that must be there beside the reserve, so that it is not taken in vain. With less
  // free space, the disk is full.
  static constexpr int64_t kMargin = int64_t{4} << 20;
  using Measure = std::function<absl::StatusOr<platform::DiskSpace>(const std::string&)>;

  // `bytes` 0: there is no reserve and room() is always OK.
  DiskReserve(std::string path, int64_t bytes, Measure measure = platform::GetDiskSpace);

  // Takes the space unless it is taken already, or there is too little of it.
  void Take();
  // Gives the space up after a write that failed, if the disk is full. True if that made room.
  bool GiveUp();
  // RESOURCE_EXHAUSTED, with a reason, while there is only room for deletions.
  absl::Status room() const;

 private:
  // As much as there can be if it is unknown.
  int64_t FreeBytes() const;
  void SetRoom(const absl::Status& room);

  const std::string path_;
  const int64_t bytes_;
  const Measure measure_;
  bool is_taken_ = false;
  bool is_impossible_ = false;
  mutable platform::Mutex mutex_;
  absl::Status room_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_DISK_RESERVE_H_
