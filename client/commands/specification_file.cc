#include "client/commands/specification_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

std::string Plural(size_t count, const char* word) {
  return absl::StrCat(FormatCount(static_cast<int64_t>(count)), " ", word, count == 1 ? "" : "s");
}

}  // namespace

absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& path) {
  v1::SpecificationText text;
  if (path == "-") {
    text.set_format(v1::SpecificationText::YAML);
    text.set_text(std::string(std::istreambuf_iterator<char>(std::cin), {}));
    return text;
  }
  const auto format = specification::FormatOfFile(path);
  if (!format.ok()) return format.status();
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, " (it is a directory)"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, " (", std::strerror(errno), ")"));
  }
  text.set_format(*format);
  text.set_text(std::string(std::istreambuf_iterator<char>(file), {}));
  return text;
}

absl::StatusOr<specification::Grid> ResolveFile(const std::string& path,
                                                const v1::SpecificationText& text) {
  auto grid = specification::Resolve(text, specification::Limits());
  if (grid.ok() || !absl::IsInvalidArgument(grid.status())) return grid;
  return absl::InvalidArgumentError(
      absl::StrCat(path == "-" ? "the specification" : path, " is not valid:\n  ",
                   absl::StrReplaceAll(grid.status().message(), {{"\n", "\n  "}})));
}

std::string DescribeGrid(const specification::Grid& grid) {
  std::set<std::string> packs;
  for (const specification::GridTrial& trial : grid.trials) packs.insert(trial.pack->key);
  return absl::StrCat(Plural(grid.trials.size(), "trial"), " in ", Plural(packs.size(), "pack"));
}

}  // namespace lengthwise::client
