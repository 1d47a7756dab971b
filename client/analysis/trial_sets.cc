#include "client/analysis/trial_sets.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/suggestion.h"
#include "client/rendering/component_label.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace lengthwise::client {
namespace {

// The same for equal messages, maps among their fields or not.
std::string Bytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

std::string TrainingOf(const v1::TrialSpecification& specification) {
  v1::TrialSpecification trained;
  *trained.mutable_task() = specification.task();
  *trained.mutable_network() = specification.network();
  *trained.mutable_training() = specification.training();
  // No model depends on how often something was written down.
  trained.mutable_training()->clear_report_every_steps();
  trained.mutable_training()->clear_checkpoint_every_steps();
  return Bytes(trained);
}

bool HaveSameLabels(const TrialSet& a, const TrialSet& b) {
  return a.task == b.task && a.network == b.network && a.encoding == b.encoding &&
         a.learning_rate == b.learning_rate;
}

}  // namespace

std::vector<TrialSet> SetsOfTrials(const std::vector<PlotExperiment>& experiments) {
  std::vector<TrialSet> sets;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      if (trial.state() != v1::SUCCEEDED) continue;
      const v1::TrialSpecification& specification = trial.specification();
      const TrialSet wanted{.experiment = experiment.name,
                            .task = Label(specification.task()),
                            .network = Label(specification.network()),
                            .encoding = Label(specification.encoding()),
                            .learning_rate = specification.learning_rate(),
                            .training = TrainingOf(specification),
                            .encoding_parameters = Bytes(specification.encoding())};
      auto set = std::find_if(sets.begin(), sets.end(), [&](const TrialSet& other) {
        return HaveSameLabels(other, wanted) && other.training == wanted.training &&
               other.encoding_parameters == wanted.encoding_parameters;
      });
      if (set == sets.end()) set = sets.insert(sets.end(), wanted);
      set->trials.push_back(&trial);
    }
  }
  return sets;
}

bool ShareLabels(absl::Span<const TrialSet* const> sets) {
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // Rows of one set are no two sets.
      if (sets[i] != sets[j] && HaveSameLabels(*sets[i], *sets[j])) return true;
    }
  }
  return false;
}

const TrialSet* ReferenceOf(const TrialSet& set, absl::string_view reference,
                            const std::vector<TrialSet>& sets) {
  for (const TrialSet& other : sets) {
    if (other.encoding == reference && other.training == set.training &&
        other.learning_rate == set.learning_rate) {
      return &other;
    }
  }
  return nullptr;
}

absl::Status CheckReference(absl::string_view reference, const std::vector<TrialSet>& sets) {
  std::vector<std::string> encodings;
  for (const TrialSet& set : sets) {
    if (set.encoding == reference) return absl::OkStatus();
    if (std::find(encodings.begin(), encodings.end(), set.encoding) == encodings.end()) {
      encodings.push_back(set.encoding);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--reference: no trial that succeeded has the encoding \"", reference, "\"",
                   catalogue::Suggestion(reference, encodings), "; there are ",
                   encodings.empty() ? "none at all" : absl::StrJoin(encodings, ", ")));
}

std::map<std::string, double> Accuracies(const std::vector<PlotExperiment>& experiments) {
  std::map<std::string, double> accuracies;
  for (const PlotExperiment& experiment : experiments) {
    const TrialScore score = FinalScore(experiment);
    for (const v1::Trial& trial : experiment.trials) {
      const double accuracy = score(trial);
      if (!std::isnan(accuracy)) accuracies[trial.name()] = accuracy;
    }
  }
  return accuracies;
}

Seeds SeedsOf(const v1::Trial& trial) {
  return {trial.specification().weight_seed(), trial.specification().data_seed()};
}

}  // namespace lengthwise::client
