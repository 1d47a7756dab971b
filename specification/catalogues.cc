#include "specification/catalogues.h"

#include "models/optimizers/catalogue.h"
#include "specification/parse.h"
#include "yaml-cpp/yaml.h"

namespace lengthwise::specification {
namespace {

std::string FieldText(const YAML::Node& node) { return node.as<std::string>(""); }

v1::ExperimentSpecification Reading(const YAML::Node& node) {
  const std::string text = FieldText(node);
  return text.empty() ? v1::ExperimentSpecification() : MustParse(text);
}

const ProtocolEntry* ReadProtocol(const char* text) {
  const YAML::Node file = YAML::Load(text);
  auto* entry = new ProtocolEntry{{.name = FieldText(file["name"]),
                                   .title = FieldText(file["title"]),
                                   .documentation = FieldText(file["documentation"])},
                                  MustParse(FieldText(file["defaults"]))};
  if (const YAML::Node code = file["reference_code"]) {
    ReferenceCode& readings = entry->reference_code.emplace();
    readings.components = Reading(code["components"]);
    readings.several_lengths = Reading(code["several_lengths"]);
    for (const auto& networks : code["networks_with_encodings"]) {
      readings.networks_with_encodings.push_back(Reading(networks));
    }
  }
  return entry;
}

}  // namespace

absl::Span<const ProtocolEntry* const> ProtocolEntries() {
  static const auto& entries = *[] {
    auto* all = new std::vector<const ProtocolEntry*>;
    for (const char* text : kProtocols) all->push_back(ReadProtocol(text));
    return all;
  }();
  return entries;
}

Catalogues AllCatalogues() {
  return {.tasks = tasks::EveryTaskEntry(),
          .networks = models::EveryNetworkEntry(),
          .encodings = models::EveryEncodingEntry(),
          .optimizers = models::OptimizerEntries(),
          .schedules = models::ScheduleEntries(),
          .protocols = ProtocolEntries()};
}

}  // namespace lengthwise::specification
