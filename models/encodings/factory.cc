#include "models/encodings/factory.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/causal.h"

namespace lengthwise::models {

absl::StatusOr<std::unique_ptr<Encoding>> CreateEncoding(absl::string_view name,
                                                         const catalogue::Parameters& parameters,
                                                         const EncodingShape& shape,
                                                         ParameterLayout& layout) {
  using Create = std::unique_ptr<Encoding> (*)(const catalogue::Parameters&, const EncodingShape&,
                                               ParameterLayout&);
  // Same order as EncodingEntries: both expand one list.
#define LENGTHWISE_CREATE(Name) Create##Name,
  static constexpr Create kCreate[] = {LENGTHWISE_ENCODINGS(LENGTHWISE_CREATE)};
#undef LENGTHWISE_CREATE
  std::vector<std::string> names;
  for (size_t i = 0; i < EncodingEntries().size(); ++i) {
    const EncodingEntry& entry = *EncodingEntries()[i];
    if (entry.name == name) return kCreate[i](parameters, shape, layout);
    names.push_back(entry.name);
  }
  return absl::NotFoundError(absl::StrCat("unknown encoding \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, names)));
}

// Without an encoding, the encoder is invariant to the order of its input (randomized positional
// encodings, section 4, "None").
std::unique_ptr<Encoding> CreateNone(const catalogue::Parameters& parameters,
                                     const EncodingShape& shape, ParameterLayout& layout) {
  // All hooks of the base class add nothing.
  auto none = std::make_unique<Encoding>();
  if (!parameters.Bool("causal")) return none;
  return MakeCausal(std::move(none));
}

}  // namespace lengthwise::models
