#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/networks/causal_decoder.h"
#include "models/networks/encoder.h"
#include "models/networks/graph_network.h"
#include "models/networks/language_model.h"
#include "models/networks/layerwise_encoder.h"
#include "models/networks/network.h"
#include "models/networks/positional_attention.h"

namespace lengthwise::models {
namespace {

template <typename Model, typename Shape>
struct Implementation {
  const NetworkEntry& entry;
  absl::StatusOr<std::unique_ptr<Model>> (*create)(const catalogue::Parameters& parameters,
                                                   absl::string_view encoding_name,
                                                   const catalogue::Parameters& encoding_parameters,
                                                   const Shape& shape, ParameterLayout& layout);
};

template <typename Model, typename Shape>
using Implementations = std::vector<Implementation<Model, Shape>>;

const Implementations<Network, NetworkShape>& Networks() {
  static const auto& networks = *new Implementations<Network, NetworkShape>{
      {EncoderEntry(), CreateEncoder},
      {LayerwiseEncoderEntry(), CreateLayerwiseEncoder},
      {PositionalAttentionEntry(), CreatePositionalAttention},
      {GraphNetworkEntry(), CreateGraphNetwork},
  };
  return networks;
}

const Implementations<LanguageModel, LanguageModelShape>& LanguageModels() {
  static const auto& models = *new Implementations<LanguageModel, LanguageModelShape>{
      {CausalDecoderEntry(), CreateCausalDecoder},
  };
  return models;
}

// What is wrong with the parameters taken together, as the specification's validation would say it.
// `longest_sequence` is 0 where it is not known.
absl::Status Check(const NetworkEntry& network, const catalogue::Parameters& parameters,
                   absl::string_view encoding_name,
                   const catalogue::Parameters& encoding_parameters, int64_t longest_sequence) {
  std::vector<catalogue::Problem> problems;
  if (network.check != nullptr) network.check(parameters, "network", problems);
  EncodingContext context = network.encoding_context(parameters);
  context.longest_sequence = longest_sequence;
  for (const EncodingEntry* encoding : EncodingEntries()) {
    if (encoding->name != encoding_name) continue;
    CheckEncoding(*encoding, encoding_parameters, context, "encoding", problems);
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(problems[0].field, ": ", problems[0].description));
}

template <typename Model, typename Shape>
std::vector<std::string> Names(const Implementations<Model, Shape>& implementations) {
  std::vector<std::string> names;
  for (const auto& implementation : implementations) names.push_back(implementation.entry.name);
  return names;
}

template <typename Model, typename Shape>
absl::StatusOr<std::unique_ptr<Model>> Create(const Implementations<Model, Shape>& implementations,
                                              absl::string_view name,
                                              const catalogue::Parameters& parameters,
                                              absl::string_view encoding_name,
                                              const catalogue::Parameters& encoding_parameters,
                                              int64_t longest_sequence, const Shape& shape,
                                              ParameterLayout& layout) {
  for (const auto& implementation : implementations) {
    if (implementation.entry.name != name) continue;
    const absl::Status fits = Check(implementation.entry, parameters, encoding_name,
                                    encoding_parameters, longest_sequence);
    if (!fits.ok()) return fits;
    return implementation.create(parameters, encoding_name, encoding_parameters, shape, layout);
  }
  return absl::NotFoundError(absl::StrCat("unknown network \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, Names(implementations))));
}

}  // namespace

std::vector<std::string> ImplementedNetworks() { return Names(Networks()); }

std::vector<std::string> ImplementedLanguageModels() { return Names(LanguageModels()); }

absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout) {
  return Create(Networks(), name, parameters, encoding_name, encoding_parameters,
                shape.longest_sequence, shape, layout);
}

absl::StatusOr<std::unique_ptr<LanguageModel>> CreateLanguageModel(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const LanguageModelShape& shape, ParameterLayout& layout) {
  return Create(LanguageModels(), name, parameters, encoding_name, encoding_parameters,
                shape.longest_sequence, shape, layout);
}

}  // namespace lengthwise::models
