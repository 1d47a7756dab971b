// Collects the problems of a specification across all checks, and reports them as a status.
#ifndef LENGTHWISE_SPECIFICATION_FINDINGS_H_
#define LENGTHWISE_SPECIFICATION_FINDINGS_H_

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Reports each mistake once: a field that could not be read is not reported again as missing or
// wrong. Not thread-safe.
class Findings {
 public:
  Findings() = default;
  // Starts with the parser's problems.
  explicit Findings(const Parsed& parsed);

  // The description is absl::StrCat of the rest. Ignored if the field, or a field that contains it,
  // could not be read.
  template <typename... Description>
  void Add(absl::string_view field, const Description&... description) {
    AddText(std::string(field), absl::StrCat(description...));
  }
  void AddAll(const std::vector<catalogue::Problem>& problems);
  // Reports an unset required field. Ignored if a part of the field could not be read, and after
  // IgnoreMissing().
  void AddMissing(std::string field, std::string description);
  // Call for an unknown protocol: fields that it would have set are not the user's mistake.
  void IgnoreMissing() { ignore_missing_ = true; }

  const std::vector<catalogue::Problem>& problems() const { return problems_; }
  bool empty() const { return problems_.empty(); }
  // True at kEnoughProblems: checks may stop looking for more.
  bool enough() const { return problems_.size() >= kEnoughProblems; }

 private:
  void AddText(std::string field, std::string description);
  bool IsUnread(absl::string_view field) const;

  std::vector<catalogue::Problem> problems_;
  std::set<std::pair<std::string, std::string>> seen_;
  std::set<std::string, std::less<>> unread_;
  bool ignore_missing_ = false;
};

// Byte budget for problems in a gRPC status. gRPC limits all headers to 8 KiB, and a status carries
// the problems twice: in its message and in its details.
inline constexpr size_t kStatusProblemBytes = 2'400;

// Type of the payload of ToStatus.
inline constexpr absl::string_view kBadRequestTypeUrl = "type.googleapis.com/google.rpc.BadRequest";

// One INVALID_ARGUMENT for all problems. Its message has a line for each problem, "field:
// description"; its payload kBadRequestTypeUrl is a serialized google.rpc.BadRequest. Shortens long
// lines. Past 50 problems or `most_bytes` of text, further problems are only counted. OK if there
// are no problems.
absl::Status ToStatus(const std::vector<catalogue::Problem>& problems,
                      size_t most_bytes = kStatusProblemBytes);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FINDINGS_H_
