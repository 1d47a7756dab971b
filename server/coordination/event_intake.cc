#include "server/coordination/event_intake.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/length_accuracies.h"
#include "proto/timestamps.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Longer names fit no lease and no trial, and the answer may stay unread.
std::string ShortText(absl::string_view text) {
  return std::string(platform::Utf8Prefix(text, 1000));
}

}  // namespace

EventIntake::EventIntake(Ledger& ledger, ArtifactStore& artifacts, const LeaseIds& lease_ids)
    : ledger_(ledger), store_(ledger.store()), artifacts_(artifacts), lease_ids_(lease_ids) {}

absl::StatusOr<v1::StreamEventsResponse> EventIntake::Store(const v1::StreamEventsRequest& request,
                                                            const std::string& caller) {
  const absl::StatusOr<std::vector<Events>> parts = PartsOf(request);
  v1::StreamEventsResponse response;
  if (parts.ok()) {
    ASSIGN_OR_RETURN(response, StorePart(request, parts->front(), caller));
    for (const Events events : absl::MakeSpan(*parts).subspan(1)) {
      ASSIGN_OR_RETURN(*response.add_others(), StorePart(request, events, caller));
    }
  } else {
    if (!request.events().empty()) response.set_trial(ShortText(request.events(0).trial()));
    response.set_refusal(v1::StreamEventsResponse::INVALID);
    response.set_detail(ShortText(parts.status().message()));
  }
  response.set_lease_id(ShortText(request.lease_id()));
  return response;
}

absl::StatusOr<v1::StreamEventsResponse> EventIntake::StorePart(
    const v1::StreamEventsRequest& request, Events events, const std::string& caller) {
  const v1::Event& first = *events.front();
  v1::StreamEventsResponse response;
  response.set_trial(ShortText(first.trial()));
  const auto refuse = [&](v1::StreamEventsResponse::Refusal refusal, absl::string_view detail) {
    response.set_refusal(refusal);
    response.set_detail(ShortText(detail));
    return response;
  };
  if (absl::Status status = CheckEvents(events); !status.ok()) {
    return refuse(v1::StreamEventsResponse::INVALID, status.message());
  }
  const absl::StatusOr<TrialPath> path = ParseTrialName(first.trial());
  if (!path.ok()) return refuse(v1::StreamEventsResponse::INVALID, path.status().message());
  const Token token = request.fencing_token();
  if (absl::Status status = lease_ids_.Check(request.lease_id(), token, caller); !status.ok()) {
    return refuse(v1::StreamEventsResponse::STALE_LEASE, status.message());
  }

  ASSIGN_OR_RETURN(std::optional<TrialRecord> found,
                   store_.FindTrial(path->experiment, path->trial));
  if (!found.has_value()) {
    return refuse(v1::StreamEventsResponse::STALE_LEASE, "there is no such trial");
  }
  TrialRecord& trial = *found;
  // Fencing: an attempt whose lease was replaced must not write, however late its events arrive.
  if (trial.token != token || trial.attempt != first.attempt()) {
    return refuse(
        v1::StreamEventsResponse::STALE_LEASE,
        absl::StrCat("the trial's newest attempt is ", trial.attempt, " with lease ", trial.token));
  }
  ASSIGN_OR_RETURN(const int64_t last, store_.LastSequence(trial.key, trial.attempt));
  response.set_acknowledged_sequence(last);
  const int64_t end = first.sequence() + static_cast<int64_t>(events.size()) - 1;
  // A repeated batch is acknowledged in any state of the trial: the first acknowledgement of its
  // outcome may have been lost.
  if (end <= last) return response;
  if (trial.state != v1::RUNNING) {
    return refuse(
        v1::StreamEventsResponse::STALE_LEASE,
        absl::StrCat("the trial is ", v1::TrialState_Name(trial.state), ": ", trial.reason));
  }
  // An acknowledgement covers all events up to its number, so nothing is stored beyond a gap.
  if (first.sequence() > last + 1) {
    return refuse(v1::StreamEventsResponse::SEQUENCE_GAP,
                  absl::StrCat("expected ", last + 1, ", got ", first.sequence()));
  }
  // All checks come before the first write: a refusal is an answer, and does not roll back the
  // group's transaction.
  if (std::string problem = ModelProblem(trial, events, last); !problem.empty()) {
    return refuse(v1::StreamEventsResponse::INVALID, problem);
  }
  for (const v1::Event* event : events) {
    if (!event->has_checkpoint() || event->sequence() <= last) continue;
    // An upload gets its final name only once it is complete and its checksum matches, so a quick
    // check of the file is enough here.
    const absl::Status stored =
        artifacts_.VerifyQuickly({.experiment = path->experiment,
                                  .trial = path->trial,
                                  .sha256 = event->checkpoint().sha256()},
                                 event->checkpoint().size_bytes(), kMostBytesToCheck);
    if (IsLost(stored)) {
      return refuse(v1::StreamEventsResponse::NOT_STORED,
                    absl::StrCat("upload the checkpoint before its event: ", stored.message()));
    }
    // A failing disk says nothing about the checkpoint. UNAVAILABLE makes the worker send the event
    // again.
    if (!stored.ok()) {
      return absl::UnavailableError(
          absl::StrCat("the server's disk fails: ", stored.message(), "; try again"));
    }
  }
  ASSIGN_OR_RETURN(const std::string problem, LogProblem(trial, events, last));
  if (!problem.empty()) return refuse(v1::StreamEventsResponse::INVALID, problem);
  // Users read the events' times beside the server's own.
  const absl::Duration behind =
      request.has_time() ? ledger_.WallTime() - ToTime(request.time()) : absl::ZeroDuration();
  RETURN_IF_ERROR(StoreNew(trial, events, last, behind));
  response.set_acknowledged_sequence(end);
  return response;
}

