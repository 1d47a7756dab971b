// A YAML or JSON text as a tree of maps, lists and scalars, which hides the two parsers from the
// code that reads specifications, and the message that such a tree has.
#ifndef LENGTHWISE_SPECIFICATION_DOCUMENT_H_
#define LENGTHWISE_SPECIFICATION_DOCUMENT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "google/protobuf/descriptor.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Limits on the tree, which bound memory for any input.
inline constexpr int64_t kMaxNodes = 200'000;
inline constexpr int kMaxDepth = 32;

struct Node {
  enum class Kind {
    kNull,
    kPlain,   // a number, a boolean or an unquoted YAML word, as in `text`
    kQuoted,  // always a string
    kList,    // children without names
    kMap,     // children with names, in document order; names may repeat
  };
  Kind kind = Kind::kNull;
  std::string text;
  std::vector<std::pair<std::string, const Node*>> children;

  bool IsScalar() const { return kind == Kind::kPlain || kind == Kind::kQuoted; }
};

// Owns its nodes. A YAML alias refers to its anchor's node instead of copying it, so the tree may
// be a graph, even a cyclic one. Code that walks it must bound the number of steps.
class Document {
 public:
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  Document(Document&&) = default;

  // Null for an empty document.
  const Node* root = nullptr;

  Node& Add(Node::Kind kind, std::string text = "") {
    nodes_.push_back({kind, std::move(text), {}});
    return nodes_.back();
  }
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }

 private:
  std::deque<Node> nodes_;
};

// The document, or the first error: a syntax error, more than kMaxNodes nodes, or nesting deeper
// than kMaxDepth. The problem's field is the location, "line 3, column 5". `text` must be valid
// UTF-8 without control characters.
using DocumentOrProblem = std::variant<Document, catalogue::Problem>;
DocumentOrProblem ReadYaml(absl::string_view text);
DocumentOrProblem ReadJson(absl::string_view text);

// Most values of one list, after its ranges are expanded.
inline constexpr int64_t kMaxListValues = 1'000'000;

// Reads by reflection, so that a new proto field needs no code here. Reads at most kMaxNodes
// values. A text whose aliases expand to more is rejected, so its cost is bounded.
Parsed ReadSpecification(const Document& document);

// Joins a field path: "parent.name", or "name" if `parent` is empty.
std::string Below(absl::string_view parent, absl::string_view name);

// Calls `take` with each field of `message` and of the messages in it, and its path, except for
// fields of components and of lists' elements.
void ForEachField(
    const google::protobuf::Descriptor& message, const std::string& parent,
    absl::FunctionRef<void(const google::protobuf::FieldDescriptor& field, const std::string& path)>
        take);

struct UnknownField {
  // Text to append to the error: `; did you mean "steps"?`, or the accepted names.
  std::string suggestion;
  // The closest field name; empty if none is close.
  std::string probably;
};
UnknownField DescribeUnknownField(const google::protobuf::Descriptor& message,
                                  absl::string_view name);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_DOCUMENT_H_
