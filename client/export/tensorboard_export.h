// Event files for TensorBoard: one run, which is a directory, for each trial, with the scalars
//   training/loss, training/accuracy, training/gradient_norm: each point of the loss curve
//   evaluation/seen_accuracy, evaluation/unseen_accuracy: each evaluation in training
//   evaluation/accuracy_at_length/0010, ...: each of its lengths
//   final/seen_accuracy, final/unseen_accuracy: after the last step
//   final/accuracy_by_length, final/loss_by_length, whose "step" is the length
//   evaluation/M_at_length/0010, final/M_by_length of each other metric M, such as digits_accuracy
// and with its point of the grid as hyper-parameters.
#ifndef LENGTHWISE_CLIENT_EXPORT_TENSORBOARD_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_TENSORBOARD_EXPORT_H_

#include "client/export/exporter.h"

namespace lengthwise::client {

class TensorboardExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status AddTrial(const v1::Trial& trial) override;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_TENSORBOARD_EXPORT_H_
