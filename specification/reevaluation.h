// The evaluation of a trained model as an experiment of its own: of one trial, which trains
// nothing.
#ifndef LENGTHWISE_SPECIFICATION_REEVALUATION_H_
#define LENGTHWISE_SPECIFICATION_REEVALUATION_H_

#include "absl/strings/string_view.h"
#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::specification {

// What must be resolved: `trial` of `experiment`, with the fields of its evaluation and projection
// that `changes` sets, each as a whole, but for those about evaluations during training; attention
// maps, projections and other analyses only where `changes` asks for them. Called "<the
// experiment's name>_evaluation", with the name cut so that all has at most 40 characters.
v1::ExperimentSpecification ReevaluationSpecification(const v1::ExperimentSpecification& experiment,
                                                      const v1::TrialSpecification& trial,
                                                      const v1::Evaluation& changes);

// Makes a re-evaluation of the grid that ReevaluationSpecification was resolved to: its trial is
// `trial`, named `evaluated_trial`, in all but the evaluation. Also where this program's defaults
// set more than the one's that trained it: the stored model is that trial's and no other's.
void MakeReevaluation(const v1::TrialSpecification& trial, absl::string_view evaluated_trial,
                      Grid& grid);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_REEVALUATION_H_
