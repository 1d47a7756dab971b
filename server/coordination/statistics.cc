#include "server/coordination/statistics.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/outcome_reasons.h"

namespace lengthwise::server {
namespace {

std::string Decision(v1::TrialState to) {
  return to == v1::RUNNING ? "trial_started"
                           : absl::StrCat("trial_", absl::AsciiStrToLower(v1::TrialState_Name(to)));
}

// Why a trial is queued again.
const char* RetryReason(const TrialChange& change, const TrialRecord& before) {
  if (change.from != v1::RUNNING) return "user";
  if (change.past.pack_limit != before.pack_limit) return "out_of_memory";
  if (change.past.failures > before.failures) return "failure";
  if (change.past.preemptions > before.preemptions) return "preemption";
  return change.actor == "scheduler" ? "lease_expiry" : "release";
}

const char* FailureReason(const TrialChange& change, const TrialRecord& before,
                          const v1::Outcome* outcome) {
  if (change.past.losses > before.losses) return "lost_workers";
  if (outcome == nullptr) return "lost_model";
  switch (outcome->kind()) {
    case v1::Outcome::OUT_OF_MEMORY:
      return "out_of_memory";
    case v1::Outcome::FAILED_TEMPORARILY:
      return "attempts";
    default:
      return absl::StartsWith(outcome->reason(), kLossNotFinite) ? "loss_not_finite" : "refused";
  }
}

}  // namespace

DecisionCounts NoDecisions() {
  DecisionCounts counts;
  for (const char* decision : {"lease_granted", "lease_ended", "trial_queued", "trial_started",
                               "trial_succeeded", "trial_failed", "trial_cancelled"}) {
    counts.decisions[decision] = 0;
  }
  for (const char* reason :
       {"lease_expiry", "release", "preemption", "failure", "out_of_memory", "user"}) {
    counts.retries[reason] = 0;
  }
  for (const char* reason :
       {"loss_not_finite", "refused", "attempts", "out_of_memory", "lost_model", "lost_workers"}) {
    counts.failures[reason] = 0;
  }
  return counts;
}

void CountTrialChange(const TrialChange& change, const TrialRecord& before,
                      const v1::Outcome* outcome, DecisionCounts& counts) {
  ++counts.decisions[Decision(change.to)];
  if (change.to == v1::QUEUED) ++counts.retries[RetryReason(change, before)];
  if (change.to == v1::FAILED) ++counts.failures[FailureReason(change, before, outcome)];
}

void CountLeaseChange(const LeaseChange& change, DecisionCounts& counts) {
  ++counts.decisions[change.granted ? "lease_granted" : "lease_ended"];
}

void Add(const DecisionCounts& more, DecisionCounts& counts) {
  for (const auto& [decision, count] : more.decisions) counts.decisions[decision] += count;
  for (const auto& [reason, count] : more.retries) counts.retries[reason] += count;
  for (const auto& [reason, count] : more.failures) counts.failures[reason] += count;
}

}  // namespace lengthwise::server
