// A simulated disk that loses power and fails syncs. After a power loss, unsynced writes are gone
// or torn. After a failed sync, memory shows data that the disk does not have.
//
// The linker puts this library's functions (write, pwrite, fsync, rename, ...) before the C
// library's, also for SQLite, so the code under test runs unmodified. The model is POSIX's, which
// is stricter than most file systems:
//   - Bytes are durable after fsync of their file. Any later write may survive, whole or torn.
//   - Names are durable after fsync of their directory. A file whose name is not durable is lost; a
//     removed name comes back.
//   - A failed sync loses what it should have synced, and later syncs report success. Pages written
//     since the last sync never reach the disk, even if they are written again, until
//     posix_fadvise(POSIX_FADV_DONTNEED) drops them from memory; then reads show the disk. ext4
//     behaves like this on a thin volume that ran out of space. Names created since the last sync
//     of their directory stay volatile until they are created again.
//
// Memory-mapped files (SQLite's "-shm") are not modelled and are gone after a power loss.
#ifndef LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_
#define LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_

#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace lengthwise::faults {

// Only one may exist at a time. Thread-safe except for Restore.
class UnreliableDisk {
 public:
  // Everything below `directory` is on the disk. Empties the directory, which itself is durable.
  explicit UnreliableDisk(std::string directory);
  ~UnreliableDisk();
  UnreliableDisk(const UnreliableDisk&) = delete;
  UnreliableDisk& operator=(const UnreliableDisk&) = delete;

  const std::string& directory() const { return directory_; }

  // Cuts the power at the `operation`-th write, truncation or sync from now, counted from 1. That
  // operation and all later ones fail and change nothing.
  void CutPowerAt(int64_t operation);
  void CutPower() { CutPowerAt(1); }
  bool has_power() const;

  // Makes every write fail with errno `error`, such as ENOSPC or EROFS, until it is set to 0.
  void FailWrites(int error);

  // Makes `count` syncs fail with errno `error`, starting with the `first`-th from now, counted
  // from 1. Each loses what it should have made durable. Replaces an earlier call's setting.
  void FailSyncs(int error, int64_t first = 1,
                 int64_t count = std::numeric_limits<int64_t>::max() - 1);
  // Number of syncs that FailSyncs made fail.
  int64_t failed_syncs() const;
  // Makes every read of a file fail with errno `error`, such as EIO, until it is set to 0.
  void FailReads(int error);

  // Call after a power loss, when no file is open. Writes to the directory what survived, chosen
  // with `random`, and restores the power.
  void Restore(std::mt19937_64& random);

 private:
  const std::string directory_;
};

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_
