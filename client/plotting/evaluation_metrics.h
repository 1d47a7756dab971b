// What evaluations measured, by name: "accuracy", "loss", and the names of
// LengthAccuracies.metrics.
#ifndef LENGTHWISE_CLIENT_PLOTTING_EVALUATION_METRICS_H_
#define LENGTHWISE_CLIENT_PLOTTING_EVALUATION_METRICS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"
#include "proto/event.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {

// The one that a task's results are: its loss where they are compared by it, otherwise its
// accuracy.
std::string MainMetric(const v1::Component& task);

// Whether it is a share of what is right, from 0 to 1, and not an error, of which lower ones are
// better.
bool IsAccuracy(absl::string_view metric);

// Value by length; empty where the evaluation does not have the metric.
std::map<double, double> ByLength(const v1::LengthAccuracies& measured, const std::string& metric);

// What a picture of several tasks shows.
struct ShownMetric {
  std::string name;
  // Called "token accuracy", "mean squared error", "digits accuracy".
  Axis axis;
  // The tasks are compared by their losses, of which medians are shown.
  bool is_median = false;
};

// `metric`, or where it is empty what the tasks' results are. INVALID_ARGUMENT where no evaluation
// of these experiments has the metric, with those there are, and where some tasks are compared by
// accuracies and some by losses.
absl::StatusOr<ShownMetric> ChooseMetric(const std::vector<PlotExperiment>& experiments,
                                         const std::vector<const v1::Component*>& tasks,
                                         const std::string& metric);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_EVALUATION_METRICS_H_
