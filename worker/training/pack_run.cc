#include "worker/training/pack_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/version.h"
#include "worker/checkpoints/trial_checkpoint.h"
#include "worker/training/length_schedule.h"

namespace lengthwise::worker::training {
namespace {

using Directive = PackSession::Directive;

bool IsDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

PackRun::PackRun(const v1::Lease& lease, const std::vector<int64_t>& trials, const Device& device,
                 PackSession& session)
    : device_(device), session_(session), rate_(Clock::now()) {
  for (const int64_t trial : trials) {
    const v1::LeasedTrial& leased = lease.trials(static_cast<int>(trial));
    members_.push_back({.trial = trial,
                        .leased = &leased,
                        .fingerprint = checkpoints::Fingerprint(leased.specification()),
                        .reporter = TrialReporter(session, trial, Clock::now())});
  }
}

PackRun::End PackRun::Run() {
  if (!Build()) return End::kComplete;
  for (size_t i = 0; i < members_.size(); ++i) Resume(static_cast<int64_t>(i));
  Directive directive = Train();
  if (directive == Directive::kContinue) {
    for (const MemberRange range : model_->Ranges(Unfinished())) {
      directive = EvaluateFinally(range);
      if (directive != Directive::kContinue) break;
    }
  }
  if (directive == Directive::kLost) return End::kLost;
  if (directive == Directive::kDrain) {
    for (const int64_t index : Unfinished()) WriteCheckpoint(index);
    return End::kDrained;
  }
  return End::kComplete;
}

bool PackRun::Build() {
  auto blueprint = MakeBlueprint(members_.front().leased->specification());
  if (!blueprint.ok()) {
    FailUnfinished(v1::Outcome::FAILED_PERMANENTLY, blueprint.status().message());
    return false;
  }
  blueprint_ = *std::move(blueprint);
  std::vector<MemberSeeds> seeds;
  for (const Member& member : members_) {
    const v1::TrialSpecification& specification = member.leased->specification();
    seeds.push_back({.weight_seed = specification.weight_seed(),
                     .data_seed = specification.data_seed(),
                     .learning_rate = specification.learning_rate()});
  }
  auto model = CreatePackModel(blueprint_, seeds, device_);
  if (!model.ok()) {
    FailUnfinished(v1::Outcome::FAILED_PERMANENTLY, model.status().message());
    return false;
  }
  model_ = *std::move(model);
  return true;
}

void PackRun::Resume(int64_t index) {
  Member& resumed = member(index);
  if (!resumed.leased->has_checkpoint()) return;
  const auto fail = [&](absl::string_view why) {
    Fail(resumed, v1::Outcome::FAILED_TEMPORARILY,
         absl::StrCat("the checkpoint of step ", resumed.leased->checkpoint_step(),
                      " cannot be resumed: ", why));
  };
  const absl::StatusOr<std::string> bytes = session_.FetchCheckpoint(resumed.trial);
  if (!bytes.ok()) {
    // A session that ends has no bytes to give, which is no fault of the trial: training will hear
    // of it at once.
    if (session_.GetDirective(resumed.trial) != Directive::kContinue) return;
    return fail(bytes.status().message());
  }
  const auto header = model_->Load(index, *bytes, resumed.fingerprint);
  if (!header.ok()) return fail(header.status().message());
  if (header->step != resumed.leased->checkpoint_step() ||
      header->step > blueprint_.training.steps()) {
    return fail(absl::StrCat("it was written at step ", header->step));
  }
  resumed.step = header->step;
  resumed.checkpoint_step = header->step;
}

Directive PackRun::Listen() {
  bool drain = false;
  for (Member& member : members_) {
    if (member.finished) continue;
    switch (session_.GetDirective(member.trial)) {
      case Directive::kContinue:
        break;
      case Directive::kCancelled:
        member.finished = true;
        break;
      case Directive::kLost:
        return Directive::kLost;
      case Directive::kDrain:
        drain = true;
        break;
    }
  }
  return drain ? Directive::kDrain : Directive::kContinue;
}

std::vector<int64_t> PackRun::Unfinished() const {
  std::vector<int64_t> unfinished;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].finished) unfinished.push_back(static_cast<int64_t>(i));
  }
  return unfinished;
}

