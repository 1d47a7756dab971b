#include "specification/findings.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/printable_text.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::specification {
namespace {

constexpr size_t kMostProblems = 50;
constexpr size_t kMostFieldBytes = 120;
constexpr size_t kMostDescriptionBytes = 400;

// Quotes of the user's text, and protobuf's own messages, may hold part of a UTF-8 character. As a
// string of a message, it would make the details of the status unreadable.
std::string Shown(absl::string_view original, size_t most) {
  const std::string text = platform::PrintableText(original);
  if (text.size() <= most) return text;
  return absl::StrCat(platform::Utf8Prefix(text, most), "...");
}

}  // namespace

Findings::Findings(const Parsed& parsed)
    : problems_(parsed.problems), unread_(parsed.unread.begin(), parsed.unread.end()) {}

bool Findings::IsUnread(absl::string_view field) const {
  // Looks up the field and each field that contains it: "training", "training.lengths".
  for (size_t i = 1; i <= field.size(); ++i) {
    if (i < field.size() && field[i] != '.' && field[i] != '[') continue;
    if (unread_.count(std::string(field.substr(0, i))) > 0) return true;
  }
  return false;
}

void Findings::AddText(std::string field, std::string description) {
  if (IsUnread(field) || !seen_.emplace(field, description).second) return;
  problems_.push_back({std::move(field), std::move(description)});
}

void Findings::AddAll(const std::vector<catalogue::Problem>& problems) {
  for (const catalogue::Problem& problem : problems) AddText(problem.field, problem.description);
}

void Findings::AddMissing(std::string field, std::string description) {
  if (ignore_missing_) return;
  const auto part = unread_.lower_bound(field);
  if (part != unread_.end() && absl::StartsWith(*part, field)) return;
  AddText(std::move(field), std::move(description));
}

absl::Status ToStatus(const std::vector<catalogue::Problem>& problems, size_t most_bytes) {
  if (problems.empty()) return absl::OkStatus();
  google::rpc::BadRequest details;
  std::string message;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::string field = Shown(problems[i].field, kMostFieldBytes);
    const std::string description = Shown(problems[i].description, kMostDescriptionBytes);
    const std::string line = field.empty() ? description : absl::StrCat(field, ": ", description);
    if (i == kMostProblems || message.size() + line.size() > most_bytes) {
      absl::StrAppend(&message, "\nand at least ", problems.size() - i, " more");
      break;
    }
    absl::StrAppend(&message, message.empty() ? "" : "\n", line);
    google::rpc::BadRequest::FieldViolation& violation = *details.add_field_violations();
    violation.set_field(field);
    violation.set_description(description);
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(absl::string_view(kBadRequestTypeUrl.data(), kBadRequestTypeUrl.size()),
                    absl::Cord(details.SerializeAsString()));
  return status;
}

}  // namespace lengthwise::specification
