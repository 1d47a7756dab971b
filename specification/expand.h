// The grid of an experiment: the trials of a resolved specification, and the packs that they form.
#ifndef LENGTHWISE_SPECIFICATION_EXPAND_H_
#define LENGTHWISE_SPECIFICATION_EXPAND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// The fields shared by trials that can train in one pack: all except weight seed, data seed and
// learning rate.
struct GridPack {
  // Lower-case hexadecimal SHA-256 of the specification without `keep`.
  std::string key;
  // Has no seeds and no learning rate.
  v1::TrialSpecification specification;
};

// One trial of a grid.
struct GridTrial {
  // Stable: the same point of the grid has the same id in every experiment:
  // "bucket_sort-encoder-randomized_sin_cos-lr0.001-seed0" (or "-weights0-data3").
  std::string id;
  double learning_rate = 0;
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
  // Shared by all trials of the pack: copying it for each trial would dominate the cost of a
  // submission.
  std::shared_ptr<const GridPack> pack;

  // The trial's complete specification.
  v1::TrialSpecification Specification() const {
    v1::TrialSpecification specification = pack->specification;
    specification.set_learning_rate(learning_rate);
    specification.set_weight_seed(weight_seed);
    specification.set_data_seed(data_seed);
    return specification;
  }
};

struct Grid {
  // As given, with every default filled in.
  v1::ExperimentSpecification specification;
  // Ordered by tasks, networks, encodings, learning rates, weight seeds, data seeds; the last
  // changes fastest.
  std::vector<GridTrial> trials;
};

// Returns false if the grid leaves this pair out: the network `python` takes the encoding `own`,
// which no other network takes, and, with heads, those that only add to the logits. Networks that
// read tokens in their order take `none` alone.
bool Fits(const v1::Component& network, const v1::Component& encoding);

// Expects a resolved specification without problems. Order: see Grid::trials.
std::vector<GridTrial> Expand(const v1::ExperimentSpecification& specification);

// The pack that a trial belongs to. Drops the trial's seeds and learning rate.
std::shared_ptr<const GridPack> MakePack(v1::TrialSpecification trial);

// Digest (proto/digest.h) of the fields that the trials of a pack share: all except seeds, learning
// rate and `keep`. The server leases trials with equal keys together; the worker trains them in
// lockstep.
std::string PackKey(v1::TrialSpecification trial);

// The specification to resolve of a re-evaluation: an experiment of one trial that evaluates a
// trained model and does not train. Starts from `trial` of `experiment` and replaces, as a whole,
// each field of evaluation and projection that `changes` sets, except fields about evaluations
// during training. Attention maps, projections and other analyses are made only if `changes`
// requests them. Its name is "<experiment name>_evaluation", truncated to 40 characters by cutting
// the experiment's name.
v1::ExperimentSpecification ReevaluationSpecification(const v1::ExperimentSpecification& experiment,
                                                      const v1::TrialSpecification& trial,
                                                      const v1::Evaluation& changes);

// Turns the resolved grid of ReevaluationSpecification into a re-evaluation: its only trial equals
// `trial`, named `evaluated_trial`, in everything except the evaluation. Defaults added since
// `trial` was resolved do not apply, because the specification must describe the stored model.
void MakeReevaluation(const v1::TrialSpecification& trial, absl::string_view evaluated_trial,
                      Grid& grid);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_EXPAND_H_
