#include "server/storage/shared_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "platform/descriptors.h"
#include "platform/log.h"
#include "platform/printable_text.h"
#include "platform/random.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::server {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kLock = "lengthwise_store.lock";
constexpr absl::string_view kKeys = "checkpoint_store.json";
constexpr char kMarkFormat[] = "lengthwise.checkpoint_store.1";
constexpr size_t kKeyDigits = 32;
constexpr absl::string_view kTakeOver = "--take_over_artifacts";

template <typename... Why>
absl::Status Refuse(const std::string& directory, const Why&... why) {
  return absl::FailedPreconditionError(absl::StrCat("--artifacts ", directory, ": ", why...));
}

// A member of a JSON text; empty if the text is damaged or has no such string.
std::string TextOf(const std::string& text, const char* name) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return "";
  return json[name].get<std::string>();
}

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool IsInside(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [end, rest] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end();
}

// Without symbolic links and a slash at the end, as far as the path exists.
std::filesystem::path Canonical(const std::string& path) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::weakly_canonical(
      std::filesystem::absolute(std::string(absl::StripSuffix(path, "/"))), error);
  return error ? std::filesystem::path(path).lexically_normal() : full;
}

absl::Status CheckPath(const SharedStore::Options& options) {
  const auto wrong = [](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("--artifacts: ", why));
  };
  if (!platform::IsPrintable(options.directory)) {
    return wrong("the path must be UTF-8 without control characters");
  }
  if (!absl::StartsWith(options.directory, "/")) {
    return wrong(absl::StrCat("got ", options.directory, ", accepted is an absolute path"));
  }
  const std::filesystem::path directory = Canonical(options.directory);
  const std::filesystem::path data_dir = Canonical(options.data_dir);
  if (IsInside(directory, data_dir) || IsInside(data_dir, directory)) {
    return wrong(absl::StrCat(
        options.directory, " and --data_dir ", options.data_dir,
        " must not contain each other; leave out --artifacts to keep checkpoints there"));
  }
  return absl::OkStatus();
}

// A mount point exists while nothing is mounted there, a directory below it does not.
bool IsMountPoint(const std::string& directory) {
  struct stat status;
  struct stat above;
  return stat(directory.c_str(), &status) == 0 &&
         stat(absl::StrCat(directory, "/..").c_str(), &above) == 0 &&
         (status.st_dev != above.st_dev || status.st_ino == above.st_ino);
}

// Creates the first mark. ALREADY_EXISTS if another server created one meanwhile.
absl::Status CreateMark(const std::string& directory, const std::string& path,
                        const std::string& text) {
  std::string temporary = absl::StrCat(path, ".XXXXXX", platform::kTemporarySuffix);
  {
    const platform::Descriptor file(mkostemps(
        temporary.data(), static_cast<int>(platform::kTemporarySuffix.size()), O_CLOEXEC));
    if (!file.is_open()) return platform::FileError(errno, "create a file beside", path);
    if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        fsync(file.get()) != 0) {
      const absl::Status status = platform::FileError(errno, "write", path);
      unlink(temporary.c_str());
      return status;
    }
  }
  const int error = link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  if (error == EEXIST) return absl::AlreadyExistsError(absl::StrCat(path, " exists"));
  // Without hard links, the lock alone keeps another server from doing the same.
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {
    return platform::WriteFileAtomically(path, text);
  }
  if (error != 0) return platform::FileError(error, "create", path);
  return platform::SyncDirectory(directory);
}

// Creates the directory, but not its parents: below an unmounted directory they are missing.
absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0777) != 0) {
    const int error = errno;
    return Refuse(directory, platform::FileError(error, "create", directory).message(),
                  "; mount the file system and create the parent "
                  "directory, writable for the server's user");
  }
  return platform::SyncDirectory(std::filesystem::path(directory).parent_path().string());
}

absl::StatusOr<std::unique_ptr<platform::FileLock>> Lock(const std::string& directory) {
  auto lock = platform::FileLock::Acquire(absl::StrCat(directory, "/", kLock));
  if (lock.ok()) return lock;
  return Refuse(directory, lock.status().message(),
                absl::IsAborted(lock.status())
                    ? "; another server uses this directory: stop it or "
                      "choose another directory"
                    : "; the file system must be writable and have locks "
                      "(Lustre: mount option flock)");
}

