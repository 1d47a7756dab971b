#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "specification/checks.h"
#include "specification/expand.h"

namespace lengthwise::specification {
namespace {

constexpr absl::string_view kSuffix = "_evaluation";

// Copies each field that is set in `from`, replacing the whole field.
void Replace(google::protobuf::Message& from, google::protobuf::Message& to) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  from.GetReflection()->ListFields(from, &set);
  from.GetReflection()->SwapFields(&to, &from, set);
}

v1::Evaluation Changed(v1::Evaluation evaluation, v1::Evaluation changes) {
  // Fields about evaluations during training have no effect, since there is no training. The
  // trial's own values stay, since other fields may depend on them.
  changes.clear_every_steps();
  changes.clear_interval_lengths();
  changes.clear_interval_sequences();
  // The trial's maps, projections and other analyses are stored already. Repeat only those
  // requested.
  evaluation.clear_attention_lengths();
  evaluation.clear_attention_inputs();
  evaluation.clear_attention_sequences();
  evaluation.clear_sequence_scores();
  evaluation.clear_answers();
  evaluation.clear_embedding_noise();
  evaluation.clear_training_examples();
  // It chooses between trials, and its lengths may exceed those that are evaluated now.
  evaluation.clear_validation();
  if (changes.has_projection()) {
    Replace(*changes.mutable_projection(), *evaluation.mutable_projection());
    changes.clear_projection();
  } else {
    evaluation.clear_projection();
  }
  Replace(changes, evaluation);
  return evaluation;
}

}  // namespace

v1::ExperimentSpecification ReevaluationSpecification(const v1::ExperimentSpecification& experiment,
                                                      const v1::TrialSpecification& trial,
                                                      const v1::Evaluation& changes) {
  v1::ExperimentSpecification specification;
  specification.set_name(
      absl::StrCat(experiment.name().substr(0, kMostName - kSuffix.size()), kSuffix));
  specification.set_priority(experiment.priority());
  // No protocol: the trial's fields are complete.
  *specification.add_tasks() = trial.task();
  *specification.add_networks() = trial.network();
  *specification.add_encodings() = trial.encoding();
  specification.add_learning_rates(trial.learning_rate());
  if (experiment.weight_seeds_size() > 0) {
    specification.add_weight_seeds(trial.weight_seed());
    specification.add_data_seeds(trial.data_seed());
  } else {
    specification.add_seeds(trial.weight_seed());
  }
  specification.set_keep(trial.keep());
  specification.set_retention(experiment.retention());
  *specification.mutable_training() = trial.training();
  *specification.mutable_evaluation() = Changed(trial.evaluation(), changes);
  return specification;
}

void MakeReevaluation(const v1::TrialSpecification& trial, absl::string_view evaluated_trial,
                      Grid& grid) {
  grid.specification.set_evaluated_trial(std::string(evaluated_trial));
  for (GridTrial& made : grid.trials) {
    v1::TrialSpecification specification = trial;
    *specification.mutable_evaluation() = made.pack->specification.evaluation();
    specification.set_evaluated_trial(std::string(evaluated_trial));
    made.learning_rate = trial.learning_rate();
    made.weight_seed = trial.weight_seed();
    made.data_seed = trial.data_seed();
    made.pack = MakePack(std::move(specification));
  }
}

}  // namespace lengthwise::specification
