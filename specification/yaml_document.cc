#include <exception>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "specification/document.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace lengthwise::specification {
namespace {

bool IsNullWord(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// Builds a document from yaml-cpp's events. Reports errors by throwing YAML::ParserException, as
// the parser does.
class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(Document& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_.root != nullptr) {
      throw YAML::ParserException(mark, "a second document; expected one");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(mark, anchor, Node::Kind::kNull, "");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw YAML::ParserException(mark, "unknown alias");
    Attach(mark, found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool plain = tag == "?" || tag.empty();
    if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str") RefuseTag(mark, tag);
    if (plain && IsNullWord(value)) {
      // A plain "null" used as a key is a name.
      Leaf(mark, anchor, Node::Kind::kNull, value);
    } else {
      Leaf(mark, anchor, plain ? Node::Kind::kPlain : Node::Kind::kQuoted, value);
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Container {
    Node* node;
    bool has_key = false;
    std::string key = "";
  };

  [[noreturn]] static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    throw YAML::ParserException(mark, absl::StrCat("tag \"", tag, "\" is not supported"));
  }

  Node& Make(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind, std::string text) {
    if (document_.size() >= kMaxNodes) {
      throw YAML::ParserException(mark, absl::StrCat("more than ", kMaxNodes, " values"));
    }
    Node& node = document_.Add(kind, std::move(text));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
    return node;
  }

  void Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind, std::string text) {
    Attach(mark, &Make(mark, anchor, kind, std::move(text)));
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    if (tag != "?" && tag != "!" && !tag.empty()) RefuseTag(mark, tag);
    if (open_.size() >= kMaxDepth) {
      throw YAML::ParserException(mark, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    Node& node = Make(mark, anchor, kind, "");
    Attach(mark, &node);
    open_.push_back({&node});
  }

  void Attach(const YAML::Mark& mark, const Node* node) {
    if (open_.empty()) {
      document_.root = node;
      return;
    }
    Container& container = open_.back();
    if (container.node->kind == Node::Kind::kList) {
      container.node->children.emplace_back("", node);
    } else if (container.has_key) {
      container.node->children.emplace_back(std::move(container.key), node);
      container.has_key = false;
    } else if (node->kind == Node::Kind::kList || node->kind == Node::Kind::kMap) {
      throw YAML::ParserException(mark, "a list or map as a key; expected a name");
    } else {
      container.key = node->text;
      container.has_key = true;
    }
  }

  Document& document_;
  std::unordered_map<YAML::anchor_t, const Node*> anchors_;
  std::vector<Container> open_;
};

}  // namespace

DocumentOrProblem ReadYaml(absl::string_view text) {
  Document document;
  YamlBuilder builder(document);
  // Converts yaml-cpp's exceptions to values, so that none leaves this function.
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    return catalogue::Problem{
        absl::StrCat("line ", error.mark.line + 1, ", column ", error.mark.column + 1), error.msg};
  } catch (const std::exception& error) {
    return catalogue::Problem{"", absl::StrCat("not readable as YAML: ", error.what())};
  }
  return document;
}

}  // namespace lengthwise::specification
