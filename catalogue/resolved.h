// Resolves the parameters of an entry by its name, for tests.
#ifndef LENGTHWISE_CATALOGUE_RESOLVED_H_
#define LENGTHWISE_CATALOGUE_RESOLVED_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "gtest/gtest.h"

namespace lengthwise::catalogue {

// Returns the entry's defaults, overridden by the given values. Adds a test failure if there is no
// such entry or a value is not accepted.
template <typename Entry>
Parameters Resolved(absl::Span<const Entry* const> entries, absl::string_view name,
                    const Parameters& given = {}) {
  std::vector<Problem> problems;
  for (const Entry* entry : entries) {
    if (entry->name != name) continue;
    Parameters parameters = Resolve(*entry, given, std::string(name), problems);
    for (const Problem& problem : problems) {
      ADD_FAILURE() << problem.field << ": " << problem.description;
    }
    return parameters;
  }
  ADD_FAILURE() << "no entry " << name;
  return {};
}

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_RESOLVED_H_
