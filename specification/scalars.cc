#include "specification/scalars.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::specification {

std::optional<double> ParseNumber(const std::string& text) {
  absl::string_view word = text;
  if (word == ".nan" || word == ".NaN" || word == ".NAN") word = "nan";
  if (word == ".inf" || word == "+.inf" || word == ".Inf" || word == ".INF") word = "inf";
  if (word == "-.inf" || word == "-.Inf" || word == "-.INF") word = "-inf";
  double number;
  if (!absl::SimpleAtod(word, &number)) return std::nullopt;
  return number;
}

std::optional<bool> ParseBool(absl::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::string Shown(const Node& node) {
  constexpr size_t kMostShown = 60;
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kPlain:
      if (node.text.size() <= kMostShown && (ParseNumber(node.text) || ParseBool(node.text))) {
        return node.text;
      }
      [[fallthrough]];
    case Node::Kind::kQuoted:
      break;
  }
  if (node.text.size() <= kMostShown) return absl::StrCat("\"", node.text, "\"");
  size_t cut = kMostShown;  // not within a character
  while (cut > 0 && (static_cast<unsigned char>(node.text[cut]) & 0xC0) == 0x80) --cut;
  return absl::StrCat("\"", node.text.substr(0, cut), "...\"");
}

}  // namespace lengthwise::specification
