#include "server/security/audit_trail.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "rpc/status.h"

namespace lengthwise::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

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

// Observes one call. gRPC deletes it with the call.
class AuditTrail::Observer final : public grpc::experimental::Interceptor {
 public:
  Observer(AuditTrail& trail, const Rule& rule, ServerRpcInfo& info)
      : trail_(trail), rule_(rule), call_(info.server_context()) {}
  // Drops the record of a call that got no line. Records are found by the address of the call,
  // which a later call may reuse.
  ~Observer() override { trail_.Take(call_); }

  void Intercept(InterceptorBatchMethods* methods) override {
    // gRPC passes a generated message as a void*. All of them derive from Message only.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) &&
        (rule_.audit == Audit::kEveryCall || !rule_.resource.empty())) {
      const auto* message = static_cast<const Message*>(methods->GetRecvMessage());
      // Of a stream the first.
      if (message != nullptr && !std::exchange(has_request_, true)) Describe(*message);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE) &&
        !rule_.made.empty()) {
      const auto* message = static_cast<const Message*>(methods->GetSendMessage());
      std::string made = message == nullptr ? "" : TextOf(*message, rule_.made);
      if (!made.empty()) record_.made = std::move(made);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      End(rpc::FromGrpcStatus(methods->GetSendStatus()));
    }
    methods->Proceed();
  }

 private:
  void Describe(const Message& request) {
    record_.resource = TextOf(request, rule_.resource);
    record_.request_id = TextOf(request, "request_id");
    record_.stated_reason = TextOf(request, "reason");
    record_.dry_run = IsDryRun(request);
  }
  void End(absl::Status outcome) {
    if (rule_.audit != Audit::kEveryCall && !IsRefusal(outcome)) return;
    std::optional<AuditRecord> admitted = trail_.Take(call_);
    // Its request could not be parsed, so it did not reach the gate.
    if (!admitted.has_value()) return;
    record_.peer = std::move(admitted->peer);
    record_.caller = std::move(admitted->caller);
    trail_.Write(std::move(record_), rule_.method, std::move(outcome));
  }

  AuditTrail& trail_;
  const Rule& rule_;
  grpc::ServerContextBase* const call_;
  bool has_request_ = false;
  AuditRecord record_;
};

class AuditTrail::Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(AuditTrail& trail) : trail_(trail) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    const Rule* rule = FindRule(absl::StripPrefix(info->method(), "/"));
    // Unknown methods, and methods that do not pass the gate.
    if (rule == nullptr || rule->access == Access::kPublic) return nullptr;
    return new Observer(trail_, *rule, *info);
  }

 private:
  AuditTrail& trail_;
};

AuditTrail::AuditTrail(AuditLog& log, std::function<absl::Time()> now)
    : log_(log), now_(std::move(now)) {}

void AuditTrail::Admit(const grpc::CallbackServerContext& context, absl::string_view peer,
                       const Caller& caller) {
  platform::MutexLock lock(mutex_);
  open_.insert_or_assign(&context, AuditRecord{.caller = caller, .peer = std::string(peer)});
}

void AuditTrail::Refuse(const grpc::CallbackServerContext& context, absl::string_view method,
                        std::string resource, const absl::Status& reason) {
  AuditRecord record;
  {
    platform::MutexLock lock(mutex_);
    const auto found = open_.find(&context);
    if (found == open_.end()) return;
    record = found->second;
  }
  record.resource = std::move(resource);
  Write(std::move(record), method, reason);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> AuditTrail::Interceptor() {
  return std::make_unique<Factory>(*this);
}

std::optional<AuditRecord> AuditTrail::Take(CallId call) {
  platform::MutexLock lock(mutex_);
  const auto found = open_.find(call);
  if (found == open_.end()) return std::nullopt;
  AuditRecord record = std::move(found->second);
  open_.erase(found);
  return record;
}

void AuditTrail::Write(AuditRecord record, absl::string_view method, absl::Status outcome) {
  // The anonymous caller of a server without tokens.
  if (!log_.with_anonymous() && !record.caller.principal.empty() &&
      record.caller.token_id.empty()) {
    return;
  }
  record.time = now_();
  record.method = std::string(method);
  record.outcome = std::move(outcome);
  if (!record.outcome.ok() && !MayRecordFailure(record)) return;
  log_.Record(std::move(record));
}

bool AuditTrail::MayRecordFailure(AuditRecord& record) {
  platform::MutexLock lock(mutex_);
  Failures& failures = failures_[record.caller.principal];
  if (failures.bucket.Take(record.time) > absl::ZeroDuration()) {
    ++failures.suppressed;
    return false;
  }
  record.suppressed = std::exchange(failures.suppressed, 0);
  return true;
}

}  // namespace lengthwise::server
