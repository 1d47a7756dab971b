#include "specification/overrides.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "catalogue/suggestion.h"
#include "models/networks/catalogue.h"
#include "proto/component_label.h"

namespace lengthwise::specification {
namespace {

// Returns true if `component` has the name and all parameters of `wanted`.
bool Has(const v1::Component& component, const v1::Component& wanted) {
  if (component.name() != wanted.name()) return false;
  const catalogue::Parameters own = ParametersOf(component), expected = ParametersOf(wanted);
  for (const auto& [name, value] : expected.values()) {
    const auto found = own.values().find(name);
    if (found == own.values().end() || found->second != value) return false;
  }
  return true;
}

// Returns true if the network's parameter differs from the catalogue's default.
bool IsChosen(const models::NetworkEntry& entry, const v1::Component& network,
              const std::string& parameter) {
  std::vector<catalogue::Problem> problems;
  const auto value = [&](const catalogue::Parameters& given) {
    return catalogue::Resolve(entry, given, "", problems).values().at(parameter);
  };
  return value(ParametersOf(network)) != value({});
}

using Labels = std::pair<std::string, std::string>;  // of network and encoding

// Maps the labels of an axis to their indices.
std::map<std::string, size_t> PlacesOf(const Components& components) {
  std::map<std::string, size_t> places;
  for (int i = 0; i < components.size(); ++i) {
    places.emplace(components[i].label(), static_cast<size_t>(i));
  }
  return places;
}

std::optional<size_t> Find(const std::map<std::string, size_t>& places, const std::string& label,
                           const std::string& path, const std::string& kind, Findings& findings) {
  const auto found = places.find(label);
  if (found != places.end()) return found->second;
  std::vector<std::string> labels;
  for (const auto& [name, place] : places) labels.push_back(name);
  findings.Add(path, label.empty() ? absl::StrCat("required", catalogue::Suggestion("", labels))
                                   : absl::StrCat("no ", kind, " has the label \"", label, "\"",
                                                  catalogue::Suggestion(label, labels)));
  return std::nullopt;
}

}  // namespace

void AddCodeOverrides(absl::Span<const models::NetworkEntry* const> entries,
                      absl::Span<const v1::ExperimentSpecification> readings,
                      v1::ExperimentSpecification& specification) {
  std::map<Labels, int> places;  // of the overrides
  for (int i = 0; i < specification.network_overrides_size(); ++i) {
    const v1::NetworkOverride& one = specification.network_overrides(i);
    places.emplace(Labels{LabelOf(one.network()), one.encoding()}, i);
  }
  const auto add = [&](const models::NetworkEntry& entry, const v1::Component& parameters,
                       const v1::Component& network, const v1::Component& encoding) {
    for (const auto& [name, value] : parameters.parameters()) {
      if (IsChosen(entry, network, name)) continue;
      const auto [place, is_new] = places.emplace(Labels{network.label(), encoding.label()},
                                                  specification.network_overrides_size());
      if (is_new) {
        v1::NetworkOverride& added = *specification.add_network_overrides();
        added.set_encoding(encoding.label());
        added.mutable_network()->set_name(network.name());
        added.mutable_network()->set_label(network.label());
      }
      v1::Component& own =
          *specification.mutable_network_overrides(place->second)->mutable_network();
      own.mutable_parameters()->insert({name, value});  // does not overwrite
    }
  };
  for (const v1::ExperimentSpecification& reading : readings) {
    for (const v1::Component& parameters : reading.networks()) {
      const auto entry =
          absl::c_find_if(entries, [&](const auto* one) { return one->name == parameters.name(); });
      if (entry == entries.end()) continue;
      for (const v1::Component& network : specification.networks()) {
        if (network.name() != parameters.name()) continue;
        for (const v1::Component& encoding : specification.encodings()) {
          const auto matches = [&](const v1::Component& wanted) { return Has(encoding, wanted); };
          if (absl::c_any_of(reading.encodings(), matches)) {
            add(**entry, parameters, network, encoding);
          }
        }
      }
    }
  }
}

OverriddenNetworks ResolveOverrides(absl::Span<const models::NetworkEntry* const> entries,
                                    v1::ExperimentSpecification& specification,
                                    Findings& findings) {
  const std::vector<const catalogue::Entry*> plain(entries.begin(), entries.end());
  const auto networks = PlacesOf(specification.networks());
  const auto encodings = PlacesOf(specification.encodings());
  OverriddenNetworks overridden;
  for (int i = 0; i < specification.network_overrides_size() && !findings.enough(); ++i) {
    v1::NetworkOverride& one = *specification.mutable_network_overrides(i);
    v1::Component& changed = *one.mutable_network();
    const std::string path = absl::StrCat("network_overrides[", i, "]");
    changed.set_label(LabelOf(changed));
    const auto encoding = Find(encodings, one.encoding(), path + ".encoding", "encoding", findings);
    const auto network = Find(networks, changed.label(), path + ".network", "network", findings);
    if (!encoding || !network) continue;
    const v1::Component& base = specification.networks(static_cast<int>(*network));
    if (changed.name() != base.name()) {
      findings.Add(path + ".network.name", "got \"", changed.name(), "\", the network \"",
                   base.label(), "\" is \"", base.name(), "\"");
      continue;
    }
    if (changed.name() == models::kPythonNetwork) {
      for (const char* own : {"file", "file_sha256", "file_bytes"}) {
        if (!changed.parameters().contains(own)) continue;
        findings.Add(absl::StrCat(path, ".network.", own),
                     "an override keeps the network's file: remove it, or add a network with a "
                     "label of its own");
      }
    }
    v1::Component whole = base;
    whole.MergeFrom(changed);  // their names and labels are equal
    const auto choice = ResolveComponent(plain, "network", path + ".network", whole, findings);
    if (!choice) continue;
    // The trials get the override's values, such as `arguments`, as they were resolved.
    for (auto& [name, value] : *changed.mutable_parameters()) {
      const auto resolved = choice->parameters.values().find(name);
      if (resolved != choice->parameters.values().end()) value = ToValue(resolved->second);
    }
    if (!overridden
             .emplace(std::make_pair(*network, *encoding),
                      OverriddenNetwork{.choice = *choice, .path = path + ".network"})
             .second) {
      findings.Add(path, "the network \"", changed.label(), "\" with the encoding \"",
                   one.encoding(), "\" is given twice");
    }
  }
  return overridden;
}

}  // namespace lengthwise::specification