Directive PackRun::Train() {
  const v1::Training& training = blueprint_.training;
  rate_ = StepRate(Clock::now());
  while (true) {
    if (const Directive directive = Listen(); directive != Directive::kContinue) return directive;
    int64_t done = training.steps();
    for (const int64_t index : Unfinished()) done = std::min(done, member(index).step);
    if (done == training.steps()) return Directive::kContinue;
    const int64_t step = done + 1;
    std::vector<int64_t> trained;
    for (const int64_t index : Unfinished()) {
      if (member(index).step == done) trained.push_back(index);
    }

    const auto start = Clock::now();
    const std::vector<StepMeasurement> measurements = model_->TrainStep(step, trained);
    const double seconds = SecondsSince(start);
    for (size_t i = 0; i < trained.size(); ++i) {
      member(trained[i]).training_seconds += seconds;
      TakeMeasurement(member(trained[i]), step, measurements[i]);
    }
    if (IsDue(step, blueprint_.evaluation.every_steps()) &&
        blueprint_.evaluation.interval_lengths_size() > 0 &&
        EvaluateInterval(step, trained) == Directive::kLost) {
      return Directive::kLost;
    }
    if (step == training.steps() || IsDue(step, training.checkpoint_every_steps())) {
      for (const int64_t index : trained) {
        if (!member(index).finished) WriteCheckpoint(index);
      }
    }
    if (rate_.CountStep(Clock::now())) ReportTraining();
  }
}

void PackRun::TakeMeasurement(Member& member, int64_t step, const StepMeasurement& measurement) {
  if (!std::isfinite(measurement.loss)) {
    member.step = step;
    FailDiverged(member, measurement.loss, absl::StrCat("at step ", step));
    return;
  }
  member.step = step;
  member.loss = measurement.loss;
  const auto now = Clock::now();
  if (step == blueprint_.training.steps() ||
      IsDue(step, blueprint_.training.report_every_steps())) {
    const int64_t length = LengthOfStep(blueprint_.training, step);
    member.reporter.AddPoint({.step = step,
                              .loss = measurement.loss,
                              .accuracy = measurement.accuracy,
                              .gradient_norm = measurement.gradient_norm,
                              .length = static_cast<int32_t>(blueprint_.task->InputLength(length))},
                             now);
  }
  member.reporter.Tick(now);
}

void PackRun::WriteCheckpoint(int64_t index) {
  Member& saved = member(index);
  if (saved.checkpoint_step == saved.step) return;
  saved.reporter.EmitCheckpoint(saved.step,
                                model_->Save(index, {.step = saved.step,
                                                     .program_version = platform::kVersion,
                                                     .fingerprint = saved.fingerprint}));
  saved.checkpoint_step = saved.step;
}

void PackRun::Finish(Member& member, v1::Outcome outcome) {
  *outcome.mutable_provenance() = device_.provenance;
  outcome.set_training_seconds(member.training_seconds);
  outcome.set_evaluation_seconds(member.evaluation_seconds);
  v1::Event event;
  *event.mutable_outcome() = std::move(outcome);
  member.reporter.Emit(member.step, std::move(event));
  member.finished = true;
}

void PackRun::Fail(Member& member, v1::Outcome::Kind kind, absl::string_view reason) {
  v1::Outcome outcome;
  outcome.set_kind(kind);
  outcome.set_reason(std::string(reason));
  outcome.set_seen_accuracy(-1);
  outcome.set_unseen_accuracy(-1);
  Finish(member, std::move(outcome));
}

void PackRun::FailDiverged(Member& member, double loss, absl::string_view where) {
  // A nan has a sign, which says nothing.
  const std::string value = std::isnan(loss) ? "nan" : absl::StrCat(loss);
  Fail(member, v1::Outcome::FAILED_PERMANENTLY,
       absl::StrCat("the loss was ", value, " ", where, "; a lower learning rate may help"));
}

double PackRun::SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void PackRun::FailUnfinished(v1::Outcome::Kind kind, absl::string_view reason) {
  for (Member& member : members_) {
    if (!member.finished) Fail(member, kind, reason);
  }
}

double PackRun::WorkPerSecond() const {
  return rate_.steps_per_second() * MeanStepWork(blueprint_) *
         static_cast<double>(Unfinished().size());
}

void PackRun::ReportTraining() {
  const int64_t steps = blueprint_.training.steps();
  const std::vector<int64_t> unfinished = Unfinished();
  if (unfinished.empty()) return;
  // Members are evaluated one after another, or together in about that time.
  const double evaluation_seconds =
      EvaluationWork(blueprint_) * static_cast<double>(unfinished.size()) / WorkPerSecond();
  for (const int64_t index : unfinished) {
    const Member& trained = member(index);
    v1::TrialProgress progress;
    progress.set_trial(trained.leased->trial());
    progress.set_attempt(trained.leased->attempt());
    progress.set_phase(v1::TrialProgress::TRAINING);
    progress.set_done(trained.step);
    progress.set_total(steps);
    progress.set_steps_per_second(rate_.steps_per_second());
    progress.set_loss(trained.loss);
    progress.set_seconds_left(static_cast<double>(steps - trained.step) / rate_.steps_per_second() +
                              evaluation_seconds);
    session_.ReportProgress(trained.trial, std::move(progress));
  }
}

}  // namespace lengthwise::worker::training
