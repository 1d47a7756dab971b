// What a PackRun tells watchers on the way.
#include <algorithm>
#include <utility>
#include <vector>

#include "worker/training/pack_run.h"

namespace lengthwise::worker::training {

void PackRun::ReportTraining() {
  const std::vector<int64_t> unfinished = Unfinished();
  if (unfinished.empty()) return;
  const double rate = rate_.steps_per_second();
  const auto left = [&](const Member& member) {
    if (HasEndedTraining(member)) return TrainingLeft{};
    return EstimateTrainingLeft(blueprint_.training, member.step, member.time.seconds(), rate);
  };
  // Evaluation waits for the member that trains longest.
  double training_seconds = 0;
  for (const int64_t index : unfinished) {
    training_seconds = std::max(training_seconds, left(member(index)).seconds);
  }
  // Members are evaluated one after another, or together in about that time.
  const double evaluation_seconds =
      EvaluationWork(blueprint_) * static_cast<double>(unfinished.size()) / work_per_second_;
  for (const int64_t index : unfinished) {
    const Member& trained = member(index);
    v1::TrialProgress progress;
    progress.set_trial(trained.leased->trial());
    progress.set_attempt(trained.leased->attempt());
    progress.set_phase(v1::TrialProgress::TRAINING);
    progress.set_done(trained.step);
    progress.set_total(trained.step + left(trained).steps);
    progress.set_steps_per_second(HasEndedTraining(trained) ? 0 : rate);
    progress.set_loss(trained.newest.loss);
    progress.set_seconds_left(training_seconds + evaluation_seconds);
    session_.ReportProgress(trained.trial, std::move(progress));
  }
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
    progress.set_loss(evaluated.newest.loss);
    progress.set_seconds_left(seconds_left);
    session_.ReportProgress(evaluated.trial, std::move(progress));
  }
}

}  // namespace lengthwise::worker::training
