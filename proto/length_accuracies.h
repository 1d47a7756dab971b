// Validates and reads evaluation results, and computes their means over seen and unseen lengths,
// the same way in every program.
#ifndef LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_
#define LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"

namespace lengthwise {

// Returns the problem of `accuracies`: columns of different lengths, or a metric without a name.
// Empty if valid. The server checks every evaluation from a worker or the store, so readers of the
// server's API can rely on it.
std::string LengthAccuraciesProblem(const v1::LengthAccuracies& accuracies);

// Returns the number of sequences evaluated at `lengths(i)`; in an old history, at most that many.
int32_t SequencesAt(const v1::LengthAccuracies& accuracies, int i);

// Clamps the accuracy to [0, 1]; 0 for NaN.
double ClampAccuracy(double accuracy);

// Sets `seen_accuracy` to the mean of the clamped accuracies at lengths up to `seen_up_to`, and
// `unseen_accuracy` to the mean at longer ones (the score of Ruoss et al. 2023, section 4);
// `seen_loss` and `unseen_loss` to the mean losses there. Clears means that have no lengths.
void SetMeans(int32_t seen_up_to, v1::LengthAccuracies& accuracies);

// Score by which choices between trials rank an evaluation. Between equal scores, the lower loss is
// better.
struct SelectionScore {
  double score = 0;
  double loss = 0;
};

// Returns true if `a` is better.
bool IsBetter(const SelectionScore& a, const SelectionScore& b);

// Follows the rule of Evaluation.select, where "" is "seen", by the means that SetMeans set; if no
// length is unseen, "unseen" takes all. With `by_loss`, a score is the loss with its sign changed.
// nullopt if the evaluation has none of the rule's lengths, or for NaN.
std::optional<SelectionScore> ScoreForSelection(absl::string_view select, bool by_loss,
                                                const v1::LengthAccuracies& accuracies);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_LENGTH_ACCURACIES_H_
