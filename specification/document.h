// A YAML or JSON text as a tree of maps, lists and scalars: what both formats have in common.
#ifndef LENGTHWISE_SPECIFICATION_DOCUMENT_H_
#define LENGTHWISE_SPECIFICATION_DOCUMENT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"

namespace lengthwise::specification {

// Limits of what is built, whatever the text says.
inline constexpr int64_t kMaxNodes = 200'000;
inline constexpr int kMaxDepth = 32;

struct Node {
  enum class Kind {
    kNull,
    kPlain,   // a number, a boolean, or an unquoted word of YAML: `text` says which
    kQuoted,  // certainly a string
    kList,    // children without names
    kMap,     // children with names, in the order of the text; a name may occur twice
  };
  Kind kind = Kind::kNull;
  std::string text;
  std::vector<std::pair<std::string, const Node*>> children;

  bool IsScalar() const { return kind == Kind::kPlain || kind == Kind::kQuoted; }
};

// Owns its nodes. A YAML alias is the node of its anchor and not a copy, so the tree may be a
// graph, even with cycles: who walks it must bound the steps.
class Document {
 public:
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  Document(Document&&) = default;

  // Null for an empty text.
  const Node* root = nullptr;

  Node& Add(Node::Kind kind, std::string text = "") {
    nodes_.push_back({kind, std::move(text), {}});
    return nodes_.back();
  }
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }

 private:
  std::deque<Node> nodes_;
};

// The document, or what is wrong with the text: a syntax error, more than kMaxNodes nodes, nesting
// deeper than kMaxDepth. The problem's field is its place, "line 3, column 5". `text` is valid
// UTF-8 without control characters.
using DocumentOrProblem = std::variant<Document, catalogue::Problem>;
DocumentOrProblem ReadYaml(absl::string_view text);
DocumentOrProblem ReadJson(absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_DOCUMENT_H_
