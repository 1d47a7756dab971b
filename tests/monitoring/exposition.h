// Prometheus' text format, as far as tests look at it.
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
  // The names of the labels of each series, without a histogram's `le`.
  std::set<std::set<std::string>> labels;
};

// By name. `text` may have the head of an HTTP answer. Fails the test for a series without a type.
std::map<std::string, ExportedFamily> ParseExposition(absl::string_view text);

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_EXPOSITION_H_
