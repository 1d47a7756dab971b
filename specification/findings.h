// What is wrong with a specification, gathered by all checks.
#ifndef LENGTHWISE_SPECIFICATION_FINDINGS_H_
#define LENGTHWISE_SPECIFICATION_FINDINGS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// One mistake gives one problem: what could not be read is not reported missing or wrong again. Not
// thread-safe.
class Findings {
 public:
  Findings() = default;
  // Starts with what the parser found.
  explicit Findings(const Parsed& parsed);

  // Drops the problem if its field, or something that the field is in, could not be read.
  void Add(std::string field, std::string description);
  void AddAll(const std::vector<catalogue::Problem>& problems);
  // A required field that nobody set. Dropped also if a part of the field could not be read, and
  // after IgnoreMissing().
  void AddMissing(std::string field, std::string description);
  // The protocol is unknown, so what it would have set is not the user's mistake.
  void IgnoreMissing() { ignore_missing_ = true; }

  const std::vector<catalogue::Problem>& problems() const { return problems_; }
  bool empty() const { return problems_.empty(); }
  // There are more than anybody reads: looking for others is a waste.
  bool enough() const { return problems_.size() >= kEnoughProblems; }

 private:
  bool IsUnread(absl::string_view field) const;

  std::vector<catalogue::Problem> problems_;
  std::set<std::pair<std::string, std::string>> seen_;
  std::set<std::string, std::less<>> unread_;
  bool ignore_missing_ = false;
};

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FINDINGS_H_
