#include "server/security/authorization.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/role_name.h"

namespace lengthwise::server {
namespace {

using enum Audit;

constexpr Rule kRules[] = {
    // gRPC's own service, which does not ask the gate. The edge lets strangers make the first call
    // only: that the server runs is not secret, but an open stream costs memory.
    {"grpc.health.v1.Health/Check", Access::kPublic, kRefusals},
    {"grpc.health.v1.Health/Watch", Access::kPublic, kRefusals},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Access::kAuthenticated,
     kRefusals},

    {"lengthwise.v1.AccessService/GetCaller", Access::kAuthenticated, kRefusals},
    {"lengthwise.v1.AccessService/CreateToken", Access::kAdminister, kEveryCall, "principal role",
     "token.token_id"},
    {"lengthwise.v1.AccessService/ListTokens", Access::kAdminister, kRefusals},
    {"lengthwise.v1.AccessService/RevokeToken", Access::kAdminister, kEveryCall,
     "token_id principal", "principal"},

    {"lengthwise.v1.AdministrationService/BackUp", Access::kBackUp, kEveryCall, "name", "path"},
    {"lengthwise.v1.AdministrationService/GetStorage", Access::kAdminister, kRefusals},
    // Reveals nothing stored. Users who install a client or a worker compare versions with it.
    {"lengthwise.v1.AdministrationService/GetServer", Access::kAuthenticated, kRefusals},

    {"lengthwise.v1.CatalogueService/ListCatalogueEntries", Access::kRead, kRefusals},
    {"lengthwise.v1.CatalogueService/ResolveSpecification", Access::kRead, kRefusals},

    {"lengthwise.v1.ExperimentService/CreateExperiment", Access::kSubmit, kEveryCall, "",
     "experiment.name"},
    // Reads any trial's model and creates an experiment of the caller's own.
    {"lengthwise.v1.ExperimentService/EvaluateTrial", Access::kSubmit, kEveryCall, "trial",
     "experiment.name"},
    {"lengthwise.v1.ExperimentService/ExtendExperiment", Access::kChange, kEveryCall, "name"},
    {"lengthwise.v1.ExperimentService/CancelExperiment", Access::kChange, kEveryCall, "name"},
    {"lengthwise.v1.ExperimentService/CancelTrial", Access::kChange, kEveryCall, "name"},
    {"lengthwise.v1.ExperimentService/RetryTrials", Access::kChange, kEveryCall, "name"},
    {"lengthwise.v1.ExperimentService/DeleteExperiment", Access::kChange, kEveryCall, "name"},
    {"lengthwise.v1.ExperimentService/ChangeOwner", Access::kAdminister, kEveryCall, "name owner"},
    {"lengthwise.v1.ExperimentService/GetExperiment", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/FindExperiment", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/ListExperiments", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/GetTrial", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/ListTrials", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/WatchExperiment", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/QueryLossCurves", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/SummarizeExperiment", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/QueryLengthAccuracies", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/QueryAttentionMaps", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/QueryProjections", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/QueryAnalyses", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/DownloadModel", Access::kRead, kRefusals},
    {"lengthwise.v1.ExperimentService/UploadData", Access::kSubmit, kEveryCall, "header.sha256"},

    {"lengthwise.v1.FleetService/ListWorkers", Access::kRead, kRefusals},
    {"lengthwise.v1.FleetService/GetWantedWorkers", Access::kRead, kRefusals},
    {"lengthwise.v1.FleetService/HoldLeases", Access::kAdminister, kEveryCall, "worker"},
    {"lengthwise.v1.FleetService/ResumeLeases", Access::kAdminister, kEveryCall, "worker"},

    {"lengthwise.v1.WorkerService/Synchronize", Access::kWork, kRefusals, "worker.worker_id"},
    {"lengthwise.v1.WorkerService/RegisterWorker", Access::kWork, kEveryCall, "worker.worker_id"},
    {"lengthwise.v1.WorkerService/StreamEvents", Access::kWork, kRefusals},
    {"lengthwise.v1.WorkerService/UploadArtifact", Access::kWork, kRefusals},
    {"lengthwise.v1.WorkerService/DownloadArtifact", Access::kWork, kRefusals},
    {"lengthwise.v1.WorkerService/SignTransfer", Access::kWork, kRefusals},
};

// The roles that may call, least privileged first.
std::vector<v1::Role> RolesOf(Access access) {
  switch (access) {
    case Access::kPublic:
    case Access::kAuthenticated:
      return {std::begin(kRoles), std::end(kRoles)};
    case Access::kRead:
      return {v1::VIEWER, v1::SUBMITTER, v1::ADMIN};
    case Access::kSubmit:
    case Access::kChange:
      return {v1::SUBMITTER, v1::ADMIN};
    case Access::kWork:
      return {v1::WORKER, v1::ADMIN};
    case Access::kBackUp:
      return {v1::BACKUP, v1::ADMIN};
    case Access::kAdminister:
      return {v1::ADMIN};
  }
  return {};
}

}  // namespace

Caller AnonymousCaller() { return {.principal = "anonymous", .role = v1::ADMIN}; }

absl::Span<const Rule> Rules() { return kRules; }

const Rule* FindRule(absl::string_view method) {
  const Rule* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const Rule& one) { return one.method == method; });
  return rule == std::end(kRules) ? nullptr : rule;
}

absl::Status MayCall(const Caller& caller, absl::string_view method) {
  const Rule* rule = FindRule(method);
  if (rule == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat(
        "no role may call ", method, ": the server's authorization table has no entry ", "for it"));
  }
  const std::vector<v1::Role> roles = RolesOf(rule->access);
  if (rule->access == Access::kPublic || absl::c_linear_search(roles, caller.role)) {
    return absl::OkStatus();
  }
  std::string accepted;
  for (const v1::Role role : roles) {
    const absl::string_view comma = role == roles.back() ? " or " : ", ";
    absl::StrAppend(&accepted, accepted.empty() ? "" : comma, RoleName(role));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(caller.principal, "'s token has the role ", RoleName(caller.role), "; ",
                   method.substr(method.rfind('.') + 1), " takes the role ", accepted,
                   "; ask an administrator for another token"));
}

absl::Status MaySubmitCode(const Caller& caller, v1::Role least) {
  if (caller.role == least || caller.role == v1::ADMIN) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      caller.principal, "'s token has the role ", RoleName(caller.role),
      "; this server takes the network \"python\", whose code its workers run, from the role ",
      RoleName(least), " (--python_networks_from); ask an administrator to submit it"));
}

absl::Status MayChange(const Caller& caller, absl::string_view experiment,
                       absl::string_view owner) {
  if (caller.role == v1::ADMIN || caller.principal == owner) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(experiment, " is ", owner, "'s, and ",
                                                  caller.principal,
                                                  " may change only experiments of their own; "
                                                  "ask ",
                                                  owner, " or an administrator"));
}

absl::Status MaySubmitFor(const Caller& caller, absl::string_view requested_owner) {
  if (caller.token_id.empty() || requested_owner.empty() || requested_owner == caller.principal) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("owner: the token is ", caller.principal,
                                                  "'s, who cannot submit for ", requested_owner,
                                                  "; leave owner empty, or use a token of theirs"));
}

}  // namespace lengthwise::server
