// Names in a server's data directory and in backups. Shared with the client, which looks for them
// before it starts a private server.
#ifndef LENGTHWISE_PLATFORM_DATA_DIRECTORY_NAMES_H_
#define LENGTHWISE_PLATFORM_DATA_DIRECTORY_NAMES_H_

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

inline constexpr absl::string_view kDatabaseFile = "lengthwise.db";
// Locked while a server uses the directory.
inline constexpr absl::string_view kLockFile = "LOCK";
// Space for deletions on a full disk.
inline constexpr absl::string_view kReserveFile = "RESERVE";
// Shared by the programs that use the server on the directory. A private server ends after them.
inline constexpr absl::string_view kUsersFile = "USERS";
inline constexpr absl::string_view kArtifactsDirectory = "artifacts";
inline constexpr absl::string_view kBackupsDirectory = "backups";
inline constexpr absl::string_view kBackupManifest = "manifest.json";

// True for a backup, which a server must not use as its data directory, because it would change the
// files. A backup that a server of release 0.2.0 has opened, so that it has a lock, is a data
// directory.
inline bool IsBackup(absl::string_view directory) {
  const auto has = [&](absl::string_view name) {
    std::error_code error;
    return std::filesystem::exists(absl::StrCat(directory, "/", name), error);
  };
  return has(kBackupManifest) && has(kDatabaseFile) && !has(kLockFile);
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_DATA_DIRECTORY_NAMES_H_
