#include "server/security/authorization.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/catalogue_service.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

// "lengthwise.v1.ExperimentService/GetTrial" for every rpc of the API.
std::set<std::string> EveryMethod() {
  // One message of each file, so that the linker keeps all files.
  const std::vector<const google::protobuf::Descriptor*> messages = {
      v1::Token::descriptor(),      v1::Storage::descriptor(), v1::CatalogueEntry::descriptor(),
      v1::Experiment::descriptor(), v1::Worker::descriptor(),  v1::Lease::descriptor(),
  };
  std::set<std::string> methods;
  for (const google::protobuf::Descriptor* message : messages) {
    const google::protobuf::FileDescriptor& file = *message->file();
    for (int i = 0; i < file.service_count(); ++i) {
      const google::protobuf::ServiceDescriptor& service = *file.service(i);
      for (int k = 0; k < service.method_count(); ++k) {
        methods.insert(service.full_name() + "/" + service.method(k)->name());
      }
    }
  }
  return methods;
}

// True if the API's `method` has the field "a.b" in its request or response.
bool HasField(const std::string& method, absl::string_view path, bool in_request) {
  const google::protobuf::MethodDescriptor* found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          absl::StrReplaceAll(method, {{"/", "."}}));
  const google::protobuf::Descriptor* message =
      in_request ? found->input_type() : found->output_type();
  const google::protobuf::FieldDescriptor* field = nullptr;
  for (absl::string_view name : absl::StrSplit(path, '.')) {
    if (message == nullptr) return false;
    field = message->FindFieldByName(std::string(name));
    if (field == nullptr || field->is_repeated()) return false;
    message = field->message_type();
  }
  return message == nullptr;
}

Caller With(v1::Role role) { return {.principal = "ada", .role = role, .token_id = "0"}; }

TEST(Authorization, EveryRpcHasExactlyOneEntry) {
  std::map<std::string, int> lines;
  for (const Rule& rule : Rules()) {
    if (absl::StartsWith(rule.method, "lengthwise.")) ++lines[std::string(rule.method)];
  }
  const std::set<std::string> methods = EveryMethod();
  EXPECT_GE(methods.size(), 32u);
  for (const std::string& method : methods) {
    EXPECT_EQ(lines[method], 1) << method << " needs one line in server/security/authorization.cc";
  }
  EXPECT_EQ(lines.size(), methods.size());
}

TEST(Authorization, EveryChangingRpcIsAudited) {
  // Workers call these all the time, and trials' histories record the results.
  const std::set<std::string> frequent = {"Synchronize", "StreamEvents", "UploadArtifact",
                                          "SignTransfer"};
  for (const std::string& method : EveryMethod()) {
    const std::string name = method.substr(method.find('/') + 1);
    bool reads = false;
    for (const char* verb :
         {"Get", "Find", "List", "Watch", "Query", "Summarize", "Download", "Resolve"}) {
      reads |= absl::StartsWith(name, verb);
    }
    const Rule& rule = *FindRule(method);
    EXPECT_EQ(rule.audit == Audit::kEveryCall, !reads && frequent.count(name) == 0)
        << method << ": every rpc is audited whose name does not begin with a verb of reads";
    if (rule.audit != Audit::kEveryCall) continue;
    EXPECT_NE(absl::StrCat(rule.resource, rule.made), "") << method << " does not name its object";
    for (absl::string_view path : absl::StrSplit(rule.resource, ' ', absl::SkipEmpty())) {
      EXPECT_TRUE(HasField(method, path, true)) << method << " has no " << path;
    }
    EXPECT_TRUE(rule.made.empty() || HasField(method, rule.made, false)) << method;
  }
}

