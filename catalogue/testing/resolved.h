// Resolves the parameters of an entry by its name, for tests.
#ifndef LENGTHWISE_CATALOGUE_TESTING_RESOLVED_H_
#define LENGTHWISE_CATALOGUE_TESTING_RESOLVED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "gtest/gtest.h"

namespace lengthwise::catalogue {

// Returns the entry of this name. Adds a test failure and returns null if there is none.
template <typename Entry>
const Entry* Named(absl::Span<const Entry* const> entries, absl::string_view name) {
  for (const Entry* entry : entries) {
    if (entry->name == name) return entry;
  }
  ADD_FAILURE() << "no entry " << name;
  return nullptr;
}

// Returns the entry's defaults, overridden by the given values. Adds a test failure if there is no
// such entry or a value is not accepted.
template <typename Entry>
Parameters Resolved(absl::Span<const Entry* const> entries, absl::string_view name,
                    const Parameters& given = {}) {
  const Entry* const entry = Named(entries, name);
  if (entry == nullptr) return {};
  std::vector<Problem> problems;
  Parameters parameters = Resolve(*entry, given, std::string(name), problems);
  for (const Problem& problem : problems) {
    ADD_FAILURE() << problem.field << ": " << problem.description;
  }
  return parameters;
}

// Returns a small form of an entry's parameters: 2 for "blocks", "heads" and "loops", 16 for
// "d_model" and "hidden_size", where it has them, and the given values.
template <typename Entry>
Parameters ResolvedSmall(absl::Span<const Entry* const> entries, absl::string_view name,
                         Parameters given = {}) {
  const Entry* const entry = Named(entries, name);
  if (entry == nullptr) return {};
  for (const auto& parameter : entry->parameters) {
    if (parameter.name == "blocks" || parameter.name == "heads" || parameter.name == "loops") {
      given.Set(parameter.name, int64_t{2});
    } else if (parameter.name == "d_model" || parameter.name == "hidden_size") {
      given.Set(parameter.name, int64_t{16});
    }
  }
  return Resolved(entries, name, given);
}

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_TESTING_RESOLVED_H_
