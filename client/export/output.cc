#include "client/export/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;

// Never UNAVAILABLE, which would read as if the server were.
absl::Status Unwritten(int error, absl::string_view action, absl::string_view path) {
  absl::string_view advice = "choose another place with -o PATH";
  if (error == ENOSPC || error == EDQUOT) {
    advice = "free some space, or choose another place with -o PATH";
  } else if (error == ENOENT) {
    advice = "make its directory first, or choose another place with -o PATH";
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", action, " ", path, ": ", strerror(error), "; ", advice));
}

// "a/b/" is "a/b", and a link is what it leads to.
std::string Resolve(const std::string& path) {
  fs::path clean = fs::path(path).lexically_normal();
  if (!clean.has_filename() && clean.has_relative_path()) clean = clean.parent_path();
  std::error_code error;
  if (fs::is_symlink(clean, error)) {
    const fs::path target = fs::weakly_canonical(clean, error);
    if (!error) return target.string();
  }
  return clean.string();
}

absl::Status CheckFree(const std::string& path, Output::Kind kind, bool replace) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (there.type() == fs::file_type::not_found) return absl::OkStatus();
  if (error) return Unwritten(error.value(), "look at", path);
  const bool is_directory = there.type() == fs::file_type::directory;
  if (is_directory != (kind == Output::Kind::kDirectory) ||
      (!is_directory && there.type() != fs::file_type::regular)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     is_directory ? " is a directory, and this export is one file"
                                  : " is a file, and this export is a directory of files",
                     "; choose another place with -o PATH"));
  }
  if (is_directory) {
    if (fs::is_empty(path, error) && !error) return absl::OkStatus();
    // Whoever names a home directory by mistake keeps it.
    if (!fs::exists(fs::path(path) / Output::kManifest, error)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       " has files that are not an export's, which are not replaced; choose "
                       "another place with -o PATH"));
    }
  }
  if (replace) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " is there already; replace it with --force, or choose another place "
                   "with -o PATH"));
}

}  // namespace

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(path_.c_str());
}

absl::Status OutputFile::Append(absl::string_view data) {
  buffer_.append(data.data(), data.size());
  if (buffer_.size() < kBufferBytes) return absl::OkStatus();
  if (stop_ != nullptr && stop_()) return absl::CancelledError("interrupted");
  return Flush();
}

absl::Status OutputFile::Flush() {
  absl::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t count = write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unwritten(errno, "write", shown_);
    rest.remove_prefix(static_cast<size_t>(count));
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Close() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  // A file system over the network may say only now that it is full.
  if (close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    unlink(path_.c_str());
    return Unwritten(error, "write", shown_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Output>> Output::Create(const std::string& given, Kind kind,
                                                       bool replace) {
  const std::string path = Resolve(given);
  if (absl::Status status = CheckFree(path, kind, replace); !status.ok()) return status;
  // Beside it, so that a rename gives it its name. With the permissions that the user gives to new
  // files, not those of temporary ones.
  for (int attempt = 0;; ++attempt) {
    std::string temporary = absl::StrCat(path, ".", getpid(), "-", attempt, ".tmp");
    int made = 0;
    if (kind == Kind::kDirectory) {
      std::error_code error;
      // False without an error where something is there.
      if (!fs::create_directory(temporary, error)) made = error ? error.value() : EEXIST;
    } else {
      const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      made = descriptor < 0 ? errno : 0;
      if (descriptor >= 0) close(descriptor);
    }
    if (made == 0) {
      return std::unique_ptr<Output>(new Output(path, std::move(temporary), kind));
    }
    if (made != EEXIST || attempt > 100) return Unwritten(made, "make", path);
  }
}

Output::~Output() {
  if (!committed_) platform::DeleteTree(temporary_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<OutputFile>> Output::Open(const std::string& name) {
  const std::string path = name.empty() ? temporary_ : absl::StrCat(temporary_, "/", name);
  const std::string shown = name.empty() ? path_ : absl::StrCat(path_, "/", name);
  if (!name.empty()) {
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    if (error) return Unwritten(error.value(), "make the directory of", shown);
  }
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return Unwritten(errno, "write", shown);
  return std::unique_ptr<OutputFile>(new OutputFile(descriptor, path, shown, stop_));
}

absl::Status Output::Write(const std::string& name, absl::string_view data) {
  auto file = Open(name);
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Append(data); !status.ok()) return status;
  return (*file)->Close();
}

absl::Status Output::Commit() {
  std::string old;
  std::error_code error;
  if (kind_ == Kind::kDirectory && fs::exists(path_, error)) {
    // A directory is renamed onto an empty one alone.
    old = temporary_ + ".old";
    if (rename(path_.c_str(), old.c_str()) != 0) return Unwritten(errno, "replace", path_);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int failure = errno;
    if (!old.empty()) rename(old.c_str(), path_.c_str());
    return Unwritten(failure, "make", path_);
  }
  committed_ = true;
  if (!old.empty()) platform::DeleteTree(old).IgnoreError();
  return absl::OkStatus();
}

}  // namespace lengthwise::client
