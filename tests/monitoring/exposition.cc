#include "tests/monitoring/exposition.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace lengthwise::monitoring_test {
namespace {

// The label names of a line such as "name{a="x",b="y"} 1". Values must not contain quotes.
std::set<std::string> LabelNames(absl::string_view line) {
  std::set<std::string> names;
  const size_t open = line.find('{');
  if (open == absl::string_view::npos) return names;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(line.substr(open + 1, line.rfind('}') - open - 1), '"');
  // Names precede the values: parts 0, 2, 4, ...
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    absl::string_view name = absl::StripSuffix(absl::StripPrefix(parts[i], ","), "=");
    if (name != "le") names.emplace(name);
  }
  return names;
}

}  // namespace

std::map<std::string, ExportedFamily> ParseExposition(absl::string_view text) {
  std::map<std::string, ExportedFamily> families;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool help = absl::ConsumePrefix(&line, "# HELP ");
    if (help || absl::ConsumePrefix(&line, "# TYPE ")) {
      const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      if (words.size() == 2) (help ? families[words[0]].help : families[words[0]].type) = words[1];
      continue;
    }
    // Skips the lines of the HTTP header.
    if (!absl::StartsWith(line, "lengthwise_") && !absl::StartsWith(line, "process_")) continue;
    std::string name(line.substr(0, line.find_first_of("{ ")));
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const std::string base(absl::StripSuffix(name, suffix));
      if (!families.contains(name) && families.contains(base)) name = base;
    }
    if (!families.contains(name)) {
      ADD_FAILURE() << "no type is declared for " << line;
      continue;
    }
    ExportedFamily& family = families[name];
    std::set<std::string> labels = LabelNames(line);
    // A summary's sum and count have no quantile.
    const bool is_part = family.type == "summary" && !labels.contains("quantile");
    if (!is_part) family.labels.insert(std::move(labels));
  }
  return families;
}

}  // namespace lengthwise::monitoring_test
