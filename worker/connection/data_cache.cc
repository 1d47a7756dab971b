#include "worker/connection/data_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".jsonl";

// Older temporary files are leftovers of killed workers: no download takes this long.
constexpr std::chrono::hours kOldTemporaryFile(24);

// Cached files are SHA256.jsonl, unfinished ones SHA256.jsonl.XXXXXX.tmp. Others are a user's.
bool IsOfTheCache(const std::string& name) {
  const size_t hash = name.find(kSuffix);
  return hash != std::string::npos && platform::IsSha256Hex(name.substr(0, hash));
}

bool HasHash(const std::string& path, absl::string_view sha256) {
  platform::Sha256 hash;
  const absl::Status read = platform::ReadFileInChunks(path, [&](absl::string_view chunk) {
    hash.Update(chunk);
    return true;
  });
  return read.ok() && hash.Finish() == sha256;
}

}  // namespace

absl::StatusOr<std::string> DataCache::Get(absl::string_view sha256, const Fetch& fetch) {
  if (!platform::IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", sha256, "\" is not 64 lower-case hexadecimal digits"));
  }
  const std::string file = absl::StrCat("/", sha256, kSuffix);
  if (const std::string other = absl::StrCat(options_.other_directory, file);
      !options_.other_directory.empty() && HasHash(other, sha256)) {
    return other;
  }
  const std::string path = absl::StrCat(options_.directory, file);
  if (HasHash(path, sha256)) {
    // An error only lets the file be evicted earlier.
    std::error_code ignored;
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return path;
  }
  std::error_code ignored;
  const bool is_new = !fs::exists(options_.directory, ignored);
  RETURN_IF_ERROR(platform::CreateDirectories(options_.directory));
  if (is_new) fs::permissions(options_.directory, fs::perms::owner_all, ignored);
  // A new file takes the place of no pipe.
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    RETURN_IF_ERROR(platform::DeleteFile(path));
  }
  ASSIGN_OR_RETURN(const auto written, platform::AtomicFile::Create(path));
  platform::Sha256 hash;
  RETURN_IF_ERROR(fetch([&](absl::string_view chunk) {
    hash.Update(chunk);
    return written->Append(chunk);
  }));
  // Before Commit: only then does the file appear under the name that promises its contents.
  if (const std::string got = hash.Finish(); got != sha256) {
    return absl::DataLossError(
        absl::StrCat("a downloaded data file is damaged: its SHA-256 is ", got, ", not ", sha256));
  }
  RETURN_IF_ERROR(written->Commit());
  Shrink(path);
  return path;
}

void DataCache::Shrink(const std::string& kept) const {
  struct Cached {
    fs::file_time_type used;
    int64_t bytes = 0;
    fs::path path;
  };
  std::vector<Cached> files;
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(options_.directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsOfTheCache(entry->path().filename().string())) continue;
    std::error_code gone;  // deleted by another worker since it was listed
    const auto size = static_cast<int64_t>(entry->file_size(gone));
    const auto used = entry->last_write_time(gone);
    if (!gone && entry->path().extension().string() == platform::kTemporarySuffix &&
        used < fs::file_time_type::clock::now() - kOldTemporaryFile) {
      platform::DeleteFile(entry->path().string()).IgnoreError();  // left by a killed worker
    }
    if (gone || entry->path().extension() != kSuffix) continue;
    bytes += size;
    if (entry->path() != kept) files.push_back({used, size, entry->path()});
  }
  std::sort(files.begin(), files.end(),
            [](const Cached& a, const Cached& b) { return a.used < b.used; });
  for (const Cached& file : files) {
    if (bytes <= options_.max_bytes) return;
    // Another worker may have deleted it. A file that cannot be deleted is tried again after the
    // next download.
    platform::DeleteFile(file.path.string()).IgnoreError();
    bytes -= file.bytes;
  }
}

}  // namespace lengthwise::worker
