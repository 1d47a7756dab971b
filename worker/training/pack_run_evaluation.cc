// PackRun's evaluations, during training and after it.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/length_accuracies.h"
#include "worker/training/pack_run.h"

namespace lengthwise::worker::training {
namespace {

using Directive = PackSession::Directive;

void AddScore(int32_t length, const evaluation::LengthScore& score,
              v1::LengthAccuracies& accuracies) {
  accuracies.set_sequences(std::max(accuracies.sequences(), static_cast<int32_t>(score.sequences)));
  accuracies.add_lengths(length);
  accuracies.add_accuracies(score.accuracy);
  accuracies.add_losses(score.loss);
  for (const auto& [name, value] : score.metrics) {
    auto& metrics = *accuracies.mutable_metrics();
    auto metric = std::find_if(metrics.begin(), metrics.end(),
                               [&](const auto& known) { return known.name() == name; });
    if (metric == metrics.end()) {
      metrics.Add()->set_name(name);
      metric = metrics.end() - 1;
    }
    metric->add_values(value);
  }
}

v1::SequenceScores EachSequence(int32_t length, const evaluation::LengthScore& score) {
  v1::SequenceScores scores;
  scores.set_length(length);
  scores.mutable_accuracies()->Add(score.each_accuracy.begin(), score.each_accuracy.end());
  scores.mutable_losses()->Add(score.each_loss.begin(), score.each_loss.end());
  scores.mutable_wrong_answers()->Add(score.wrong_answers.begin(), score.wrong_answers.end());
  return scores;
}

}  // namespace

bool PackRun::IsWanted(MemberRange range, Directive& directive) {
  directive = Listen();
  bool wanted = false;
  for (int64_t i = range.first; i < range.first + range.count; ++i) wanted |= !member(i).finished;
  return directive == Directive::kContinue && wanted;
}

Directive PackRun::EvaluateDue() {
  std::map<int64_t, std::vector<int64_t>> due;  // by step
  for (const int64_t index : Unfinished()) {
    if (member(index).evaluation_due) due[member(index).step].push_back(index);
  }
  for (const auto& [step, members] : due) {
    const Directive directive = EvaluateInterval(step, members);
    if (directive != Directive::kContinue) return directive;
    for (const int64_t index : members) member(index).checkpoint_step = 0;
    CheckpointStep(step, members);
  }
  return Directive::kContinue;
}

Directive PackRun::EvaluateInterval(int64_t step, const std::vector<int64_t>& members) {
  Directive directive = Directive::kContinue;
  std::vector<int64_t> evaluated;
  for (const int64_t index : members) {
    if (!member(index).finished) evaluated.push_back(index);
  }
  for (const int64_t index : evaluated) member(index).evaluation_due = true;
  for (const MemberRange range : model_->Ranges(evaluated)) {
    const auto start = Clock::now();
    const auto keep_going = [&] {
      if (IsWanted(range, directive)) return true;
      return directive == Directive::kDrain && !CanLeaveEvaluation(step);
    };
    std::vector<v1::LengthAccuracies> results(static_cast<size_t>(range.count));
    bool complete = true;
    for (const int32_t length : blueprint_.evaluation.interval_lengths()) {
      const auto scores = model_->Score(range, length, blueprint_.evaluation.interval_sequences(),
                                        keep_going, {.validation = true});
      complete = scores.has_value();
      if (!complete) break;
      for (size_t i = 0; i < scores->size(); ++i) AddScore(length, (*scores)[i], results[i]);
    }
    if (!complete && directive != Directive::kContinue) return directive;
    if (!complete) continue;  // all its members were cancelled
    const double seconds = SecondsSince(start);
    session_.CountEvaluation(seconds);
    for (int64_t i = 0; i < range.count; ++i) {
      Member& scored = member(range.first + i);
      if (scored.finished) continue;
      scored.evaluation_due = false;
      scored.evaluation_seconds += seconds;
      v1::LengthAccuracies& accuracies = results[static_cast<size_t>(i)];
      accuracies.set_training_seconds(scored.time.seconds());
      StopAtAccuracy(scored, accuracies);
      v1::Event event;
      *event.mutable_length_accuracies() = std::move(accuracies);
      scored.reporter.Emit(step, std::move(event));
    }
  }
  return Directive::kContinue;
}

Directive PackRun::EvaluateFinally(MemberRange range) {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  const auto start = Clock::now();
  Directive directive = Directive::kContinue;
  const auto keep_going = [&] { return IsWanted(range, directive); };

  std::vector<FinalEvaluation> results(static_cast<size_t>(range.count));
  const double all_work = EvaluationWork(blueprint_) * static_cast<double>(range.count);
  double work = 0;
  const bool rounding = blueprint_.HasWholeNumbers();
  auto reported = Clock::now();
  ReportEvaluation(range, 0, work_per_second_ > 0 ? all_work / work_per_second_ : 0);
  for (const int32_t length : evaluation.lengths()) {
    const auto scores =
        model_->Score(range, length, evaluation.sequences(), keep_going,
                      {.each_sequence = evaluation.sequence_scores(), .rounding = rounding});
    // Stopped by the session, or because all were cancelled.
    if (!scores.has_value()) return directive;
    for (size_t i = 0; i < scores->size(); ++i) {
      AddScore(length, (*scores)[i], results[i].accuracies);
      if (evaluation.sequence_scores()) {
        results[i].sequence_scores.push_back(EachSequence(length, (*scores)[i]));
      }
      if ((*scores)[i].errors.has_value()) {
        results[i].answer_errors.push_back(*(*scores)[i].errors);
      }
    }

    work += EvaluationWork(blueprint_, length) * static_cast<double>(range.count);
    if (SecondsSince(reported) >= 1) {
      reported = Clock::now();
      ReportEvaluation(range, results.front().accuracies.lengths_size(),
                       SecondsSince(start) * (all_work - work) / work);
    }
  }
  if (!EvaluateUnderNoise(range, keep_going, results)) return directive;
  if (!EvaluateDataSets(range, keep_going, results)) return directive;
  const double seconds = SecondsSince(start);
  session_.CountEvaluation(seconds);
  for (int64_t i = 0; i < range.count; ++i) {
    Member& evaluated = member(range.first + i);
    if (evaluated.finished) continue;
    evaluated.evaluation_seconds += seconds;
    FinalEvaluation& result = results[static_cast<size_t>(i)];
    result.accuracies.set_final(true);
    result.accuracies.set_training_seconds(evaluated.time.seconds());
    Conclude(range.first + i, std::move(result));
  }
  return Directive::kContinue;
}

bool PackRun::EvaluateUnderNoise(MemberRange range, const KeepGoing& keep_going,
                                 std::vector<FinalEvaluation>& results) {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  for (const double deviation : evaluation.embedding_noise()) {
    std::vector<double> accuracies(results.size()), losses(results.size());
    for (const int32_t length : evaluation.lengths()) {
      const auto scores = model_->Score(range, length, evaluation.sequences(), keep_going,
                                        {.embedding_noise = deviation});
      if (!scores.has_value()) return false;
      for (size_t i = 0; i < scores->size(); ++i) {
        accuracies[i] += (*scores)[i].accuracy / evaluation.lengths_size();
        losses[i] += (*scores)[i].loss / evaluation.lengths_size();
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].noise_accuracies.add_deviations(deviation);
      results[i].noise_accuracies.add_accuracies(accuracies[i]);
      results[i].noise_accuracies.add_losses(losses[i]);
    }
  }
  return true;
}

bool PackRun::EvaluateDataSets(MemberRange range, const KeepGoing& keep_going,
                               std::vector<FinalEvaluation>& results) {
  const int64_t examples = blueprint_.evaluation.training_examples();
  if (examples == 0) return true;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto accuracy =
        model_->TrainingAccuracy(range.first + static_cast<int64_t>(i), examples, keep_going);
    if (!accuracy.has_value()) return false;
    results[i].accuracies.set_training_accuracy(*accuracy);
  }
  return true;
}

