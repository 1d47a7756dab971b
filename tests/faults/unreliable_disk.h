// A disk that loses power: what a program wrote and did not sync is gone afterwards, or half there.
// And one that fails and forgets: after a failed sync, memory shows what the disk does not have.
//
// The linker puts this library's functions (write, pwrite, fsync, rename, ...) before the C
// library's, also for SQLite: the code under test runs as it is. The model is POSIX's, stricter
// than most file systems:
//   - bytes are durable after fsync of their file; of the writes behind it, any may survive, whole
//     or torn;
//   - names are durable after fsync of their directory; a file whose name is not is lost, a name
//     that was taken away comes back.
//   - a failed sync loses what was to be synced, and later syncs report success. Pages that were
//     written since the last sync do not reach the disk any more, even if they are written again,
//     until posix_fadvise(POSIX_FADV_DONTNEED) drops them from memory: reads show the disk then.
//     ext4 does so on a thin volume that had run out of space. Names that were made since the last
//     sync of their directory stay undurable until they are made again.
// Memory-mapped files (SQLite's "-shm") are not modelled and are gone after a loss of power.
#ifndef LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_
#define LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_

#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace lengthwise::faults {

// One at a time. Thread-safe, but for Restore.
class UnreliableDisk {
 public:
  // Everything under `directory`, which is made empty, is on the disk; the directory itself is
  // durable.
  explicit UnreliableDisk(std::string directory);
  ~UnreliableDisk();
  UnreliableDisk(const UnreliableDisk&) = delete;
  UnreliableDisk& operator=(const UnreliableDisk&) = delete;

  const std::string& directory() const { return directory_; }

  // The power goes at the `operation`-th write, truncation or sync from now, from 1: that one and
  // everything later fails and changes nothing.
  void CutPowerAt(int64_t operation);
  void CutPower() { CutPowerAt(1); }
  bool has_power() const;

  // Every write fails with errno `error`, such as ENOSPC or EROFS, until it is set to 0.
  void FailWrites(int error);

  // `count` syncs fail with errno `error`, beginning with the `first`-th from now, from 1. Each
  // forgets what it should have made durable. Replaces what an earlier call asked for.
  void FailSyncs(int error, int64_t first = 1,
                 int64_t count = std::numeric_limits<int64_t>::max() - 1);
  // Syncs that have failed because of FailSyncs.
  int64_t failed_syncs() const;
  // Every read of a file fails with errno `error`, such as EIO, until it is set to 0.
  void FailReads(int error);

  // After a loss of power, when nobody has a file open any more: puts on the directory what the
  // loss left, by the draws of `random`, and gives power again.
  void Restore(std::mt19937_64& random);

 private:
  const std::string directory_;
};

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_UNRELIABLE_DISK_H_