std::string EventIntake::ModelProblem(const TrialRecord& trial, Events events,
                                      int64_t last_sequence) {
  int64_t newest = trial.checkpoint_step;
  for (const v1::Event* each : events) {
    const v1::Event& event = *each;
    if (event.sequence() <= last_sequence) continue;
    if (event.has_checkpoint()) {
      // Step 0 means no checkpoint. The same step may come twice: a resumed trial makes an
      // evaluation that was due at its checkpoint, and stores the checkpoint again.
      if (event.step() < std::max<int64_t>(newest, 1)) {
        return absl::StrCat("a checkpoint of step ", event.step(), " comes after one of step ",
                            newest, "; checkpoints ascend");
      }
      newest = event.step();
    }
    // A trial that succeeds has its model: the checkpoint of its last step.
    if (event.outcome().kind() != v1::Outcome::COMPLETED) continue;
    if (newest > 0 && newest == event.step()) continue;
    return absl::StrCat("COMPLETED at step ", event.step(), " without its model: ",
                        newest > 0 ? absl::StrCat("the newest checkpoint is of step ", newest)
                                   : "there is no checkpoint",
                        "; send that of step ", event.step(), " first");
  }
  return "";
}

absl::StatusOr<std::string> EventIntake::LogProblem(const TrialRecord& trial, Events events,
                                                    int64_t last_sequence) {
  const int64_t added = std::count_if(events.begin(), events.end(), [&](const v1::Event* event) {
    return event->has_log_line() && event->sequence() > last_sequence;
  });
  if (added == 0) return "";
  ASSIGN_OR_RETURN(const int64_t stored,
                   store_.CountWorkerEvents(trial.key, trial.attempt, v1::Event::kLogLine));
  if (stored + added <= kMaxLogLines) return "";
  return absl::StrCat("an attempt may send ", kMaxLogLines, " log lines; this one sent ",
                      stored + added);
}

absl::Status EventIntake::StoreNew(TrialRecord& trial, Events events, int64_t last_sequence,
                                   absl::Duration behind) {
  const bool wrong_clock = absl::AbsDuration(behind) >= kWrongClock;
  for (const v1::Event* each : events) {
    const v1::Event& event = *each;
    if (event.sequence() <= last_sequence) continue;
    LENGTHWISE_FAILPOINT("engine.event.append");
    v1::Event stored = event;
    if (wrong_clock) *stored.mutable_time() = ToTimestamp(ToTime(event.time()) + behind);
    if (event.has_length_accuracies()) {
      v1::LengthAccuracies& measured = *stored.mutable_length_accuracies();
      // The server computes the means, so that they follow one rule whichever release the worker
      // has.
      measured.clear_seen_accuracy();
      measured.clear_unseen_accuracy();
      measured.clear_seen_loss();
      measured.clear_unseen_loss();
      // A damaged specification must not stop a running trial. ReadEvent reports the damage.
      const auto shared = SharedSpecificationOf(store_, trial.pack);
      if (shared.ok()) SetMeans(shared->evaluation().seen_up_to(), measured);
      ledger_.effects().evaluations.emplace_back(event.trial(), measured);
    }
    RETURN_IF_ERROR(ledger_.Append(trial, std::move(stored)));
    ledger_.effects().points += event.training_points().steps_size();
    if (event.has_checkpoint()) {
      RETURN_IF_ERROR(
          store_.AddUsage(trial.experiment, /*trials=*/0, event.step() - trial.checkpoint_step));
      RETURN_IF_ERROR(ledger_.StoreCheckpoint(trial, event.step()));
    }
    if (event.has_outcome()) {
      const v1::Outcome& outcome = event.outcome();
      LENGTHWISE_FAILPOINT("engine.outcome.store");
      ASSIGN_OR_RETURN(const Decisions decisions,
                       ledger_.scheduler().Finish(trial.key, trial.token, outcome.kind(),
                                                  event.step(), outcome.reason(), ledger_.Now()));
      RETURN_IF_ERROR(ledger_.Record(decisions, event.step(), &outcome));
    }
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
