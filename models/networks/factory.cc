#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/networks/encoder.h"
#include "models/networks/graph_network.h"
#include "models/networks/layerwise_encoder.h"
#include "models/networks/network.h"
#include "models/networks/positional_attention.h"

namespace lengthwise::models {
namespace {

struct Implementation {
  const NetworkEntry& entry;
  absl::StatusOr<std::unique_ptr<Network>> (*create)(
      const catalogue::Parameters& parameters, absl::string_view encoding_name,
      const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
      ParameterLayout& layout);
};

const std::vector<Implementation>& Implementations() {
  static const auto& implementations = *new std::vector<Implementation>{
      {EncoderEntry(), CreateEncoder},
      {LayerwiseEncoderEntry(), CreateLayerwiseEncoder},
      {PositionalAttentionEntry(), CreatePositionalAttention},
      {GraphNetworkEntry(), CreateGraphNetwork},
  };
  return implementations;
}

// What is wrong with the parameters taken together, as the specification's validation would say it.
absl::Status Check(const NetworkEntry& network, const catalogue::Parameters& parameters,
                   absl::string_view encoding_name,
                   const catalogue::Parameters& encoding_parameters, const NetworkShape& shape) {
  std::vector<catalogue::Problem> problems;
  if (network.check != nullptr) network.check(parameters, "network", problems);
  EncodingContext context = network.encoding_context(parameters);
  context.longest_sequence = shape.longest_sequence;
  for (const EncodingEntry* encoding : EncodingEntries()) {
    if (encoding->name != encoding_name) continue;
    CheckEncoding(*encoding, encoding_parameters, context, "encoding", problems);
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(problems[0].field, ": ", problems[0].description));
}

}  // namespace

std::vector<std::string> ImplementedNetworks() {
  std::vector<std::string> names;
  for (const Implementation& implementation : Implementations()) {
    names.push_back(implementation.entry.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout) {
  for (const Implementation& implementation : Implementations()) {
    if (implementation.entry.name != name) continue;
    const absl::Status fits =
        Check(implementation.entry, parameters, encoding_name, encoding_parameters, shape);
    if (!fits.ok()) return fits;
    return implementation.create(parameters, encoding_name, encoding_parameters, shape, layout);
  }
  return absl::NotFoundError(absl::StrCat("unknown network \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, ImplementedNetworks())));
}

}  // namespace lengthwise::models
