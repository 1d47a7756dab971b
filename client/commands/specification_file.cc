#include "client/commands/specification_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "catalogue/suggestion.h"
#include "client/display/numbers.h"
#include "platform/status_macros.h"
#include "specification/catalogues.h"
#include "specification/parse.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

// Suggests a file in the folder of `path` with a similar name, or another next step.
std::string DidYouMean(const std::string& path) {
  const std::filesystem::path given(path);
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path directory = given.has_parent_path() ? given.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (specification::FormatOfFile(entry.path().string()).ok()) {
      names.push_back(entry.path().filename().string());
    }
  }
  const std::string suggestion = catalogue::Suggestion(given.filename().string(), names);
  return absl::StrContains(suggestion, "did you mean") ? suggestion
                                                       : "; name a file, or - for standard input";
}

}  // namespace

std::string ReadySpecification(const std::string& name) {
  std::error_code error;
  if (specification::FormatOfFile(name).ok() || std::filesystem::exists(name, error)) return "";
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path file =
      self.parent_path().parent_path() / "share/lengthwise/experiments" / (name + ".yaml");
  return std::filesystem::is_regular_file(file, error) ? file.string() : "";
}

absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& given) {
  v1::SpecificationText text;
  if (given == "-") {
    text.set_format(v1::SpecificationText::YAML);
    text.set_text(std::string(std::istreambuf_iterator<char>(std::cin), {}));
    return text;
  }
  const std::string ready = ReadySpecification(given);
  const std::string& path = ready.empty() ? given : ready;
  ASSIGN_OR_RETURN(const auto format, specification::FormatOfFile(path));
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, " (it is a directory); name a file in it"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int reason = errno;
    const std::string advice =
        reason == ENOENT ? DidYouMean(path)
        : reason == EACCES
            ? absl::StrCat("; its owner lets you read it with `chmod a+r ", path, "`")
            : "; name another file, or - for standard input";
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, " (", std::strerror(reason), ")", advice));
  }
  text.set_format(format);
  text.set_text(std::string(std::istreambuf_iterator<char>(file), {}));
  return text;
}

absl::StatusOr<ResolvedFile> ResolveFile(const std::string& path,
                                         const v1::SpecificationText& text) {
  // The status is not sent over the network, so every problem can be listed.
  const specification::Limits limits{.max_problem_bytes = 1 << 20};
  ResolvedFile resolved;
  absl::StatusOr<specification::Grid> grid;
  if (static_cast<int64_t>(text.text().size()) > limits.max_text_bytes) {
    grid = specification::Resolve(text, limits);  // reports the error
  } else {
    specification::Parsed parsed = specification::Parse(text.format(), text.text());
    const std::string ready = ReadySpecification(path);
    resolved.examples = AttachExamples(ready.empty() ? path : ready, parsed);
    grid = specification::ResolveWith(specification::AllCatalogues(), std::move(parsed), limits);
  }
  if (grid.ok()) {
    resolved.grid = *std::move(grid);
    return resolved;
  }
  if (!absl::IsInvalidArgument(grid.status())) return grid.status();
  return absl::InvalidArgumentError(
      absl::StrCat(path == "-" ? "the specification" : path, " is not valid:\n  ",
                   absl::StrReplaceAll(grid.status().message(), {{"\n", "\n  "}})));
}

std::string DescribeGrid(const specification::Grid& grid) {
  std::set<std::string> packs;
  for (const specification::GridTrial& trial : grid.trials) packs.insert(trial.pack->key);
  return absl::StrCat(Counted(static_cast<int64_t>(grid.trials.size()), "trial"), " in ",
                      Counted(static_cast<int64_t>(packs.size()), "pack"));
}

}  // namespace lengthwise::client
