// Parses the parts of Prometheus' text format that tests need.
#ifndef LENGTHWISE_TESTS_MONITORING_EXPOSITION_H_
#define LENGTHWISE_TESTS_MONITORING_EXPOSITION_H_

#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::monitoring_test {

struct ExportedFamily {
  std::string type;
  std::string help;
  // The label names of each series, without a histogram's `le`.
  std::set<std::set<std::string>> labels;
};

// Families by name. `text` may include the HTTP header. Fails the test for a series without a type.
std::map<std::string, ExportedFamily> ParseExposition(absl::string_view text);

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_EXPOSITION_H_
