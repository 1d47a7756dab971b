// How an experiment's specification differs from the protocol that a paper followed.
#ifndef LENGTHWISE_CLIENT_COMPARISON_PROTOCOL_DIFFERENCE_H_
#define LENGTHWISE_CLIENT_COMPARISON_PROTOCOL_DIFFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/comparison/published_table.h"
#include "google/protobuf/struct.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {

struct ProtocolDifference {
  std::string what;       // "steps"
  std::string here;       // "3,000"
  std::string published;  // "2,000,000"
};

// What was trained and how it was scored: steps, batch, lengths, packing, learning rates, seeds,
// network, optimizer, schedule, clipping, precision, lengths and sequences of the evaluation,
// tasks' and encodings' parameters. Which tasks and encodings were run is no difference, and
// neither is how often something was recorded on the way. Nor is what the table itself says: the
// lengths of its columns, the network and the number of seeds of the rows that the experiment's
// networks belong to. Empty where the two agree.
//
// `specification` with every default filled in, as the server keeps it. INTERNAL if the catalogue
// has no such protocol as the table's.
absl::StatusOr<std::vector<ProtocolDifference>> DifferencesFromProtocol(
    const v1::ExperimentSpecification& specification, const PublishedTable& table);

// "1..40", "25..100 step 5", "10, 12, 40", "37 lengths from 3 to 99".
std::string FormatLengths(const std::vector<int32_t>& lengths);

// Optimizer steps of a trial by the protocol. INTERNAL as above.
absl::StatusOr<int64_t> StepsOfProtocol(absl::string_view protocol);

// A component's parameter as differences print it: "true", "0.1", "softmax".
std::string FormatParameter(const google::protobuf::Value& value);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_PROTOCOL_DIFFERENCE_H_
