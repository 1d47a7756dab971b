// How the specifications of two experiments differ.
#ifndef LENGTHWISE_CLIENT_COMPARISON_EXPERIMENT_DIFFERENCE_H_
#define LENGTHWISE_CLIENT_COMPARISON_EXPERIMENT_DIFFERENCE_H_

#include <string>
#include <vector>

#include "proto/specification.pb.h"

namespace lengthwise::client {

struct ExperimentDifference {
  // Path of the field, with a component's label where there are several:
  // "training.steps", "encodings.sin_cos.max_position".
  std::string field;
  std::string first;
  std::string second;
};

// Every field that decides results: all but name, description, priority and protocol, and but
// tasks, networks and encodings that only one of the two has, which are rows of their own in a
// comparison. Both with every default filled in, as the server keeps them.
std::vector<ExperimentDifference> Differences(const v1::ExperimentSpecification& first,
                                              const v1::ExperimentSpecification& second);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_EXPERIMENT_DIFFERENCE_H_
