// Reasons of outcomes that the server recognizes by their text.
#ifndef LENGTHWISE_PROTO_OUTCOME_REASONS_H_
#define LENGTHWISE_PROTO_OUTCOME_REASONS_H_

#include "absl/strings/string_view.h"

namespace lengthwise {

// Beginning of the reason of an attempt whose loss became infinite or NaN: the value and the place
// follow. The server counts such failures apart (statistics.cc). Workers of other releases write it
// as well, so it must not change.
inline constexpr absl::string_view kLossNotFinite = "the loss was ";

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_OUTCOME_REASONS_H_
