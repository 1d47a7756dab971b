// Builds the specification of a re-evaluation: an experiment of one trial that evaluates a trained
// model and does not train.
#ifndef LENGTHWISE_SPECIFICATION_REEVALUATION_H_
#define LENGTHWISE_SPECIFICATION_REEVALUATION_H_

#include "absl/strings/string_view.h"
#include "proto/specification.pb.h"
#include "specification/resolve.h"

namespace lengthwise::specification {

// The specification to resolve. Starts from `trial` of `experiment` and replaces, as a whole, each
// field of evaluation and projection that `changes` sets, except fields about evaluations during
// training. Attention maps, projections and other analyses are made only if `changes` requests
// them. Its name is "<experiment name>_evaluation", truncated to 40 characters by cutting the
// experiment's name.
v1::ExperimentSpecification ReevaluationSpecification(const v1::ExperimentSpecification& experiment,
                                                      const v1::TrialSpecification& trial,
                                                      const v1::Evaluation& changes);

// Turns the resolved grid of ReevaluationSpecification into a re-evaluation: its only trial equals
// `trial`, named `evaluated_trial`, in everything except the evaluation. Defaults added since
// `trial` was resolved do not apply, because the specification must describe the stored model.
void MakeReevaluation(const v1::TrialSpecification& trial, absl::string_view evaluated_trial,
                      Grid& grid);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_REEVALUATION_H_
