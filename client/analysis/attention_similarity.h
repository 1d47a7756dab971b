// How alike the attention maps of models are to those of models with another encoding (relational
// reasoning on Latin squares, Table 3 and Figure 4, and Figure 9 for the divergence).
#ifndef LENGTHWISE_CLIENT_ANALYSIS_ATTENTION_SIMILARITY_H_
#define LENGTHWISE_CLIENT_ANALYSIS_ATTENTION_SIMILARITY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/analysis/trial_sets.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

enum class AttentionMeasure {
  // Cosine of the angle between all attention probabilities of two models, one after the other.
  kCosine,
  // Jensen-Shannon divergence, nats, of what a token attends to in two models: the mean over
  // tokens,
  // heads, layers and sequences.
  kJensenShannon,
};

struct AttentionSimilarity {
  const TrialSet* set = nullptr;
  // Of each pair of a model of the set and one of the reference, pairs of different seeds where the
  // set is the reference itself. Empty where there is no reference of its task, network and
  // learning rate.
  std::vector<double> pairs;
  // Models with maps.
  int64_t models = 0;
  // Of each model with pairs, their mean.
  std::vector<std::pair<const v1::Trial*, double>> means;
};

struct AttentionComparison {
  // One for each of the sets that has maps.
  std::vector<AttentionSimilarity> rows;
  // Sequences and layers that were compared.
  int64_t sequences = 0;
  int64_t layers = 0;
  // Encodings none of whose trials has maps.
  std::vector<std::string> without_maps;
};

// Reads the maps of evaluation sequences, which all must be of the same ones, of all trials.
// FAILED_PRECONDITION, saying how to record them: the reference has no maps, or nothing else has;
// the maps are of other sequences than the reference's.
absl::StatusOr<AttentionComparison> CompareAttention(Connection& connection,
                                                     const std::vector<TrialSet>& sets,
                                                     absl::string_view reference,
                                                     AttentionMeasure measure);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_ATTENTION_SIMILARITY_H_
