// lengthwise.v1.CatalogueService: lists a fixed set of entries, and resolves specifications.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "platform/status_macros.h"
#include "proto/catalogue_service.pb.h"
#include "rpc/status.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "specification/components.h"
#include "specification/resolve.h"

namespace lengthwise::server {
namespace {

// The entry as the API shows it, without facts.
v1::CatalogueEntry ToProto(v1::CatalogueKind kind, const catalogue::Entry& entry) {
  static constexpr const char* kTypes[] = {"bool", "integer", "number", "string"};
  v1::CatalogueEntry proto;
  proto.set_kind(kind);
  proto.set_name(entry.name);
  proto.set_title(entry.title);
  proto.set_documentation(entry.documentation);
  for (const catalogue::ParameterEntry& parameter : entry.parameters) {
    v1::CatalogueParameter& added = *proto.add_parameters();
    added.set_name(parameter.name);
    added.set_type(kTypes[parameter.default_value.index()]);
    *added.mutable_default_value() = specification::ToValue(parameter.default_value);
    added.set_documentation(parameter.documentation);
    if (parameter.minimum.has_value()) added.set_minimum(*parameter.minimum);
    if (parameter.maximum.has_value()) added.set_maximum(*parameter.maximum);
    for (const std::string& allowed : parameter.allowed) added.add_allowed(allowed);
  }
  return proto;
}

// In the order of tasks::TaskKind.
constexpr const char* kTaskKinds[] = {"transduction", "regression", "puzzle", "text"};

}  // namespace

std::vector<v1::CatalogueEntry> CatalogueEntries(const specification::Catalogues& catalogues) {
  std::vector<v1::CatalogueEntry> entries;
  for (const tasks::TaskEntry* task : catalogues.tasks) {
    auto& facts = *entries.emplace_back(ToProto(v1::TASK, *task)).mutable_facts();
    if (!task->chomsky_level.empty()) facts["chomsky_level"] = task->chomsky_level;
    facts["kind"] = kTaskKinds[static_cast<int>(task->kind)];
    // For tasks whose axis is not the training length.
    if (task->seen_up_to.has_value()) facts["seen_up_to"] = absl::StrCat(*task->seen_up_to);
    facts["compared_by_loss"] = catalogue::FormatValue(task->compared_by_loss);
    facts["random_accuracy"] = catalogue::FormatValue(task->random_accuracy);
    facts["axis"] = task->axis;
    facts["axis_title"] = task->axis_title;
    facts["accuracy_title"] = task->accuracy_title;
    facts["loss_title"] = task->loss_title;
    facts["permutation_invariant"] = catalogue::FormatValue(task->permutation_invariant);
  }
  for (const models::EncodingEntry* encoding : catalogues.encodings) {
    auto& facts = *entries.emplace_back(ToProto(v1::ENCODING, *encoding)).mutable_facts();
    facts["uses_positions"] = catalogue::FormatValue(encoding->uses_positions());
  }
  for (const models::NetworkEntry* network : catalogues.networks) {
    entries.push_back(ToProto(v1::NETWORK, *network));
  }
  for (const catalogue::Entry* optimizer : catalogues.optimizers) {
    entries.push_back(ToProto(v1::OPTIMIZER, *optimizer));
  }
  for (const models::ScheduleEntry* schedule : catalogues.schedules) {
    entries.push_back(ToProto(v1::SCHEDULE, *schedule));
  }
  for (const specification::ProtocolEntry* protocol : catalogues.protocols) {
    entries.push_back(ToProto(v1::PROTOCOL, *protocol));
  }
  return entries;
}

std::unique_ptr<Service> NewCatalogueService(std::vector<v1::CatalogueEntry> entries,
                                             Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  const auto shared = std::make_shared<const std::vector<v1::CatalogueEntry>>(std::move(entries));
  service->Serve<v1::ListCatalogueEntriesRequest, v1::ListCatalogueEntriesResponse>(
      Work::kLookup,
      [shared](const auto& asked,
               const Caller&) -> absl::StatusOr<v1::ListCatalogueEntriesResponse> {
        if (!v1::CatalogueKind_IsValid(asked.kind())) {
          return rpc::InvalidField("kind", absl::StrCat("is ", static_cast<int>(asked.kind()),
                                                        "; accepted: a CatalogueKind, 0 for all"));
        }
        v1::ListCatalogueEntriesResponse listed;
        for (const v1::CatalogueEntry& entry : *shared) {
          if (asked.kind() == v1::CATALOGUE_KIND_UNSPECIFIED || asked.kind() == entry.kind()) {
            *listed.add_entries() = entry;
          }
        }
        return listed;
      });
  service->Serve<v1::ResolveSpecificationRequest, v1::ResolveSpecificationResponse>(
      Work::kQuery,
      [](const auto& asked, const Caller&) -> absl::StatusOr<v1::ResolveSpecificationResponse> {
        RETURN_IF_ERROR(CheckSpecificationText(asked.specification_text()));
        ASSIGN_OR_RETURN(
            specification::Grid grid,
            specification::Resolve(asked.specification_text(), specification::Limits()));
        v1::ResolveSpecificationResponse resolved;
        *resolved.mutable_specification() = std::move(grid.specification);
        return resolved;
      });
  return service;
}

}  // namespace lengthwise::server
