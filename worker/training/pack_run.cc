#include "worker/training/pack_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/kernel_calls.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "proto/digest.h"
#include "proto/length_accuracies.h"
#include "proto/outcome_reasons.h"
#include "specification/training_data.h"
#include "worker/data/trial_checkpoint.h"
#include "worker/training/pace.h"

namespace lengthwise::worker::training {
namespace {

using Directive = PackSession::Directive;

std::string ProgramVersion() {
  const absl::string_view revision = platform::kSourceRevision;
  return absl::StrCat(platform::kVersion, revision.empty() ? "" : " ", revision);
}

// Share of the memory that a pack can fill; the rest is lost to fragmentation.
constexpr double kUsableMemory = 0.9;

constexpr char kNotRecorded[] = "not recorded";
constexpr char kOnCpu[] = "on a CPU";
constexpr char kLowerRateMayHelp[] = "; a lower learning rate may help";

bool IsDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

PackRun::PackRun(const v1::Lease& lease, const std::vector<int64_t>& trials, const Device& device,
                 PackSession& session, CoreSharingMonitor* sharing, PackKernels* kernels)
    : device_(device),
      session_(session),
      sharing_(sharing),
      kernels_(kernels),
      rate_(Clock::now()) {
  for (const int64_t trial : trials) {
    const v1::LeasedTrial& leased = lease.trials(static_cast<int>(trial));
    members_.push_back(
        {.trial = trial,
         .leased = &leased,
         .fingerprint = checkpoints::Fingerprint(leased.specification()),
         .reporter = TrialReporter(session, trial, Clock::now()),
         .time = TrainingTime(leased.specification().training().stop_after_seconds() > 0)});
  }
}

absl::StatusOr<PackRun::End> PackRun::Run() {
  ASSIGN_OR_RETURN(const bool built, Build());
  if (!built) {
    const Directive directive = Listen();
    if (directive == Directive::kLost) return End::kLost;
    return directive == Directive::kDrain ? End::kDrained : End::kComplete;
  }
  for (size_t i = 0; i < members_.size(); ++i) Resume(static_cast<int64_t>(i));
  Directive directive = EvaluateDue();
  if (directive == Directive::kContinue) directive = Train();
  if (directive == Directive::kContinue) {
    for (const MemberRange range : model_->Ranges(Unfinished())) {
      directive = EvaluateFinally(range);
      if (directive != Directive::kContinue) break;
    }
  }
  if (directive == Directive::kLost) return End::kLost;
  if (directive == Directive::kDrain) {
    // No step is in flight: Train ends the step that it started before it returns.
    for (const int64_t index : Unfinished()) WriteCheckpoint(index);
    return End::kDrained;
  }
  return End::kComplete;
}

absl::StatusOr<std::string> PackRun::FetchData(absl::string_view sha256, int64_t bytes) {
  // Requested for a trial that continues; all members have the same files.
  for (const Member& member : members_) {
    if (session_.GetDirective(member.trial) == Directive::kCancelled) continue;
    absl::StatusOr<std::string> path = session_.FetchData(member.trial, sha256, bytes);
    if (path.ok() || session_.GetDirective(member.trial) != Directive::kCancelled) return path;
  }
  return absl::CancelledError("all trials of the pack were cancelled");
}

absl::StatusOr<bool> PackRun::Build() {
  auto blueprint = MakeBlueprint(
      members_.front().leased->specification(),
      [this](absl::string_view sha256, int64_t bytes) { return FetchData(sha256, bytes); });
  if (!blueprint.ok()) {
    // A session that is ending cannot deliver files. The trials must not fail for that.
    if (Listen() != Directive::kContinue) return false;
    if (absl::IsFailedPrecondition(blueprint.status())) return blueprint.status();
    // Temporary: the next attempt may get the file.
    FailUnfinished(absl::IsInvalidArgument(blueprint.status()) ? v1::Outcome::FAILED_PERMANENTLY
                                                               : v1::Outcome::FAILED_TEMPORARILY,
                   blueprint.status().message());
    return false;
  }
  blueprint_ = *std::move(blueprint);
  std::vector<MemberSeeds> seeds;
  for (Member& member : members_) {
    const v1::TrialSpecification& specification = member.leased->specification();
    if (const absl::Status prepared = blueprint_.source().Prepare(
            specification::DataSetSeed(blueprint_.training, specification.data_seed()));
        !prepared.ok()) {
      FailUnfinished(v1::Outcome::FAILED_PERMANENTLY, prepared.message());
      return false;
    }
    seeds.push_back(
        {.weight_seed = specification.weight_seed(), .data_seed = specification.data_seed()});
    member.schedule = blueprint_.CreateSchedule(specification.learning_rate());
  }
  SetTf32Products(blueprint_.training.precision() == "tf32");
  // The process of a user's module has kernels of its own.
  if (kernels_ != nullptr && blueprint_.network_archive.empty()) {
    PackKernels::Chosen chosen =
        kernels_->Choose(blueprint_, static_cast<int64_t>(members_.size()));
    kernel_summary_ = std::move(chosen.summary);
    if (!kernel_summary_.empty()) kernel_choice_ = models::DescribeChoice(chosen.choice);
    kernel_scope_.emplace(chosen.choice);
  }
  if (device_.reset_peak_memory) device_.reset_peak_memory();
  auto model = CreatePackModel(blueprint_, seeds, device_, [this](const std::string& text) {
    LogToUnfinished(v1::LogLine::WARNING, text);
  });
  if (!model.ok()) {
    // Temporary: another worker may have what this one lacks.
    FailUnfinished(absl::IsUnavailable(model.status()) ? v1::Outcome::FAILED_TEMPORARILY
                                                       : v1::Outcome::FAILED_PERMANENTLY,
                   FirstLine(model.status().message()));
    return false;
  }
  model_ = *std::move(model);
  if (std::string software = model_->software(); !software.empty()) {
    kernel_summary_ = std::move(software);
  }
  evaluation_.emplace(blueprint_, *model_);
  return true;
}

void PackRun::Resume(int64_t index) {
  Member& resumed = member(index);
  const std::string& evaluated_trial = resumed.leased->specification().evaluated_trial();
  if (!resumed.leased->has_checkpoint()) {
    if (evaluated_trial.empty()) return;
    return Fail(resumed, v1::Outcome::FAILED_PERMANENTLY,
                absl::StrCat("there is no checkpoint of ", evaluated_trial,
                             " to evaluate; let it train first"));
  }
  const auto fail = [&](v1::Outcome::Kind kind, absl::string_view why) {
    Fail(resumed, kind,
         absl::StrCat("the checkpoint of step ", resumed.leased->checkpoint_step(),
                      " cannot be resumed: ", why));
  };
  const absl::StatusOr<std::string> bytes = session_.FetchCheckpoint(resumed.trial);
  if (!bytes.ok()) {
    // A session that is ending cannot deliver the bytes. The trial must not fail for that: training
    // learns of the end at once.
    if (session_.GetDirective(resumed.trial) != Directive::kContinue) return;
    return fail(v1::Outcome::FAILED_TEMPORARILY, bytes.status().message());
  }
  auto header = model_->Load(index, *bytes, resumed.fingerprint);
  if (absl::IsFailedPrecondition(header.status())) {
    // Releases without re-evaluation put the whole specification into the fingerprint.
    header = model_->Load(index, *bytes, Digest(resumed.leased->specification()));
  }
  if (absl::IsFailedPrecondition(header.status())) {
    return fail(v1::Outcome::FAILED_PERMANENTLY, header.status().message());
  }
  if (!header.ok()) return fail(v1::Outcome::FAILED_TEMPORARILY, header.status().message());
  if (header->step != resumed.leased->checkpoint_step() ||
      header->step > blueprint_.training.steps()) {
    return fail(v1::Outcome::FAILED_TEMPORARILY,
                absl::StrCat("it was written at step ", header->step));
  }
  if (const absl::Status restored = resumed.schedule->Restore(header->schedule_state);
      !restored.ok()) {
    return fail(v1::Outcome::FAILED_TEMPORARILY, restored.message());
  }
  resumed.step = header->step;
  resumed.stop_reason = header->stop_reason;
  resumed.loss_sum = header->loss_sum;
  resumed.losses = header->losses;
  resumed.earlier_kernels = std::move(header->kernels);
  const bool recorded = !resumed.earlier_kernels.empty();
  if ((recorded || !kernel_choice_.empty()) && header->step > 0 &&
      (!recorded || resumed.earlier_kernels.back().last_step < header->step)) {
    // Written on a CPU, or by a release that did not record kernels.
    resumed.earlier_kernels.push_back({header->step, kNotRecorded});
  }
  if (!header->has_optimizer_state && !HasEndedTraining(resumed)) {
    return fail(v1::Outcome::FAILED_PERMANENTLY,
                "it is without the optimizer's state, and training has not ended");
  }
  if (header->program_version != ProgramVersion()) {
    // One build gives the same bits on every run; two builds may differ.
    resumed.reporter.Log(
        resumed.step, v1::LogLine::WARNING,
        absl::StrCat("goes on from a checkpoint of step ", header->step,
                     " that another build wrote (", header->program_version, "; this one is ",
                     ProgramVersion(), "): the results may be those of neither build alone"));
  }
  resumed.checkpoint_step = header->step;
  resumed.evaluation_due = header->evaluation_due && evaluated_trial.empty();
  resumed.time.Resume(header->step, header->training_seconds);
}

Directive PackRun::Listen() {
  if (sharing_ != nullptr) models::SetThreads(sharing_->ThreadsForNextWork());
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

bool PackRun::HasEndedTraining(const Member& member) const {
  return !member.leased->specification().evaluated_trial().empty() ||
         member.step == blueprint_.training.steps() || !member.stop_reason.empty();
}

std::vector<int64_t> PackRun::InTraining() const {
  std::vector<int64_t> in_training = Unfinished();
  std::erase_if(in_training, [&](int64_t index) {
    return HasEndedTraining(members_[static_cast<size_t>(index)]);
  });
  return in_training;
}

Directive PackRun::Train() {
  rate_ = StepRate(Clock::now());
  checkpoint_time_ = Clock::now();
  // On a GPU, the previous step. Its measurements are read once the next step has started, so that
  // the device does not wait for the host.
  std::optional<StartedStep> unread;
  while (true) {
    const Directive directive = Listen();
    if (directive == Directive::kLost) return directive;
    std::vector<int64_t> trained = InTraining();
    if (unread.has_value() && (directive == Directive::kDrain || trained != unread->members)) {
      const Directive ended = EndStep(*std::exchange(unread, std::nullopt));
      if (ended != Directive::kContinue) return ended;
      trained = InTraining();
    }
    if (directive != Directive::kContinue) return directive;
    if (trained.empty()) {
      ReportCapacity();
      return Directive::kContinue;
    }
    // Members that were resumed from earlier steps go first, until all are at the same step.
    int64_t done = unread.has_value() ? unread->step : blueprint_.training.steps();
    if (!unread.has_value()) {
      for (const int64_t index : trained) done = std::min(done, member(index).step);
    }
    std::erase_if(trained, [&](int64_t index) { return member(index).step > done; });

    StartedStep started = StartStep(done + 1, std::move(trained));
    if (unread.has_value()) {
      ReadMeasurements(*unread);
      CountRate(unread->members.size());
    }
    unread = std::move(started);
    if (CanRunAhead(*unread)) continue;
    const Directive ended = EndStep(*std::exchange(unread, std::nullopt));
    if (ended != Directive::kContinue) return ended;
  }
}

PackRun::StartedStep PackRun::StartStep(int64_t step, std::vector<int64_t> members) {
  std::vector<double> learning_rates;
  for (const int64_t index : members) {
    learning_rates.push_back(member(index).leased->specification().learning_rate() *
                             member(index).schedule->Factor(step));
  }
  StartedStep started = {.step = step, .members = std::move(members), .start = Clock::now()};
  const double data_seconds = model_->data_seconds();
  model_->StartStep(step, started.members, learning_rates);
  started.data_wait_seconds = model_->data_seconds() - data_seconds;
  return started;
}

bool PackRun::CanRunAhead(const StartedStep& started) const {
  const int64_t step = started.step;
  const v1::Training& training = blueprint_.training;
  if (!model_->OverlapsSteps() || step == training.steps()) return false;
  // The step's duration, which may end training, is known only after it has finished.
  if (training.stop_after_seconds() > 0) return false;
  if (IsEvaluationDue(step) || IsCheckpointDue(step)) return false;
  return std::none_of(started.members.begin(), started.members.end(), [&](int64_t index) {
    return members_[static_cast<size_t>(index)].schedule->AwaitsLoss(step);
  });
}

void PackRun::ReadMeasurements(const StartedStep& started) {
  const std::vector<StepMeasurement> measurements = model_->FinishStep();
  const auto now = Clock::now();
  // The device starts a step after finishing the previous one.
  const double seconds =
      std::chrono::duration<double>(now - std::max(started.start, read_time_)).count();
  read_time_ = now;
  if (sharing_ != nullptr) sharing_->CountStep(absl::Seconds(seconds));
  session_.CountStep({.models = static_cast<int64_t>(started.members.size()),
                      .seconds = seconds,
                      .data_wait_seconds = started.data_wait_seconds});
  for (size_t i = 0; i < started.members.size(); ++i) {
    Member& trained = member(started.members[i]);
    // The member was cancelled in the meantime, or its previous loss was not finite.
    if (trained.finished) continue;
    TakeMeasurement(trained, started.step, measurements[i], seconds);
  }
}

Directive PackRun::EndStep(const StartedStep& started) {
  ReadMeasurements(started);
  if (IsEvaluationDue(started.step)) {
    const Directive directive = EvaluateInterval(started.step, started.members);
    if (directive != Directive::kContinue) return directive;
  }
  CheckpointStep(started.step, started.members);
  CountRate(started.members.size());
  return Directive::kContinue;
}

void PackRun::CountRate(size_t members) {
  if (!rate_.CountStep(Clock::now())) return;
  work_per_second_ =
      rate_.steps_per_second() * MeanStepWork(blueprint_) * static_cast<double>(members);
  ReportTraining();
  ReportCapacity();
}

bool PackRun::IsEvaluationDue(int64_t step) const {
  return IsDue(step, blueprint_.evaluation.every_steps()) &&
         blueprint_.evaluation.interval_lengths_size() > 0;
}

bool PackRun::IsCheckpointDue(int64_t step) const {
  const double every_seconds = blueprint_.training.checkpoint_every_seconds();
  return IsDue(step, blueprint_.training.checkpoint_every_steps()) ||
         (every_seconds > 0 && SecondsSince(checkpoint_time_) >= every_seconds);
}

void PackRun::TakeMeasurement(Member& member, int64_t step, const StepMeasurement& measurement,
                              double seconds) {
  member.time.AddStep(seconds);
  if (!std::isfinite(measurement.loss)) {
    member.step = step;
    FailDiverged(member, measurement.loss,
                 step == 1
                     ? "at step 1, before the first update: the task's numbers, the encoding or "
                       "the initial weights give too large values"
                     : absl::StrCat("at step ", step, kLowerRateMayHelp));
    return;
  }
  member.step = step;
  member.newest = measurement;
  member.loss_sum += measurement.loss;
  ++member.losses;
  member.schedule->Observe(step, measurement.loss);
  if (step < blueprint_.training.steps()) {
    member.stop_reason = ReachedTime(blueprint_.training, member.time.seconds());
  }
  if (HasEndedTraining(member) || IsDue(step, blueprint_.training.report_every_steps())) {
    AddPoint(member);
  }
  member.reporter.Tick(Clock::now());
}

void PackRun::AddPoint(Member& member) {
  member.reporter.AddPoint(
      {.step = member.step,
       .loss = member.newest.loss,
       .accuracy = member.newest.accuracy,
       .gradient_norm = member.newest.gradient_norm,
       .length = static_cast<int32_t>(blueprint_.InputTokensOfStep(member.step)),
       .mean_loss = static_cast<float>(member.loss_sum / static_cast<double>(member.losses))},
      Clock::now());
  member.loss_sum = 0;
  member.losses = 0;
}

void PackRun::StopAtAccuracy(Member& member, const v1::LengthAccuracies& accuracies) {
  if (HasEndedTraining(member)) return;
  member.stop_reason = ReachedAccuracy(blueprint_.training, blueprint_.evaluation, accuracies);
  // The last step has a point of the loss curve, which precedes the evaluation.
  if (!member.stop_reason.empty() &&
      !IsDue(member.step, blueprint_.training.report_every_steps())) {
    AddPoint(member);
  }
}

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
    // The newest checkpoint says that this evaluation is due. One of the same step replaces it, so
    // that a later attempt does not repeat the evaluation.
    for (const int64_t index : members) member(index).checkpoint_step = 0;
    CheckpointStep(step, members);
  }
  return Directive::kContinue;
}

Directive PackRun::EvaluateInterval(int64_t step, const std::vector<int64_t>& members) {
  Directive directive = Directive::kContinue;
  std::vector<int64_t> evaluated = members;
  std::erase_if(evaluated, [&](int64_t index) { return member(index).finished; });
  // Set first: a checkpoint that a drain writes during the evaluation must say that it is due.
  for (const int64_t index : evaluated) member(index).evaluation_due = true;
  for (const MemberRange range : model_->Ranges(evaluated)) {
    const auto start = Clock::now();
    const auto keep_going = [&] {
      if (IsWanted(range, directive)) return true;
      // A drain must wait for an evaluation that may end training: the step's point then belongs to
      // the history, and its measurements are in no checkpoint.
      return directive == Directive::kDrain && blueprint_.training.stop_at_accuracy() != 0 &&
             !IsDue(step, blueprint_.training.report_every_steps());
    };
    auto results = evaluation_->Interval(range, keep_going);
    if (!results.has_value() && directive != Directive::kContinue) return directive;
    if (!results.has_value()) continue;  // all its members were cancelled
    const double seconds = SecondsSince(start);
    session_.CountEvaluation(seconds);
    for (int64_t i = 0; i < range.count; ++i) {
      Member& scored = member(range.first + i);
      if (scored.finished) continue;
      scored.evaluation_due = false;
      scored.evaluation_seconds += seconds;
      v1::LengthAccuracies& accuracies = (*results)[static_cast<size_t>(i)];
      accuracies.set_training_seconds(scored.time.seconds());
      StopAtAccuracy(scored, accuracies);
      scored.reporter.Emit(step, &v1::Event::mutable_length_accuracies, std::move(accuracies));
    }
  }
  return Directive::kContinue;
}

Directive PackRun::EvaluateFinally(MemberRange range) {
  const auto start = Clock::now();
  auto reported = start;
  Directive directive = Directive::kContinue;
  const double work = EvaluationWork(blueprint_) * static_cast<double>(range.count);
  ReportEvaluation(range, 0, work_per_second_ > 0 ? work / work_per_second_ : 0);
  auto results = evaluation_->Finally(
      range, [&] { return IsWanted(range, directive); },
      [&](int64_t done, double share) {
        if (SecondsSince(reported) < 1) return;
        reported = Clock::now();
        ReportEvaluation(range, done, SecondsSince(start) * (1 - share) / share);
      });
  // Stopped by the session, or all members were cancelled.
  if (!results.has_value()) return directive;
  const double seconds = SecondsSince(start);
  session_.CountEvaluation(seconds);
  for (int64_t i = 0; i < range.count; ++i) {
    Member& evaluated = member(range.first + i);
    if (evaluated.finished) continue;
    evaluated.evaluation_seconds += seconds;
    PackEvaluation::Final& result = (*results)[static_cast<size_t>(i)];
    result.accuracies.set_training_seconds(evaluated.time.seconds());
    directive = Conclude(range.first + i, std::move(result));
    if (directive != Directive::kContinue) return directive;
  }
  return Directive::kContinue;
}

Directive PackRun::Conclude(int64_t index, PackEvaluation::Final result) {
  const v1::LengthAccuracies& accuracies = result.accuracies;
  Member& concluded = member(index);
  for (int i = 0; i < accuracies.losses_size(); ++i) {
    if (std::isfinite(accuracies.losses(i))) continue;
    FailDiverged(concluded, accuracies.losses(i),
                 absl::StrCat("in the evaluation after the last step, at length ",
                              accuracies.lengths(i), kLowerRateMayHelp));
    return Directive::kContinue;
  }
  // Not sent: the server sets this field on every evaluation that it records.
  v1::LengthAccuracies means = accuracies;
  SetMeans(blueprint_.evaluation.seen_up_to(), means);
  v1::Outcome outcome;
  outcome.set_kind(v1::Outcome::COMPLETED);
  outcome.set_seen_accuracy(means.has_seen_accuracy() ? means.seen_accuracy() : -1);
  outcome.set_unseen_accuracy(means.has_unseen_accuracy() ? means.unseen_accuracy() : -1);
  // The outcome is last: the session drops everything that follows it.
  Directive directive = Directive::kContinue;
  if (evaluation_->Emit(index, concluded.step, std::move(result), concluded.reporter, [&] {
        return IsWanted({index, 1}, directive);
      })) {
    Finish(concluded, std::move(outcome));
  }
  return directive;
}

bool PackRun::NeedsOptimizerState(const Member& member) const {
  if (!HasEndedTraining(member)) return true;
  // The remaining evaluation reads only the parameters.
  const std::string& keep = member.leased->specification().keep();
  return keep != "weights" && keep != "nothing";
}

void PackRun::CheckpointStep(int64_t step, const std::vector<int64_t>& members) {
  const bool due = IsCheckpointDue(step);
  if (due) checkpoint_time_ = Clock::now();
  for (const int64_t index : members) {
    if (member(index).finished) continue;
    if (due || HasEndedTraining(member(index))) WriteCheckpoint(index);
  }
}

void PackRun::WriteCheckpoint(int64_t index) {
  Member& saved = member(index);
  if (saved.checkpoint_step == saved.step) return;
  const auto start = Clock::now();
  std::string bytes = model_->Save(index, {.step = saved.step,
                                           .program_version = ProgramVersion(),
                                           .fingerprint = saved.fingerprint,
                                           .training_seconds = saved.time.seconds_for_checkpoint(),
                                           .stop_reason = saved.stop_reason,
                                           .schedule_state = saved.schedule->State(),
                                           .has_optimizer_state = NeedsOptimizerState(saved),
                                           .evaluation_due = saved.evaluation_due,
                                           .kernels = KernelsSoFar(saved),
                                           .loss_sum = saved.loss_sum,
                                           .losses = saved.losses});
  const auto size = static_cast<int64_t>(bytes.size());
  saved.reporter.EmitCheckpoint(saved.step, std::move(bytes));
  session_.CountCheckpoint(SecondsSince(start), size);
  saved.checkpoint_step = saved.step;
}

std::vector<checkpoints::KernelSteps> PackRun::KernelsSoFar(const Member& member) const {
  std::vector<checkpoints::KernelSteps> kernels = member.earlier_kernels;
  if (kernels.empty() && kernel_choice_.empty()) return {};
  const std::string mine = kernel_choice_.empty() ? kOnCpu : kernel_choice_;
  if (member.step <= (kernels.empty() ? 0 : kernels.back().last_step)) return kernels;
  if (!kernels.empty() && kernels.back().kernels == mine) {
    kernels.back().last_step = member.step;
  } else {
    kernels.push_back({member.step, mine});
  }
  return kernels;
}

std::string PackRun::DescribeKernels(const Member& member) const {
  const std::string mine = kernel_choice_.empty() ? kOnCpu : kernel_choice_;
  const std::string summary = kernel_summary_.empty() ? kOnCpu : kernel_summary_;
  const std::vector<checkpoints::KernelSteps> kernels = KernelsSoFar(member);
  const bool made_last = !kernels.empty() && kernels.back().kernels == mine;
  if (kernels.empty() || (kernels.size() == 1 && made_last)) return kernel_summary_;
  std::string text;
  int64_t first = 1;
  for (const checkpoints::KernelSteps& steps : kernels) {
    const bool is_last = &steps == &kernels.back();
    absl::StrAppend(&text, text.empty() ? "" : "; ", "steps ", first, " to ", steps.last_step, ": ",
                    is_last && made_last ? summary : steps.kernels);
    first = steps.last_step + 1;
  }
  if (!made_last) absl::StrAppend(&text, "; evaluation: ", summary);
  return text;
}

void PackRun::Finish(Member& member, v1::Outcome outcome) {
  *outcome.mutable_provenance() = device_.provenance;
  outcome.mutable_provenance()->set_kernels(DescribeKernels(member));
  outcome.set_training_seconds(member.time.seconds());
  outcome.set_evaluation_seconds(member.evaluation_seconds);
  outcome.set_training_steps(member.step);
  outcome.set_stop_reason(member.stop_reason);
  member.reporter.Emit(member.step, &v1::Event::mutable_outcome, std::move(outcome));
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
  // The sign of a NaN has no meaning.
  const std::string value = std::isnan(loss) ? "nan" : absl::StrCat(loss);
  Fail(member, v1::Outcome::FAILED_PERMANENTLY, absl::StrCat(kLossNotFinite, value, " ", where));
}

double PackRun::SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void PackRun::LogToUnfinished(v1::LogLine::Severity severity, absl::string_view text) {
  for (Member& member : members_) {
    if (member.finished) continue;
    member.reporter.Log(member.step, severity, text);
  }
}

void PackRun::FailUnfinished(v1::Outcome::Kind kind, absl::string_view reason) {
  for (Member& member : members_) {
    if (!member.finished) Fail(member, kind, reason);
  }
}

void PackRun::ReportTraining() {
  const std::vector<int64_t> unfinished = Unfinished();
  if (unfinished.empty()) return;
  const double rate = rate_.steps_per_second();
  const auto left = [&](const Member& member) {
    if (HasEndedTraining(member)) return TrainingLeft{};
    return EstimateTrainingLeft(blueprint_.training, member.step, member.time.seconds(), rate);
  };
  // Evaluation starts when the member that trains longest has finished.
  double training_seconds = 0;
  for (const int64_t index : unfinished) {
    training_seconds = std::max(training_seconds, left(member(index)).seconds);
  }
  // Members are evaluated one after another; evaluating them together takes about as long.
  const double evaluation_seconds =
      EvaluationWork(blueprint_) * static_cast<double>(unfinished.size()) / work_per_second_;
  for (const int64_t index : unfinished) {
    const Member& trained = member(index);
    v1::TrialProgress progress;
    progress.set_phase(v1::TrialProgress::TRAINING);
    progress.set_done(trained.step);
    progress.set_total(trained.step + left(trained).steps);
    progress.set_steps_per_second(HasEndedTraining(trained) ? 0 : rate);
    progress.set_loss(trained.newest.loss);
    progress.set_seconds_left(training_seconds + evaluation_seconds);
    session_.ReportProgress(trained.trial, std::move(progress));
  }
}

void PackRun::ReportCapacity() {
  if (!device_.memory) return;
  const DeviceMemory memory = device_.memory();
  if (memory.peak <= 0) return;
  const double each = static_cast<double>(memory.peak) / static_cast<double>(members_.size());
  const double fit = kUsableMemory * static_cast<double>(memory.usable) / each;
  // This pack did fit, whatever the estimate is.
  session_.ReportCapacity(
      std::max(static_cast<int64_t>(members_.size()), static_cast<int64_t>(fit)));
}

void PackRun::ReportEvaluation(MemberRange range, int64_t done, double seconds_left) {
  for (int64_t index = range.first; index < range.first + range.count; ++index) {
    const Member& evaluated = member(index);
    if (evaluated.finished) continue;
    v1::TrialProgress progress;
    progress.set_phase(v1::TrialProgress::EVALUATING);
    progress.set_done(done);
    progress.set_total(blueprint_.evaluation.lengths_size());
    progress.set_loss(evaluated.newest.loss);
    progress.set_seconds_left(seconds_left);
    session_.ReportProgress(evaluated.trial, std::move(progress));
  }
}

}  // namespace lengthwise::worker::training
