#include "server/api/catalogue_entries.h"

#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "server/api/catalogue_service.h"

namespace lengthwise::server {
namespace {

std::string TaskKindName(tasks::TaskKind kind) {
  switch (kind) {
    case tasks::TaskKind::kTransduction:
      return "transduction";
    case tasks::TaskKind::kRegression:
      return "regression";
    case tasks::TaskKind::kPuzzle:
      return "puzzle";
    case tasks::TaskKind::kText:
      return "text";
  }
  return "";
}

}  // namespace

std::vector<v1::CatalogueEntry> CatalogueEntries(const specification::Catalogues& catalogues) {
  std::vector<v1::CatalogueEntry> entries;
  for (const tasks::TaskEntry* task : catalogues.tasks) {
    auto& facts = *entries.emplace_back(ToProto(v1::TASK, *task)).mutable_facts();
    if (!task->chomsky_level.empty()) facts["chomsky_level"] = task->chomsky_level;
    facts["kind"] = TaskKindName(task->kind);
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
    facts["uses_positions"] = catalogue::FormatValue(encoding->uses_positions);
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

}  // namespace lengthwise::server
