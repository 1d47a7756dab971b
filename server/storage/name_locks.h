// NameLocks: keeps what is stored under a name and what deletes it apart. Nobody waits: who finds a
// name taken tries again later.
#ifndef LENGTHWISE_SERVER_STORAGE_NAME_LOCKS_H_
#define LENGTHWISE_SERVER_STORAGE_NAME_LOCKS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe. Outlives its locks.
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

  // For those who store. Null while somebody owns the name.
  std::unique_ptr<Lock> Share(const std::string& name) {
    platform::MutexLock lock(mutex_);
    int& holders = holders_[name];
    if (holders < 0) return nullptr;
    ++holders;
    return std::make_unique<Lock>(*this, name);
  }
  // For the one who deletes. Null while others hold the name.
  std::unique_ptr<Lock> Own(const std::string& name) {
    platform::MutexLock lock(mutex_);
    if (!holders_.try_emplace(name, -1).second) return nullptr;
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

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_NAME_LOCKS_H_
