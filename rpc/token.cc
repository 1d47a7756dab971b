#include "rpc/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"

namespace lengthwise::rpc {
namespace {

constexpr absl::string_view kPrefix = "lw_";

}  // namespace

std::string FormatTokenText(const TokenText& token) {
  return absl::StrCat(kPrefix, token.token_id, "_", token.secret);
}

absl::StatusOr<TokenText> ParseTokenText(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kPrefix) &&
      rest.size() == kTokenIdDigits + 1 + kTokenSecretDigits && rest[kTokenIdDigits] == '_') {
    const absl::string_view id = rest.substr(0, kTokenIdDigits);
    const absl::string_view secret = rest.substr(kTokenIdDigits + 1);
    if (platform::IsHex(id, kTokenIdDigits) && platform::IsHex(secret, kTokenSecretDigits)) {
      return TokenText{std::string(id), std::string(secret)};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("this is no token; expected lw_, ", kTokenIdDigits,
                                                 " digits, _ and ", kTokenSecretDigits,
                                                 " digits, all hexadecimal and lower-case"));
}

bool IsWebToken(absl::string_view text) {
  // The base64url of a JSON object begins so.
  if (text.size() > kMaxTokenBytes || !absl::StartsWith(text, "ey")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  const auto is_digit = [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; };
  return parts.size() == 3 && absl::c_all_of(parts, [&](absl::string_view part) {
           return !part.empty() && absl::c_all_of(part, is_digit);
         });
}

bool IsTokenId(absl::string_view text) { return platform::IsHex(text, kTokenIdDigits); }

absl::Status WriteTokenFile(const std::string& path, absl::string_view token_text) {
  const platform::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    if (errno == EEXIST) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, " exists already; choose another file, or delete it"));
    }
    absl::Status error = platform::FileError(errno, "create", path);
    if (!absl::IsNotFound(error)) return error;
    return absl::NotFoundError(
        absl::StrCat(error.message(), "; make its directory, or name another file"));
  }
  const std::string line = absl::StrCat(token_text, "\n");
  if (write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      fsync(file.get()) == 0) {
    return absl::OkStatus();
  }
  absl::Status error = platform::FileError(errno, "write", path);
  unlink(path.c_str());
  return error;
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    absl::Status error = platform::FileError(errno, "read the token file", path);
    if (!absl::IsNotFound(error)) return error;
    return absl::NotFoundError(absl::StrCat(
        error.message(), "; set token_file to the one that an administrator gave you"));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", path, " is not a regular file"));
  }
  if ((status.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("other users may read the token file ", path, "; run `chmod 600 ", path, "`"));
  }
  // Reads no more than a token can have: the path may name a large file.
  if (status.st_size > static_cast<off_t>(kMaxTokenBytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the token file ", path, " holds no token"));
  }
  ASSIGN_OR_RETURN(std::string content, platform::ReadFile(path));
  std::string text(absl::StripAsciiWhitespace(content));
  if (!ParseTokenText(text).ok() && !IsWebToken(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", path, " holds no token such as lw_... or a JWT; ask an ",
                     "administrator for one, or make one with `lengthwise auth create-token`"));
  }
  return text;
}

platform::FileStatus TokenFile::CurrentVersion() const {
  return platform::GetFileStatus(path_).value_or(platform::FileStatus());
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(
    const std::string& path, std::function<void(const std::string&)> warn) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, std::move(warn)));
  platform::MutexLock lock(file->mutex_);
  // Taken before the content, so that a change in between triggers another reload.
  file->version_ = file->reported_ = file->CurrentVersion();
  ASSIGN_OR_RETURN(file->token_, ReadTokenFile(path));
  return file;
}

std::string TokenFile::token() {
  platform::MutexLock lock(mutex_);
  const platform::FileStatus version = CurrentVersion();
  if (version == version_) return token_;
  absl::StatusOr<std::string> token = ReadTokenFile(path_);
  if (token.ok()) {
    token_ = *std::move(token);
    version_ = version;
  } else if (version != reported_ && warn_) {
    warn_(absl::StrCat(token.status().message(), "; the earlier token stays in use"));
  }
  reported_ = version;
  return token_;
}

}  // namespace lengthwise::rpc
