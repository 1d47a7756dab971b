// Trials that an analysis sums up in a row: those that differ in nothing but seeds.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_TRIAL_SETS_H_
#define LENGTHWISE_CLIENT_ANALYSIS_TRIAL_SETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/plotting/trial_groups.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Labels, and the trials that succeeded. Points into the experiments.
struct TrialSet {
  std::string task;
  std::string network;
  std::string encoding;
  double learning_rate = 0;
  // In the order of the experiments and their grids.
  std::vector<const v1::Trial*> trials;
};

// Whatever experiments the trials are of. A model that was evaluated again is there twice: analyses
// count the first trial of its seeds that has what they need. In the order of the experiments and
// their grids.
std::vector<TrialSet> SetsOfTrials(const std::vector<PlotExperiment>& experiments);

// The set of the encoding `reference` with the task, network and learning rate of `set`; null where
// there is none.
const TrialSet* ReferenceOf(const TrialSet& set, absl::string_view reference,
                            const std::vector<TrialSet>& sets);

// INVALID_ARGUMENT, with those there are, where no set has the encoding `reference`.
absl::Status CheckReference(absl::string_view reference, const std::vector<TrialSet>& sets);

// Of each trial with a final evaluation, by its full name: its mean accuracy over the lengths that
// training did not show, over all where it showed all.
std::map<std::string, double> Accuracies(const std::vector<PlotExperiment>& experiments);

// Weight and data seed: what pairs the trials of two sets.
using Seeds = std::pair<uint64_t, uint64_t>;
Seeds SeedsOf(const v1::Trial& trial);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_TRIAL_SETS_H_
