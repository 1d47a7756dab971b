#include "server/security/audited_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace lengthwise::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What a record keeps of a text while its call goes on. A line has less.
constexpr size_t kMostTextBytes = 1000;
// Enough digits to tell files apart.
constexpr size_t kHashDigits = 16;

// The text of a field such as "experiment.name". Empty if there is none.
std::string FieldText(const Message& message, absl::string_view path) {
  const Message* at = &message;
  for (absl::string_view name : absl::StrSplit(path, '.')) {
    const FieldDescriptor* field = at->GetDescriptor()->FindFieldByName(std::string(name));
    if (field == nullptr || field->is_repeated()) return "";
    const google::protobuf::Reflection& reflection = *at->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        // A full hash looks like a token's secret, which the log strips.
        return reflection.GetString(*at, field)
            .substr(0, name == "sha256" ? kHashDigits : kMostTextBytes);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.GetEnum(*at, field)->name();
      case FieldDescriptor::CPPTYPE_MESSAGE:
        at = &reflection.GetMessage(*at, field);
        break;
      default:
        return "";
    }
  }
  return "";
}

// The texts of several fields, separated by spaces.
std::string TextOf(const Message& message, absl::string_view paths) {
  std::vector<std::string> texts;
  for (absl::string_view path : absl::StrSplit(paths, ' ', absl::SkipEmpty())) {
    if (std::string text = FieldText(message, path); !text.empty()) {
      texts.push_back(std::move(text));
    }
  }
  return absl::StrJoin(texts, " ");
}

bool IsDryRun(const Message& message) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName("validate_only");
  return field != nullptr && message.GetReflection()->GetBool(message, field);
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

AuditedCall::AuditedCall(AuditLog& log, absl::string_view method, const Caller& caller,
                         absl::string_view peer)
    : log_(&log),
      rule_(FindRule(method)),
      record_({.caller = caller, .peer = std::string(peer), .method = std::string(method)}) {}

void AuditedCall::SetRequest(const Message& request) {
  if (!is_recorded() || std::exchange(has_request_, true)) return;
  if (rule_->audit != Audit::kEveryCall && rule_->resource.empty()) return;
  record_.resource = TextOf(request, rule_->resource);
  record_.request_id = TextOf(request, "request_id");
  record_.stated_reason = TextOf(request, "reason");
  record_.dry_run = IsDryRun(request);
}

void AuditedCall::SetResponse(const Message& response) {
  if (!is_recorded() || rule_->made.empty()) return;
  if (std::string made = TextOf(response, rule_->made); !made.empty()) {
    record_.made = std::move(made);
  }
}

void AuditedCall::Refuse(std::string resource, const absl::Status& reason) const {
  AuditRecord record = record_;
  record.resource = std::move(resource);
  record.outcome = reason;
  log_->Record(std::move(record));
}

void AuditedCall::End(const absl::Status& outcome) {
  if (!is_recorded() || (rule_->audit != Audit::kEveryCall && !IsRefusal(outcome))) return;
  record_.outcome = outcome;
  log_->Record(std::move(record_));
}

}  // namespace lengthwise::server
