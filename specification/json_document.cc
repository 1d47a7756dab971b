#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "specification/document.h"

namespace lengthwise::specification {
namespace {

// Builds a document from nlohmann's SAX parser. SAX reports errors through return values and does
// not recurse, so deep nesting cannot overflow the stack.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Document& document) : document_(document) {}

  const catalogue::Problem& problem() const { return problem_; }

  bool null() override { return Leaf(Node::Kind::kNull, ""); }
  bool boolean(bool value) override { return Leaf(Node::Kind::kPlain, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return Leaf(Node::Kind::kPlain, absl::StrCat(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Leaf(Node::Kind::kPlain, absl::StrCat(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Leaf(Node::Kind::kPlain, text);
  }
  bool string(string_t& value) override { return Leaf(Node::Kind::kQuoted, std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return Open(Node::Kind::kMap); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return Open(Node::Kind::kList); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // Example: "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    absl::string_view message = error.what();
    const size_t place = message.find(" at line ");
    const size_t colon = place == message.npos ? message.npos : message.find(": ", place);
    if (colon == message.npos) {
      // A number that is too large for a double.
      Refuse(absl::StrCat("not readable as JSON: ", message.substr(message.find("] ") + 2)));
    } else {
      problem_ = {std::string(message.substr(place + 4, colon - place - 4)),
                  std::string(message.substr(colon + 2))};
    }
    return false;
  }

 private:
  struct Container {
    Node* node;
    std::string key;
  };

  // nlohmann gives no line, so the field at the top is named.
  bool Refuse(std::string description) {
    problem_ = {open_.empty() ? "" : open_.front().key, std::move(description)};
    return false;
  }

  bool Leaf(Node::Kind kind, std::string text) { return Attach(kind, std::move(text)) != nullptr; }

  bool Open(Node::Kind kind) {
    if (open_.size() >= kMaxDepth) {
      return Refuse(absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    Node* node = Attach(kind, "");
    if (node == nullptr) return false;
    open_.push_back({node, ""});
    return true;
  }

  Node* Attach(Node::Kind kind, std::string text) {
    if (document_.size() >= kMaxNodes) {
      Refuse(absl::StrCat("more than ", kMaxNodes, " values"));
      return nullptr;
    }
    Node& node = document_.Add(kind, std::move(text));
    if (open_.empty()) {
      document_.root = &node;
    } else {
      open_.back().node->children.emplace_back(open_.back().key, &node);
    }
    return &node;
  }

  Document& document_;
  std::vector<Container> open_;
  catalogue::Problem problem_;
};

}  // namespace

DocumentOrProblem ReadJson(absl::string_view text) {
  Document document;
  Builder builder(document);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.problem();
  return document;
}

}  // namespace lengthwise::specification
