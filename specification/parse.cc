#include "specification/parse.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/stubs/common.h"
#include "specification/document.h"
#include "specification/message_reader.h"
#include "specification/text_format.h"

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
    if (!google::protobuf::internal::IsStructurallyValidUTF8(line.data(),
                                                             static_cast<int>(line.size()))) {
      return catalogue::Problem{place, "not valid UTF-8"};
    }
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

}  // namespace lengthwise::specification
