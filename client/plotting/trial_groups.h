// From the trials of experiments to the lines of a picture.
#ifndef LENGTHWISE_CLIENT_PLOTTING_TRIAL_GROUPS_H_
#define LENGTHWISE_CLIENT_PLOTTING_TRIAL_GROUPS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/plotting/figure.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// What the server has of one experiment; only what the figure at hand needs is filled.
struct PlotExperiment {
  // "quickstart-1".
  std::string name;
  // In the order of the grid.
  std::vector<v1::Trial> trials;
  v1::QueryLengthAccuraciesResponse accuracies;
  v1::QueryLossCurvesResponse losses;
  // By the trial's full name.
  std::map<std::string, std::vector<v1::AttentionMap>> attention_maps;
  std::map<std::string, std::vector<v1::Projection>> projections;
  // Connection::QueryAnalyses.
  std::vector<v1::Event> analyses;
};

// Trials that differ in nothing but seeds.
struct SeedGroup {
  double learning_rate = 0;
  std::vector<const v1::Trial*> trials;
};

// Trials that differ in nothing but seeds and learning rates: a line of a picture. Points into the
// experiments.
struct TrialGroup {
  const PlotExperiment* experiment = nullptr;
  const v1::Component* task = nullptr;
  const v1::Component* encoding = nullptr;
  // What tells it from others of its task: the encoding, with the network and the experiment in
  // front where there are several.
  std::string name;
  // The same for this name in all tasks. A randomized encoding has the colour of its plain one.
  SeriesStyle style;
  std::vector<SeedGroup> rates;
};

// In the order of the experiments and their grids.
std::vector<TrialGroup> GroupTrials(const std::vector<PlotExperiment>& experiments);

// The tasks of the groups, each once, by label, in their order: the panels of a picture.
std::vector<const v1::Component*> TasksOf(const std::vector<TrialGroup>& groups);

// The learning rate whose trials have the highest mean of `score`; of equal ones the first. Trials
// whose score is not a number do not count; nullptr where all are such.
using TrialScore = std::function<double(const v1::Trial& trial)>;
const SeedGroup* BestRate(const TrialGroup& group, const TrialScore& score);
// The trial of all learning rates with the highest score; nullptr as above.
const v1::Trial* BestTrial(const TrialGroup& group, const TrialScore& score);

// Of each group the best trial by FinalScore of those that `wanted` accepts; groups without one are
// left out.
std::vector<std::pair<const TrialGroup*, const v1::Trial*>> BestTrials(
    const std::vector<TrialGroup>& groups, const std::function<bool(const v1::Trial&)>& wanted);

// Mean accuracy over the unseen lengths of an evaluation of this trial; not-a-number for none.
double UnseenAccuracy(const v1::Trial& trial, const v1::LengthAccuracies& accuracies);

// The last full evaluation of each trial that has one, by the trial's name.
std::map<std::string, const v1::LengthAccuracies*> FinalEvaluations(
    const PlotExperiment& experiment);

// Mean accuracy over the unseen lengths of an evaluation of this trial, over all lengths where none
// is unseen; the negative of such a mean of losses for tasks that are compared by them;
// not-a-number where it is empty.
double EvaluationScore(const v1::Trial& trial, const v1::LengthAccuracies& measured);

// Scores trials by their final evaluation.
TrialScore FinalScore(const PlotExperiment& experiment);

// "quickstart-1", "a-1 and b-1", "a-1, b-1 and c-1".
std::string ExperimentNames(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_TRIAL_GROUPS_H_
