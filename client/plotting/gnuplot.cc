#include "client/plotting/gnuplot.h"

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/rendering/user_file.h"
#include "platform/child_process.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

// An unreachable server is UNAVAILABLE to callers; a full disk here is not that.
absl::Status Unwritten(const absl::Status& status) {
  return absl::FailedPreconditionError(status.message());
}

absl::StatusOr<std::string> MakeTemporaryDirectory() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = absl::StrCat(parent != nullptr && *parent != '\0' ? parent : "/tmp",
                                  "/lengthwise-plot-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return Unwritten(platform::FileError(errno, "make a directory like", path));
  }
  return path;
}

absl::Status RunGnuplot(const GnuplotOptions& options, const std::string& script,
                        const std::string& log) {
  auto process =
      platform::ChildProcess::Start({.arguments = {options.program, script}, .output_file = log});
  if (absl::IsNotFound(process.status())) {
    return absl::FailedPreconditionError(
        "pictures are drawn by gnuplot, which is not installed: `apt-get install gnuplot-nox`; "
        "without it --terminal draws curves here");
  }
  if (!process.ok()) return Unwritten(process.status());
  const auto exit = (*process)->WaitFor(options.timeout);
  if (!exit.has_value()) {
    return absl::InternalError(
        absl::StrCat("gnuplot did not end within ", absl::FormatDuration(options.timeout)));
  }
  if (exit->ok()) return absl::OkStatus();
  std::string said = platform::ReadFile(log).value_or("");
  return absl::InternalError(absl::StrCat("gnuplot ", exit->ToString(), " and said:\n",
                                          std::string(absl::StripAsciiWhitespace(said))));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DrawToMemory(const Figure& figure, const PictureSize& size,
                                                      const std::vector<PictureFormat>& formats,
                                                      const GnuplotOptions& options) {
  const absl::StatusOr<std::string> directory = MakeTemporaryDirectory();
  if (!directory.ok()) return directory.status();
  const absl::Cleanup delete_directory = [&] { platform::DeleteTree(*directory).IgnoreError(); };
  std::vector<Picture> drawn;
  for (const PictureFormat format : formats) {
    drawn.push_back({format, absl::StrCat(*directory, "/picture", drawn.size())});
  }
  const absl::StatusOr<std::string> script = GnuplotScript(figure, size, drawn);
  if (!script.ok()) return script.status();
  const std::string script_path = *directory + "/figure.gp";
  if (absl::Status status = platform::WriteFileAtomically(script_path, *script); !status.ok()) {
    return Unwritten(status);
  }
  if (absl::Status status = RunGnuplot(options, script_path, *directory + "/log"); !status.ok()) {
    return status;
  }
  std::vector<std::string> pictures;
  for (const Picture& picture : drawn) {
    absl::StatusOr<std::string> bytes = platform::ReadFile(picture.path);
    // It exits with 0 also where it could not write all of a file.
    if (!bytes.ok() || bytes->empty()) {
      return absl::InternalError(
          absl::StrCat("gnuplot made no picture; it said:\n",
                       platform::ReadFile(*directory + "/log").value_or("nothing")));
    }
    pictures.push_back(*std::move(bytes));
  }
  return pictures;
}

absl::Status DrawPictures(const Figure& figure, const PictureSize& size,
                          const std::vector<Picture>& pictures, const GnuplotOptions& options) {
  std::vector<PictureFormat> formats;
  for (const Picture& picture : pictures) formats.push_back(picture.format);
  const auto drawn = DrawToMemory(figure, size, formats, options);
  if (!drawn.ok()) return drawn.status();
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (absl::Status status = WriteForUser(pictures[i].path, (*drawn)[i]); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
