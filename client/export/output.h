// What an export writes: one file, or a directory of files, that appears whole or not at all and
// does not take the place of what is not an export's.
#ifndef LENGTHWISE_CLIENT_EXPORT_OUTPUT_H_
#define LENGTHWISE_CLIENT_EXPORT_OUTPUT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::client {

// A file of an Output that is being written. Not thread-safe. Errors name the file that the user
// will see and say what to do: FAILED_PRECONDITION.
class OutputFile {
 public:
  // A file that is not closed is deleted.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // CANCELLED where the Output's `stop` says so.
  absl::Status Append(absl::string_view data);
  absl::Status Close();

 private:
  friend class Output;
  OutputFile(int descriptor, std::string path, std::string shown, std::function<bool()> stop)
      : descriptor_(descriptor),
        path_(std::move(path)),
        shown_(std::move(shown)),
        stop_(std::move(stop)) {}
  absl::Status Flush();

  int descriptor_;
  const std::string path_;
  const std::string shown_;  // its path after the commit
  const std::function<bool()> stop_;
  std::string buffer_;
};

class Output {
 public:
  enum class Kind { kFile, kDirectory };

  // Name of the file that Commit's caller writes into every directory: what says that the directory
  // is an export, and may be replaced by another.
  static constexpr char kManifest[] = "export.json";

  // Everything is written beside `path` under another name until Commit. FAILED_PRECONDITION:
  // nothing can be written there, or something is there already and `replace` is not set;
  // a directory that is neither empty nor an export is not replaced at all.
  static absl::StatusOr<std::unique_ptr<Output>> Create(const std::string& path, Kind kind,
                                                        bool replace);
  // Without Commit everything is deleted.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Asked about each MiB that is written, of files that are opened from now on.
  void set_stop(std::function<bool()> stop) { stop_ = std::move(stop); }

  // The file itself (`name` is empty), or a file of the directory; "a/b.txt" makes "a", too.
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& name = "");
  // A whole file.
  absl::Status Write(const std::string& name, absl::string_view data);

  // Gives everything its name. All files are closed.
  absl::Status Commit();

 private:
  Output(std::string path, std::string temporary, Kind kind)
      : path_(std::move(path)), temporary_(std::move(temporary)), kind_(kind) {}

  const std::string path_;
  const std::string temporary_;
  const Kind kind_;
  std::function<bool()> stop_;
  bool committed_ = false;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_OUTPUT_H_
