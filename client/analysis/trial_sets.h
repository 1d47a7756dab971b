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
#include "absl/types/span.h"
#include "client/plotting/trial_groups.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Labels, and the trials that succeeded. Points into the experiments.
struct TrialSet {
  // Short name of the first trial's experiment. No experiment has two sets with the same labels and
  // learning rate, so that it tells apart what was trained in other ways under the same labels.
  std::string experiment;
  std::string task;
  std::string network;
  std::string encoding;
  double learning_rate = 0;
  // What was trained, and how, for comparison alone: task, network and training, with all
  // parameters, and the encoding's parameters.
  std::string training;
  std::string encoding_parameters;
  // In the order of the experiments and their grids.
  std::vector<const v1::Trial*> trials;
};

// Whatever experiments the trials are of; those of one label that were trained with other
// parameters or in another way are sets of their own. A model that was evaluated again is there
// twice: analyses count the first trial of its seeds that has what they need. In the order of the
// experiments and their grids.
std::vector<TrialSet> SetsOfTrials(const std::vector<PlotExperiment>& experiments);

// Whether two of them have the same labels and learning rate, so that their experiments are needed
// to tell them apart.
bool ShareLabels(absl::Span<const TrialSet* const> sets);

// The set of the encoding `reference` with the task, network, training and learning rate of `set`;
// null where there is none.
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
