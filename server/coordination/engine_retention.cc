// What stays of a trial: its checkpoints when it has ended, and its log.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/coordination/engine.h"
#include "server/coordination/log_limits.h"
#include "server/coordination/retention.h"

namespace lengthwise::server {

absl::Status Engine::Retain(TrialRecord& trial) {
  if (trial.checkpoint_step == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, writer_.FindPack(trial.pack));
  if (CheckpointsThatStay(pack.value_or(PackRecord()), trial.state) == 0) {
    trial.checkpoint_step = 0;
  }
  // What was uploaded beside them goes, too. Which they are is looked up when it is done: a backup
  // may hold it up, and the trial be retried meanwhile.
  effects_.actions.push_back([this, key = trial.key] {
    const auto reader = storage_.Read();
    if (reader.ok()) DeleteWhatDoesNotStay(**reader, artifacts_, key).IgnoreError();
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> Engine::LogProblem(const TrialRecord& trial,
                                               const v1::StreamEventsRequest& request,
                                               int64_t last_sequence) {
  const int64_t added =
      std::count_if(request.events().begin(), request.events().end(), [&](const v1::Event& event) {
        return event.has_log_line() && event.sequence() > last_sequence;
      });
  if (added == 0) return "";
  ASSIGN_OR_RETURN(const int64_t stored,
                   writer_.CountWorkerEvents(trial.key, trial.attempt, v1::Event::kLogLine));
  if (stored + added <= kMaxLogLines) return "";
  return absl::StrCat("an attempt may send ", kMaxLogLines, " log lines; this one sent ",
                      stored + added);
}

}  // namespace lengthwise::server
