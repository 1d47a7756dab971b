// PackRun's evaluations, during training and after it.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/training/batch.h"
#include "worker/training/pack_run.h"

namespace lengthwise::worker::training {
namespace {

using Directive = PackSession::Directive;

// An event must fit into a message of the API; the largest field is an attention map's.
constexpr size_t kMaxAttentionBytes = 3 << 20;

// Mean of the accuracies at lengths that `belongs` accepts, or -1.
template <typename Predicate>
double MeanAccuracy(const v1::LengthAccuracies& accuracies, Predicate belongs) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < accuracies.lengths_size(); ++i) {
    if (!belongs(accuracies.lengths(i))) continue;
    sum += accuracies.accuracies(i);
    ++count;
  }
  return count == 0 ? -1 : sum / count;
}

void AddScore(int32_t length, const evaluation::LengthScore& score,
              v1::LengthAccuracies& accuracies) {
  accuracies.add_lengths(length);
  accuracies.add_accuracies(score.accuracy);
  accuracies.add_losses(score.loss);
}

}  // namespace

Directive PackRun::EvaluateInterval(int64_t step, const std::vector<int64_t>& members) {
  Directive directive = Directive::kContinue;
  std::vector<int64_t> evaluated;
  for (const int64_t index : members) {
    if (!member(index).finished) evaluated.push_back(index);
  }
  for (const MemberRange range : model_->Ranges(evaluated)) {
    const auto start = Clock::now();
    // A draining worker finishes it: the checkpoint of this step has to come behind the evaluation.
    const auto keep_going = [&] {
      directive = Listen();
      return directive != Directive::kLost;
    };
    std::vector<v1::LengthAccuracies> results(static_cast<size_t>(range.count));
    for (const int32_t length : blueprint_.evaluation.interval_lengths()) {
      const auto scores =
          model_->Score(range, length, blueprint_.evaluation.interval_sequences(), keep_going);
      if (!scores.has_value()) return directive;
      for (size_t i = 0; i < scores->size(); ++i) AddScore(length, (*scores)[i], results[i]);
    }
    const double seconds = SecondsSince(start);
    for (int64_t i = 0; i < range.count; ++i) {
      Member& scored = member(range.first + i);
      if (scored.finished) continue;
      scored.evaluation_seconds += seconds;
      v1::Event event;
      *event.mutable_length_accuracies() = std::move(results[static_cast<size_t>(i)]);
      event.mutable_length_accuracies()->set_sequences(blueprint_.evaluation.interval_sequences());
      scored.reporter.Emit(step, std::move(event));
    }
  }
  return Directive::kContinue;
}

Directive PackRun::EvaluateFinally(MemberRange range) {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  const auto start = Clock::now();
  Directive directive = Directive::kContinue;
  const auto keep_going = [&] {
    directive = Listen();
    bool wanted = false;
    for (int64_t i = range.first; i < range.first + range.count; ++i) wanted |= !member(i).finished;
    return directive == Directive::kContinue && wanted;
  };

  std::vector<v1::LengthAccuracies> results(static_cast<size_t>(range.count));
  const double all_work = EvaluationWork(blueprint_) * static_cast<double>(range.count);
  double work = 0;
  auto reported = Clock::now();
  ReportEvaluation(range, 0, WorkPerSecond() > 0 ? all_work / WorkPerSecond() : 0);
  for (const int32_t length : evaluation.lengths()) {
    const auto scores = model_->Score(range, length, evaluation.sequences(), keep_going);
    // Stopped by the session, or because all were cancelled.
    if (!scores.has_value()) return directive;
    for (size_t i = 0; i < scores->size(); ++i) AddScore(length, (*scores)[i], results[i]);

    work += SequenceWork(SequenceTokens(*blueprint_.task, length), blueprint_.size.d_model) *
            evaluation.sequences() * static_cast<double>(range.count);
    if (SecondsSince(reported) >= 1) {
      reported = Clock::now();
      ReportEvaluation(range, results.front().lengths_size(),
                       SecondsSince(start) * (all_work - work) / work);
    }
  }
  const double seconds = SecondsSince(start);
  for (int64_t i = 0; i < range.count; ++i) {
    if (member(range.first + i).finished) continue;
    member(range.first + i).evaluation_seconds += seconds;
    results[static_cast<size_t>(i)].set_final(true);
    results[static_cast<size_t>(i)].set_sequences(evaluation.sequences());
    Conclude(range.first + i, results[static_cast<size_t>(i)]);
  }
  return Directive::kContinue;
}

void PackRun::Conclude(int64_t index, const v1::LengthAccuracies& accuracies) {
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
  for (const int32_t length : blueprint_.evaluation.attention_lengths()) {
    EmitAttention(index, length);
  }
  const int32_t seen_up_to = blueprint_.evaluation.seen_up_to();
  v1::Outcome outcome;
  outcome.set_kind(v1::Outcome::COMPLETED);
  outcome.set_seen_accuracy(
      MeanAccuracy(accuracies, [=](int32_t length) { return length <= seen_up_to; }));
  outcome.set_unseen_accuracy(
      MeanAccuracy(accuracies, [=](int32_t length) { return length > seen_up_to; }));
  Finish(concluded, std::move(outcome));
}

void PackRun::EmitAttention(int64_t index, int32_t length) {
  v1::Event event;
  v1::AttentionMap map = model_->CaptureAttention(index, length);
  if (map.probabilities().size() <= kMaxAttentionBytes) {
    *event.mutable_attention_map() = std::move(map);
  } else {
    event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
    event.mutable_log_line()->set_text(
        absl::StrCat("no attention map at length ", length, ": it has ", map.probabilities().size(),
                     " bytes and ", kMaxAttentionBytes, " fit into an event"));
  }
  member(index).reporter.Emit(member(index).step, std::move(event));
}

void PackRun::ReportEvaluation(MemberRange range, int64_t done, double seconds_left) {
  for (int64_t index = range.first; index < range.first + range.count; ++index) {
    const Member& evaluated = member(index);
    if (evaluated.finished) continue;
    v1::TrialProgress progress;
    progress.set_trial(evaluated.leased->trial());
    progress.set_attempt(evaluated.leased->attempt());
    progress.set_phase(v1::TrialProgress::EVALUATING);
    progress.set_done(done);
    progress.set_total(blueprint_.evaluation.lengths_size());
    progress.set_loss(evaluated.loss);
    progress.set_seconds_left(seconds_left);
    session_.ReportProgress(evaluated.trial, std::move(progress));
  }
}

}  // namespace lengthwise::worker::training
