// Arrays for NumPy, one .npz file a trial:
//   loss_steps [S], losses [S], training_accuracies [S], gradient_norms [S], training_lengths [S]
//   final_lengths [L], final_accuracies [L], final_losses [L]
//   interval_steps [E], interval_lengths [K], interval_accuracies [E, K]
//   final_M [L], interval_M [E, K] of each other metric M, such as digits_accuracy; not a number
//   where an evaluation lacks it
//   training_set_accuracy [1], of the final evaluation
//   sequence_accuracies_N [sequences], sequence_losses_N [sequences], of length N
//   of text wrong_answers_N [W], the sequences whose digits are not all right,
//   wrong_answer_carries_N [W], 1 where there is a carry into the first wrong place, and
//   wrong_places_N [K, 2], sequence and place of each wrong digit
//   noise_deviations [D], noise_accuracies [D], noise_losses [D]
//   attention_length_N [layers, heads, tokens, tokens], rows are queries, of a sample of length N,
//   with attention_length_N_tokens [tokens] and attention_length_N_positions [tokens];
//   attention_length_N_sequence_S of further sequences of the length, S from 2;
//   attention_input_K likewise, of the K-th of evaluation.attention_inputs
//   projection_length_N [depths, sequences, tokens, 2] and
//   projection_length_N_explained_variance [depths, 2]
// What a trial has not recorded is not in its file.
#ifndef LENGTHWISE_CLIENT_EXPORT_NPZ_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_NPZ_EXPORT_H_

#include "client/export/exporter.h"

namespace lengthwise::client {

// Of an experiment "{trial}.npz" for each trial that has measured anything.
class NpzExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status AddTrial(const v1::Trial& trial) override;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_NPZ_EXPORT_H_
