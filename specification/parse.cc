#include "specification/parse.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "platform/printable_text.h"
#include "specification/document.h"

namespace lengthwise::specification {
namespace {

Parsed Unreadable(catalogue::Problem problem) {
  Parsed parsed;
  parsed.problems.push_back(std::move(problem));
  parsed.readable = false;
  return parsed;
}

// Finds the first line that is not valid in any format. Runs before any parser sees the text,
// because yaml-cpp treats some control characters as the end of the file.
std::optional<catalogue::Problem> FindForbiddenText(absl::string_view text) {
  size_t number = 1;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string place = absl::StrCat("line ", number++);
    if (!platform::IsUtf8(line)) return catalogue::Problem{place, "not valid UTF-8"};
    for (const char c : line) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
        return catalogue::Problem{
            place, absl::StrCat("a control character (byte 0x", absl::Hex(byte, absl::kZeroPad2),
                                "), expected text")};
      }
    }
  }
  return std::nullopt;
}

// Returns the path of the field that holds this type of message in a specification, or "" if there
// is not exactly one. Components occur in several places; the reported line number tells them
// apart.
std::string PathOf(const std::string& type) {
  static const auto& paths = *[] {
    auto* const all = new std::multimap<std::string, std::string>();
    ForEachField(*v1::ExperimentSpecification::descriptor(), "",
                 [all](const google::protobuf::FieldDescriptor& field, const std::string& path) {
                   if (field.message_type() == nullptr) return;
                   all->emplace(field.message_type()->full_name(), path);
                 });
    return all;
  }();
  return paths.count(type) == 1 ? paths.find(type)->second : "";
}

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(Parsed& parsed) : parsed_(parsed) {}

  void AddError(int line, int column, const std::string& message) override {
    AddProblem(parsed_.problems, absl::StrCat("line ", line + 1, ", column ", column + 1), message);
  }

  // The parser tolerates unknown fields and warns: Message type "lengthwise.v1.Training" has no
  // field named "stepz".
  void AddWarning(int line, int column, const std::string& message) override {
    if (parsed_.problems.size() >= kEnoughProblems) return;
    const std::vector<std::string> parts = absl::StrSplit(message, '"');
    const auto* type =
        parts.size() == 5 && absl::StrContains(parts[2], "has no field named")
            ? google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(parts[1])
            : nullptr;
    if (type == nullptr) {
      AddError(line, column, message);
      return;
    }
    const UnknownField unknown = DescribeUnknownField(*type, parts[3]);
    const std::string parent = PathOf(parts[1]);
    AddProblem(parsed_.problems, Below(parent, parts[3]), "unknown field (line ", line + 1, ")",
               unknown.suggestion);
    if (!unknown.probably.empty()) parsed_.unread.push_back(Below(parent, unknown.probably));
  }

 private:
  Parsed& parsed_;
};

// Reports all unknown fields but only the first other problem, where protobuf's parser stops.
Parsed ReadTextFormat(absl::string_view text) {
  Parsed parsed;
  Collector collector(parsed);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(std::string(text), &parsed.specification)) {
    parsed.readable = false;
    parsed.specification.Clear();
  }
  return parsed;
}

}  // namespace

Parsed Parse(v1::SpecificationText::Format format, absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // byte order mark
  if (auto problem = FindForbiddenText(text)) return Unreadable(*std::move(problem));
  if (format == v1::SpecificationText::TEXT_PROTO) return ReadTextFormat(text);
  if (format != v1::SpecificationText::YAML && format != v1::SpecificationText::JSON) {
    return Unreadable({"format", "expected YAML, JSON or TEXT_PROTO"});
  }
  DocumentOrProblem read = format == v1::SpecificationText::JSON ? ReadJson(text) : ReadYaml(text);
  if (auto* problem = std::get_if<catalogue::Problem>(&read)) {
    return Unreadable(std::move(*problem));
  }
  return ReadSpecification(std::get<Document>(read));
}

v1::ExperimentSpecification MustParse(absl::string_view yaml) {
  Parsed parsed = Parse(v1::SpecificationText::YAML, yaml);
  for (const catalogue::Problem& problem : parsed.problems) {
    std::fprintf(stderr, "built-in specification: %s: %s\n", problem.field.c_str(),
                 problem.description.c_str());
  }
  if (!parsed.problems.empty()) std::abort();
  return parsed.specification;
}

}  // namespace lengthwise::specification