// nullopt if there is no file.
absl::StatusOr<std::optional<std::string>> ReadIfAny(const std::string& path) {
  absl::StatusOr<std::string> text = platform::ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedStore>> SharedStore::Open(const Options& options) {
  RETURN_IF_ERROR(CheckPath(options));
  const std::string directory = Canonical(options.directory).string();
  const std::string mark = absl::StrCat(directory, "/", kStoreMark);
  const auto not_mounted = [&] {
    return Refuse(directory, "the mark ", kStoreMark, " is missing, but the database in ",
                  options.data_dir,
                  " names checkpoints; mount the file system, or see \"Move "
                  "checkpoints\" in docs/checkpoint_stores.md");
  };
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    if (options.has_checkpoints) return not_mounted();
    RETURN_IF_ERROR(MakeDirectory(directory));
  }
  if (IsMountPoint(directory)) {
    return Refuse(directory,
                  "this is a mount point, which looks empty while nothing is mounted; choose a "
                  "subdirectory");
  }
  // Before the lock file, so that nothing is created in a directory of others.
  ASSIGN_OR_RETURN(const auto names, platform::ListDirectory(directory));
  const bool is_marked = std::find(names.begin(), names.end(), kStoreMark) != names.end();
  if (!is_marked && !options.take_over) {
    if (options.has_checkpoints) return not_mounted();
    for (const std::string& name : names) {
      if (name == kLock || platform::WithoutTemporarySuffix(name) == kStoreMark) continue;
      return Refuse(directory, "it holds other files (", name,
                    "); choose a new or empty directory");
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<platform::FileLock> lock, Lock(directory));

  ASSIGN_OR_RETURN(const std::optional<std::string> old_mark, ReadIfAny(mark));
  ASSIGN_OR_RETURN(const std::string text,
                   NextMark(directory, options.data_dir, old_mark, options.take_over));
  const absl::Status marked = old_mark.has_value() ? platform::WriteFileAtomically(mark, text)
                                                   : CreateMark(directory, mark, text);
  if (absl::IsAlreadyExists(marked)) {
    return Refuse(directory, "another server marked it at the same time; choose another directory");
  }
  RETURN_IF_ERROR(marked);
  RETURN_IF_ERROR(platform::DeleteTemporaryFilesOf(mark));
  RETURN_IF_ERROR(platform::DeleteTemporaryFilesOf(absl::StrCat(options.data_dir, "/", kKeys)));
  return std::unique_ptr<SharedStore>(new SharedStore(directory, text, std::move(lock)));
}

absl::StatusOr<std::string> NextMark(const std::string& place, const std::string& data_dir,
                                     const std::optional<std::string>& old_mark, bool take_over) {
  const std::string keys = absl::StrCat(data_dir, "/", kKeys);
  ASSIGN_OR_RETURN(const std::optional<std::string> read, ReadIfAny(keys));
  const std::string known = read.value_or("");
  const std::string key = TextOf(old_mark.value_or(""), "key");
  const bool is_ours =
      !key.empty() && (key == TextOf(known, "key") || key == TextOf(known, "next_key"));
  if (old_mark.has_value() && !is_ours && !take_over) {
    const std::string owner = TextOf(*old_mark, "data_dir");
    return Refuse(
        place, "its mark ", kStoreMark, " belongs to ",
        owner.empty() ? "an unknown data directory" : absl::StrCat("the data directory ", owner),
        owner == Canonical(data_dir).string() ? " in another state" : "", ", not to ", data_dir,
        ". Choose another place; or, if this data directory replaces that one for "
        "good, start it once with ",
        kTakeOver);
  }
  ASSIGN_OR_RETURN(const std::string next_key, platform::RandomHex(kKeyDigits));
  // Accept both keys first: the server may die before the mark has the new one.
  RETURN_IF_ERROR(platform::WriteFileAtomically(keys, Dump({{"format", kMarkFormat},
                                                            {"directory", place},
                                                            {"key", is_ours ? key : ""},
                                                            {"next_key", next_key}})));
  if (old_mark.has_value() && !is_ours) {
    platform::LogWarning("took over the checkpoints in ", place, " for ", data_dir, " (", kTakeOver,
                         ")");
  }
  return Dump({{"format", kMarkFormat},
               {"key", next_key},
               {"data_dir", Canonical(data_dir).string()},
               {"note", "Marks the checkpoints of a Lengthwise server. Do not edit this file."}});
}

absl::Status SharedStore::Check() const {
  const std::string path = absl::StrCat(directory_, "/", kStoreMark);
  const auto unavailable = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("the checkpoints in ", directory_,
                                               " cannot be used now: ", why,
                                               "; is the file system mounted?"));
  };
  const absl::StatusOr<std::string> mark = platform::ReadFile(path);
  if (!mark.ok()) return unavailable(mark.status().message());
  if (*mark != mark_) {
    return unavailable(absl::StrCat(path, " belongs to another server, or to a later start"));
  }
  return absl::OkStatus();
}

absl::Status CheckNeedsNoSharedStore(const std::string& data_dir) {
  const std::string path = absl::StrCat(data_dir, "/", kKeys);
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfAny(path));
  if (!text.has_value()) return absl::OkStatus();
  const std::string directory = TextOf(*text, "directory");
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoints of ", data_dir, " are in ", directory.empty() ? "a shared store" : directory,
      "; start the server with --artifacts",
      directory.empty() ? " DIR" : absl::StrCat(" ", directory),
      ", or move them back first (docs/checkpoint_stores.md, \"Move checkpoints\")"));
}

absl::Status RequireSharedStore(const std::string& data_dir) {
  return platform::WriteFileAtomically(
      absl::StrCat(data_dir, "/", kKeys),
      Dump({{"format", kMarkFormat}, {"directory", ""}, {"key", ""}, {"next_key", ""}}));
}

bool IsArtifactFile(absl::string_view name) {
  return name.size() > 64 && platform::IsSha256Hex(name.substr(0, 64)) &&
         (name.substr(64) == ".safetensors" || name.substr(64) == ".json" ||
          name.substr(64) == ".jsonl");
}

bool IsTemporaryArtifactFile(absl::string_view name) {
  return IsArtifactFile(platform::WithoutTemporarySuffix(name));
}

}  // namespace lengthwise::server
