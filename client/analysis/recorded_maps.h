// The attention maps that trials recorded of evaluation sequences.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_RECORDED_MAPS_H_
#define LENGTHWISE_CLIENT_ANALYSIS_RECORDED_MAPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// How to have some, for the end of an error's message.
inline constexpr char kHowToRecordMaps[] =
    "record them with evaluation.attention_lengths and evaluation.attention_sequences, or of "
    "models that are stored with `lengthwise evaluate TRIAL --attention_lengths LIST "
    "--attention_sequences N`";

// By length and sequence, without those of inputs that somebody gave; none where none were
// recorded. INTERNAL for a map whose bytes do not fit its shape.
absl::StatusOr<std::vector<v1::AttentionMap>> FetchMaps(Connection& connection,
                                                        const v1::Trial& trial);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_RECORDED_MAPS_H_
