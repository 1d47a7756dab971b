#include "models/networks/factory.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "catalogue/suggestion.h"
#include "models/networks/catalogue.h"
#include "platform/status_macros.h"

namespace lengthwise::models {
namespace {

// Same order as NetworkEntries, which expands the same lists: networks, then language models.
#define LENGTHWISE_CREATE(Name, Made) Create##Made,
constexpr CreateModel<Network, NetworkShape>* kCreateNetwork[] = {
    LENGTHWISE_NETWORKS(LENGTHWISE_CREATE)};
constexpr CreateModel<LanguageModel, LanguageModelShape>* kCreateLanguageModel[] = {
    LENGTHWISE_LANGUAGE_MODELS(LENGTHWISE_CREATE)};
#undef LENGTHWISE_CREATE

// Returns the first problem that validation of a specification would report for these parameters.
// `longest_sequence` is 0 if unknown.
absl::Status Check(const NetworkEntry& network, const catalogue::Parameters& parameters,
                   absl::string_view encoding_name,
                   const catalogue::Parameters& encoding_parameters, int64_t longest_sequence) {
  std::vector<catalogue::Problem> problems;
  if (network.check != nullptr) network.check(parameters, "network", problems);
  EncodingContext context = network.encoding_context(parameters);
  context.longest_sequence = longest_sequence;
  // Who knows the examples has checked their ids.
  context.largest_id = 0;
  for (const EncodingEntry* encoding : EncodingEntries()) {
    if (encoding->name != encoding_name) continue;
    CheckEncoding(*encoding, encoding_parameters, context, "encoding", problems);
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(problems[0].field, ": ", problems[0].description));
}

// `create` is parallel to the first of `entries`.
template <typename Model, typename Shape>
absl::StatusOr<std::unique_ptr<Model>> Create(absl::Span<const NetworkEntry* const> entries,
                                              absl::Span<CreateModel<Model, Shape>* const> create,
                                              absl::string_view name,
                                              const catalogue::Parameters& parameters,
                                              absl::string_view encoding_name,
                                              const catalogue::Parameters& encoding_parameters,
                                              const Shape& shape, ParameterLayout& layout) {
  std::vector<std::string> names;
  for (size_t i = 0; i < create.size(); ++i) {
    names.push_back(entries[i]->name);
    if (entries[i]->name != name) continue;
    RETURN_IF_ERROR(
        Check(*entries[i], parameters, encoding_name, encoding_parameters, shape.longest_sequence));
    return create[i](parameters, encoding_name, encoding_parameters, shape, layout);
  }
  return absl::NotFoundError(absl::StrCat("unknown network \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, names)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout) {
  return Create<Network, NetworkShape>(NetworkEntries(), kCreateNetwork, name, parameters,
                                       encoding_name, encoding_parameters, shape, layout);
}

absl::StatusOr<std::unique_ptr<LanguageModel>> CreateLanguageModel(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const LanguageModelShape& shape, ParameterLayout& layout) {
  return Create<LanguageModel, LanguageModelShape>(
      NetworkEntries().subspan(std::size(kCreateNetwork)), kCreateLanguageModel, name, parameters,
      encoding_name, encoding_parameters, shape, layout);
}

}  // namespace lengthwise::models
