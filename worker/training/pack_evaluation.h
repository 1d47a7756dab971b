// Evaluates a pack's models: accuracies by length, and the data that analyses read. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_EVALUATION_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "worker/training/blueprint.h"
#include "worker/training/pack_model.h"
#include "worker/training/trial_reporter.h"

namespace lengthwise::worker::training {

// Keeps references to its arguments. Methods throw what PackModel throws. They call `keep_going`
// often and end without a result once it returns false. Not thread-safe.
class PackEvaluation {
 public:
  using KeepGoing = std::function<bool()>;

  PackEvaluation(const Blueprint& blueprint, PackModel& model)
      : blueprint_(blueprint), model_(model) {}

  // Runs an evaluation during training of each member in the range.
  std::optional<std::vector<v1::LengthAccuracies>> Interval(MemberRange range,
                                                            const KeepGoing& keep_going) const;

  // A member's results in the evaluation after the last step.
  struct Final {
    v1::LengthAccuracies accuracies;
    std::vector<v1::SequenceScores> sequence_scores;
    v1::NoiseAccuracies noise_accuracies;
    // Errors in the answers to text, one entry per length.
    std::vector<v1::AnswerErrors> answer_errors;
    std::vector<v1::Answer> answers;
  };

  // Called after each length with the number of lengths done and their share of all work.
  using Progress = std::function<void(int64_t done, double share)>;

  // Runs the evaluation after the last step of each member in the range.
  std::optional<std::vector<Final>> Finally(MemberRange range, const KeepGoing& keep_going,
                                            const Progress& progress) const;

  // Sends the member's results, then computes and sends its attention maps and projections. Events
  // above the size limit are omitted with a warning in the trial's log. Calls `keep_going` before
  // each map and before the projections; returns false if it returned false.
  bool Emit(int64_t member, int64_t step, Final result, TrialReporter& reporter,
            const KeepGoing& keep_going) const;

 private:
  // The recipient of a member's events.
  struct Recipient {
    int64_t member = 0;
    int64_t step = 0;
    TrialReporter& reporter;

    template <typename Fact>
    void Send(Fact* (v1::Event::*field)(), Fact fact) const {
      reporter.Emit(step, field, std::move(fact));
    }
    void Warn(absl::string_view text) const;
    // Returns whether an event holds `bytes`; else warns in words that begin with `what`.
    bool Fits(int64_t bytes, absl::string_view what, absl::string_view advice = "") const;
  };

  // Add to the results of the range's members. Return false if `keep_going` returned false.
  bool EvaluateUnderNoise(MemberRange range, const KeepGoing& keep_going,
                          std::vector<Final>& results) const;
  bool EvaluateValidation(MemberRange range, const KeepGoing& keep_going,
                          std::vector<Final>& results) const;
  bool EvaluateDataSets(MemberRange range, const KeepGoing& keep_going,
                        std::vector<Final>& results) const;
  bool EmitAttention(const Recipient& to, const KeepGoing& keep_going) const;
  // Emits answer and maps of the evaluation's attention_inputs entry `number`, counted from 1.
  void EmitOfInput(const Recipient& to, int32_t number) const;
  // Sends the map in as few events as possible.
  static void EmitMap(const Recipient& to, v1::AttentionMap map);
  void EmitProjections(const Recipient& to) const;

  const Blueprint& blueprint_;
  PackModel& model_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_EVALUATION_H_
