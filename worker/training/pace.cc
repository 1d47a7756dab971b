#include "worker/training/pace.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/length_accuracies.h"

namespace lengthwise::worker::training {
namespace {

constexpr std::chrono::seconds kReportInterval{1};

}  // namespace

double SequenceWork(int64_t tokens, int64_t d_model) {
  return static_cast<double>(tokens) * static_cast<double>(6 * d_model + tokens);
}

double EvaluationWork(const Blueprint& blueprint, int64_t n) {
  const bool rounds = blueprint.examples != nullptr && blueprint.examples->HasWholeNumbers(n);
  const double passes = rounds ? 2 : 1;
  return passes * SequenceWork(blueprint.source().SequenceTokens(n), blueprint.size.d_model) *
         static_cast<double>(
             blueprint.source().EvaluationSequences(n, blueprint.evaluation.sequences()));
}

double EvaluationWork(const Blueprint& blueprint) {
  double work = 0;
  for (const int32_t n : blueprint.evaluation.lengths()) work += EvaluationWork(blueprint, n);
  return work * (1 + blueprint.evaluation.embedding_noise_size());
}

double MeanStepWork(const Blueprint& blueprint) {
  const v1::LengthRange& lengths = blueprint.training.lengths();
  double work = 0;
  for (int64_t n = lengths.min(); n <= lengths.max(); ++n) {
    work += SequenceWork(blueprint.source().TrainingSequenceTokens(n), blueprint.size.d_model);
  }
  return 3 * work * blueprint.source().ExamplesOfStep(blueprint.training) /
         (lengths.max() - lengths.min() + 1);
}

TrainingLeft EstimateTrainingLeft(const v1::Training& training, int64_t step, double seconds,
                                  double steps_per_second) {
  const int64_t steps = training.steps() - step;
  const TrainingLeft all = {steps, static_cast<double>(steps) / steps_per_second};
  if (training.stop_after_seconds() <= 0) return all;
  const double seconds_left = std::max(0.0, training.stop_after_seconds() - seconds);
  if (seconds_left >= all.seconds) return all;
  return {static_cast<int64_t>(std::ceil(seconds_left * steps_per_second)), seconds_left};
}

std::string ReachedTime(const v1::Training& training, double seconds) {
  if (training.stop_after_seconds() <= 0 || seconds < training.stop_after_seconds()) return "";
  return absl::StrCat("training had taken ", seconds, " s; training.stop_after_seconds is ",
                      training.stop_after_seconds());
}

std::string ReachedAccuracy(const v1::Training& training, const v1::Evaluation& evaluation,
                            const v1::LengthAccuracies& accuracies) {
  if (training.stop_at_accuracy() <= 0) return "";
  const std::string select = evaluation.select() == "unseen" ? "unseen" : "seen";
  v1::LengthAccuracies means = accuracies;
  SetMeans(evaluation.seen_up_to(), means);
  const auto mean = ScoreForSelection(select, /*by_loss=*/false, means);
  if (!mean.has_value() || mean->score < training.stop_at_accuracy()) return "";
  return absl::StrCat("the mean accuracy over the ", select, " lengths was ", mean->score,
                      "; training.stop_at_accuracy is ", training.stop_at_accuracy());
}

bool StepRate::CountStep(TimePoint now) {
  ++steps_;
  const std::chrono::duration<double> passed = now - last_time_;
  if (passed < kReportInterval) return false;
  const double newest = static_cast<double>(steps_) / passed.count();
  steps_per_second_ = steps_per_second_.has_value() ? (*steps_per_second_ + newest) / 2 : newest;
  last_time_ = now;
  steps_ = 0;
  return true;
}

void TrainingTime::Resume(int64_t step, double seconds) {
  earlier_steps_ = step;
  earlier_seconds_ = seconds;
}

void TrainingTime::AddStep(double seconds) {
  ++steps_;
  seconds_ += seconds;
}

double TrainingTime::seconds() const {
  if (exact_) return earlier_seconds_ + seconds_;
  if (steps_ == 0) return 0;
  return seconds_ + static_cast<double>(earlier_steps_) * seconds_ / static_cast<double>(steps_);
}

}  // namespace lengthwise::worker::training
