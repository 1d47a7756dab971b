#include "models/networks/factory.h"

#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "platform/status_macros.h"

namespace lengthwise::models {
namespace {

// Same order as NetworkEntries, which expands the same lists: networks, then language models.
#define LENGTHWISE_CREATE(Name, Made) Create##Made,
constexpr CreateModel<Network>* kCreateNetwork[] = {LENGTHWISE_NETWORKS(LENGTHWISE_CREATE)};
constexpr CreateModel<LanguageModel>* kCreateLanguageModel[] = {
    LENGTHWISE_LANGUAGE_MODELS(LENGTHWISE_CREATE)};
#undef LENGTHWISE_CREATE

// Returns the first problem that validation of a specification would report for these parameters.
absl::Status Check(const NetworkEntry& network, const catalogue::Parameters& parameters,
                   const EncodingContext& context, absl::string_view encoding_name,
                   const catalogue::Parameters& encoding_parameters) {
  std::vector<catalogue::Problem> problems;
  if (network.check != nullptr) network.check(parameters, "network", problems);
  const absl::Span<const EncodingEntry* const> encodings = EncodingEntries();
  const auto encoding = absl::c_find_if(
      encodings, [&](const EncodingEntry* entry) { return entry->name == encoding_name; });
  if (encoding == encodings.end()) {
    return absl::NotFoundError(absl::StrCat("unknown encoding \"", encoding_name, "\""));
  }
  CheckEncoding(**encoding, encoding_parameters, context, "encoding", problems);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(problems[0].field, ": ", problems[0].description));
}

// `create` is parallel to the first of `entries`.
template <typename Model>
absl::StatusOr<std::unique_ptr<Model>> Create(absl::Span<const NetworkEntry* const> entries,
                                              absl::Span<CreateModel<Model>* const> create,
                                              absl::string_view name,
                                              const catalogue::Parameters& parameters,
                                              absl::string_view encoding_name,
                                              const catalogue::Parameters& encoding_parameters,
                                              const NetworkShape& shape, ParameterLayout& layout) {
  for (size_t i = 0; i < create.size(); ++i) {
    if (entries[i]->name != name) continue;
    EncodingContext context = entries[i]->encoding_context(parameters);
    context.longest_sequence = shape.longest_sequence;
    // Who knows the examples has checked their ids.
    context.largest_id = 0;
    RETURN_IF_ERROR(Check(*entries[i], parameters, context, encoding_name, encoding_parameters));
    const auto make_encoding = [&](EncodingShape of_network) {
      of_network.blocks = context.blocks;
      of_network.heads = context.heads;
      of_network.d_model = context.d_model;
      of_network.longest_sequence = shape.longest_sequence;
      return CreateEncoding(encoding_name, encoding_parameters, of_network, layout).value();
    };
    return create[i]({.parameters = parameters,
                      .shape = shape,
                      .layout = layout,
                      .context = context,
                      .make_encoding = make_encoding});
  }
  return absl::NotFoundError(absl::StrCat("unknown network \"", name, "\""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> CreateNetwork(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout) {
  return Create<Network>(NetworkEntries(), kCreateNetwork, name, parameters, encoding_name,
                         encoding_parameters, shape, layout);
}

absl::StatusOr<std::unique_ptr<LanguageModel>> CreateLanguageModel(
    absl::string_view name, const catalogue::Parameters& parameters,
    absl::string_view encoding_name, const catalogue::Parameters& encoding_parameters,
    const NetworkShape& shape, ParameterLayout& layout) {
  return Create<LanguageModel>(NetworkEntries().subspan(std::size(kCreateNetwork)),
                               kCreateLanguageModel, name, parameters, encoding_name,
                               encoding_parameters, shape, layout);
}

}  // namespace lengthwise::models
