#include "specification/text_format.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "specification/document.h"
#include "specification/field_names.h"

namespace lengthwise::specification {
namespace {

// The path of each message type in a specification. Components occur in several places; the
// reported line number tells them apart.
std::string PathOf(absl::string_view type) {
  if (type == "lengthwise.v1.Training") return "training";
  if (type == "lengthwise.v1.Evaluation") return "evaluation";
  if (type == "lengthwise.v1.LengthRange") return "training.lengths";
  return "";
}

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(Parsed& parsed) : parsed_(parsed) {}

  void AddError(int line, int column, const std::string& message) override {
    parsed_.problems.push_back({absl::StrCat("line ", line + 1, ", column ", column + 1), message});
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
    parsed_.problems.push_back(
        {Below(parent, parts[3]),
         absl::StrCat("unknown field (line ", line + 1, ")", unknown.suggestion)});
    if (!unknown.probably.empty()) parsed_.unread.push_back(Below(parent, unknown.probably));
  }

 private:
  Parsed& parsed_;
};

}  // namespace

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

}  // namespace lengthwise::specification
