// What pictures call tasks, networks and encodings.
#ifndef LENGTHWISE_CLIENT_PLOTTING_DISPLAY_NAMES_H_
#define LENGTHWISE_CLIENT_PLOTTING_DISPLAY_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "client/rendering/component_label.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {

// The catalogue's title where the label is the one that nobody chose ("Reverse String", "RoPE",
// "Randomized RoPE", "Randomized RoPE max_position=4096"); the label where somebody did.
std::string TaskTitle(const v1::Component& task);
std::string EncodingTitle(const v1::Component& encoding);

// What its lengths are, as an axis is called: "input length", "number of vectors"; and in a word:
// "length", "vectors".
std::string AxisTitle(const v1::Component& task);
std::string AxisName(const v1::Component& task);

// One of them: "length 40", "30 digits".
std::string LengthTitle(const v1::Component& task, int32_t length);

// Whether its sequences have tokens for the outputs behind those of the input.
bool HasOutputTokens(const v1::Component& task);

// "length", "scale": one of what AxisTitle names; absent where that is the length of training, too.
std::optional<std::string> OwnAxis(const v1::Component& task);

// Whether its results are losses, and what those are: "mean squared error"; what its accuracy is:
// "token accuracy", "exact match".
bool ComparedByLoss(const v1::Component& task);
std::string LossTitle(const v1::Component& task);
std::string AccuracyTitle(const v1::Component& task);

// LengthAccuracies.metrics by their names: "strict closeness accuracy" of
// "strict_closeness_accuracy".
std::string MetricTitle(absl::string_view metric);

// Token accuracy of guessing, 0 to 1; absent for a task with other parameters than the paper's, of
// which it is not known.
std::optional<double> RandomAccuracy(const v1::Component& task);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_DISPLAY_NAMES_H_
