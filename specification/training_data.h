// Derives facts about training data from a specification: data set seed, steps per epoch, and how
// text is packed. Handles fields that older stored specifications lack.
#ifndef LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_
#define LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "proto/specification.pb.h"
#include "tasks/data_set.h"

namespace lengthwise::specification {

// Limits documented in proto/specification.proto.
inline constexpr int64_t kMostEpochs = 1'000'000'000;
inline constexpr int64_t kMostExamples = 1'000'000'000;

// Seed of the data set of a trial with this data seed.
inline uint64_t DataSetSeed(const v1::Training& training, uint64_t data_seed) {
  return training.has_data_set_seed() ? training.data_set_seed() : data_seed;
}

// Returns true if training goes through a fixed data set of text in epochs.
inline bool GoesThroughText(const v1::Training& training) {
  return training.has_packing() && training.examples() > 0 && training.without_replacement();
}

// 0 if training draws new examples at every step, or if the fields it is computed from are invalid.
// At most 2 * kMostExamples, so the steps of kMostEpochs fit an int64_t.
inline int64_t StepsPerEpoch(const v1::Training& training) {
  // The number of text examples in a step varies with how many fit its sequences.
  if (training.has_packing()) return 0;
  const v1::LengthRange& lengths = training.lengths();
  const int64_t count = int64_t{lengths.max()} - lengths.min() + 1;
  if (count < 1 || training.examples() < count || training.examples() > kMostExamples ||
      training.batch_size() < 1) {
    return 0;
  }
  return tasks::DataSet({.examples = training.examples(),
                         .batch_size = training.batch_size(),
                         .min_length = lengths.min(),
                         .max_length = lengths.max()})
      .Batches();
}

// Returns true if positions restart at each example. Specifications stored before this was
// configurable lack the field.
inline bool RestartsPositions(const v1::Packing& packing) {
  return packing.has_reset_positions() ? packing.reset_positions() : !packing.attend_across();
}

// Returns true if attention or positions treat the examples of a sequence as one. Encodings must
// then support the whole sequence's length.
inline bool JoinsExamples(const v1::Packing& packing) {
  return packing.attend_across() || !RestartsPositions(packing);
}

// Returns true if a network may see whole prompts (below): no loss counts a prompt's tokens, and
// examples do not share attention or positions.
inline bool CountsAnswersApart(const v1::Packing& packing) {
  return packing.answers_only() && !JoinsExamples(packing);
}

// Returns the parameter for which a text network must know where prompts end: it attends
// bidirectionally within them, or their lengths determine its loops. Empty if it need not know.
inline std::string PromptParameter(const catalogue::Parameters& network) {
  const auto has = [&](const char* name) { return network.values().contains(name); };
  if (has("prompt_attention") && network.String("prompt_attention") == "bidirectional") {
    return "prompt_attention";
  }
  return has("loops_per_token") && network.Double("loops_per_token") > 0 ? "loops_per_token" : "";
}

inline bool SeesWholePrompts(const catalogue::Parameters& network) {
  return !PromptParameter(network).empty();
}

// A field of an evaluation that names lengths.
struct EvaluatedField {
  std::string field;
  std::vector<int32_t> lengths;
};

// The fields of all lengths that a trial evaluates or records. The projection's are there if it has
// lengths.
inline std::vector<EvaluatedField> EvaluatedFields(const v1::Evaluation& evaluation) {
  const auto list = [](const auto& lengths) {
    return std::vector<int32_t>(lengths.begin(), lengths.end());
  };
  const v1::ProjectionSettings& projection = evaluation.projection();
  std::vector<EvaluatedField> fields = {
      {"evaluation.lengths", list(evaluation.lengths())},
      {"evaluation.interval_lengths", list(evaluation.interval_lengths())},
      {"evaluation.attention_lengths", list(evaluation.attention_lengths())},
      {"evaluation.validation.lengths", list(evaluation.validation().lengths())}};
  if (!projection.lengths().empty()) {
    fields.push_back({"evaluation.projection.fitted_length", {projection.fitted_length()}});
    fields.push_back({"evaluation.projection.lengths", list(projection.lengths())});
  }
  return fields;
}

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_TRAINING_DATA_H_