// The roles that proto/access_service.proto documents, for every rpc.
TEST(Authorization, EveryRoleMayDoWhatTheApiDocuments) {
  const std::set<std::string> changing = {"CreateExperiment", "ExtendExperiment", "EvaluateTrial",
                                          "CancelExperiment", "CancelTrial",      "RetryTrials",
                                          "DeleteExperiment", "UploadData"};
  for (const std::string& method : EveryMethod()) {
    const auto may = [&](v1::Role role) { return MayCall(With(role), method).ok(); };
    const std::string name = method.substr(method.find('/') + 1);
    const bool of_workers = absl::StrContains(method, ".WorkerService/");
    const bool of_all = name == "GetCaller" || name == "GetServer";
    const bool of_administrators =
        !of_all && (absl::StrContains(method, ".AdministrationService/") ||
                    absl::StrContains(method, ".AccessService/") || name == "ChangeOwner" ||
                    name == "HoldLeases" || name == "ResumeLeases");
    EXPECT_TRUE(may(v1::ADMIN)) << method;
    EXPECT_EQ(may(v1::WORKER), of_workers || of_all) << method;
    EXPECT_EQ(may(v1::BACKUP), name == "BackUp" || of_all) << method;
    EXPECT_EQ(may(v1::SUBMITTER), !of_workers && !of_administrators) << method;
    EXPECT_EQ(may(v1::VIEWER), !of_workers && !of_administrators && changing.count(name) == 0)
        << method;
    EXPECT_FALSE(may(v1::ROLE_UNSPECIFIED)) << method;
  }
}

TEST(Authorization, MethodsWithoutAnEntryAreRefused) {
  for (const v1::Role role : {v1::VIEWER, v1::SUBMITTER, v1::WORKER, v1::ADMIN}) {
    for (const char* method : {"", "GetTrial", "lengthwise.v1.ExperimentService/Nothing",
                               "lengthwise.v1.ExperimentService", "/"}) {
      EXPECT_EQ(MayCall(With(role), method).code(), absl::StatusCode::kPermissionDenied) << method;
    }
  }
  EXPECT_FALSE(MayCall(AnonymousCaller(), "lengthwise.v1.ExperimentService/Nothing").ok());
}

TEST(Authorization, RefusalNamesAllowedRolesAndTheRemedy) {
  EXPECT_EQ(MayCall(With(v1::VIEWER), "lengthwise.v1.ExperimentService/CreateExperiment").message(),
            "ada's token has the role viewer; ExperimentService/CreateExperiment takes the role "
            "submitter or admin; ask an administrator for another token");
}

TEST(Authorization, ServerMayTakeCodeFromAdministratorsAlone) {
  EXPECT_TRUE(MaySubmitCode(With(v1::SUBMITTER), v1::SUBMITTER).ok());
  EXPECT_TRUE(MaySubmitCode(With(v1::ADMIN), v1::SUBMITTER).ok());
  EXPECT_TRUE(MaySubmitCode(With(v1::ADMIN), v1::ADMIN).ok());
  EXPECT_TRUE(MaySubmitCode(AnonymousCaller(), v1::ADMIN).ok());
  const absl::Status status = MaySubmitCode(With(v1::SUBMITTER), v1::ADMIN);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("from the role admin"));
}

TEST(Authorization, OnlyAdministratorsChangeOthersExperiments) {
  EXPECT_TRUE(MayChange(With(v1::SUBMITTER), "experiments/e-1", "ada").ok());
  EXPECT_TRUE(MayChange(With(v1::ADMIN), "experiments/e-1", "grace").ok());
  EXPECT_TRUE(MayChange(AnonymousCaller(), "experiments/e-1", "grace").ok());
  const absl::Status status = MayChange(With(v1::SUBMITTER), "experiments/e-1", "grace");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("experiments/e-1 is grace's"));
  // An experiment from the time without tokens belongs to no principal with a token.
  EXPECT_FALSE(MayChange(With(v1::SUBMITTER), "experiments/e-1", "anonymous").ok());
}

TEST(Authorization, TokensSubmitOnlyForTheirPrincipal) {
  for (const v1::Role role : {v1::SUBMITTER, v1::ADMIN}) {
    EXPECT_TRUE(MaySubmitFor(With(role), "").ok());
    EXPECT_TRUE(MaySubmitFor(With(role), "ada").ok());
    EXPECT_EQ(MaySubmitFor(With(role), "grace").code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_TRUE(MaySubmitFor(AnonymousCaller(), "grace").ok());
}

}  // namespace
}  // namespace lengthwise::server