void PackRun::Conclude(int64_t index, FinalEvaluation result) {
  const v1::LengthAccuracies& accuracies = result.accuracies;
  Member& concluded = member(index);
  for (int i = 0; i < accuracies.losses_size(); ++i) {
    if (std::isfinite(accuracies.losses(i))) continue;
    FailDiverged(
        concluded, accuracies.losses(i),
        absl::StrCat("in the evaluation after the last step, at length ", accuracies.lengths(i)));
    return;
  }
  v1::Event event;
  *event.mutable_length_accuracies() = accuracies;
  concluded.reporter.Emit(concluded.step, std::move(event));
  EmitSequenceScores(concluded, std::move(result.sequence_scores));
  if (result.noise_accuracies.deviations_size() > 0) {
    v1::Event noise;
    *noise.mutable_noise_accuracies() = std::move(result.noise_accuracies);
    concluded.reporter.Emit(concluded.step, std::move(noise));
  }
  for (v1::AnswerErrors& errors : result.answer_errors) {
    v1::Event of_length;
    *of_length.mutable_answer_errors() = std::move(errors);
    concluded.reporter.Emit(concluded.step, std::move(of_length));
  }
  EmitAttention(index);
  EmitProjections(index);
  SetMeanAccuracies(blueprint_.evaluation.seen_up_to(), result.accuracies);
  v1::Outcome outcome;
  outcome.set_kind(v1::Outcome::COMPLETED);
  outcome.set_seen_accuracy(accuracies.has_seen_accuracy() ? accuracies.seen_accuracy() : -1);
  outcome.set_unseen_accuracy(accuracies.has_unseen_accuracy() ? accuracies.unseen_accuracy() : -1);
  Finish(concluded, std::move(outcome));
}

}  // namespace lengthwise::worker::training
