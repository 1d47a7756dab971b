#include "client/fleet/fleet_plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::client {

bool IsHopeless(absl::string_view reason) {
  constexpr std::array<absl::string_view, 8> kReasons = {
      "BadConstraints",    "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit",
      "AccountNotAllowed", "InvalidAccount",  "InvalidQOS",         "JobHeldUser"};
  return std::any_of(kReasons.begin(), kReasons.end(), [reason](absl::string_view hopeless) {
    return absl::StrContains(reason, hopeless);
  });
}

void FleetPlanner::NoteFailures(const FleetView& view, absl::Time now) {
  // After a long time without a call, the server may have forgotten workers that came and went.
  if (now - looked_ > options_.pause) unproven_.clear();
  looked_ = now;
  std::set<int64_t> unproven;
  std::set<int64_t> listed;
  const auto failed = [&](int64_t id, absl::string_view reason, absl::Time ended) {
    failed_.try_emplace(id, Failure{.time = std::min(now, ended),
                                    .reason = std::string(reason),
                                    .reached_server = view.registered.contains(id)});
  };
  for (const FleetJob& job : view.jobs) {
    listed.insert(job.id);
    const bool reached_server = view.registered.contains(job.id);
    if (job.state == FleetJob::State::kRunning && !reached_server) unproven.insert(job.id);
    if (job.state == FleetJob::State::kFailed ||
        (job.state == FleetJob::State::kEnded && !reached_server)) {
      failed(job.id, job.reason, job.ended);
    }
  }
  // A cluster may forget a job before the next call.
  for (const int64_t id : unproven_) {
    if (!listed.contains(id) && !view.registered.contains(id)) failed(id, "", now);
  }
  unproven_ = std::move(unproven);
  // Failures this old cannot matter: those of a row are less than a pause apart, and its newest
  // `failed_jobs` suffice. One that is still listed stays: if its end is unknown, the next call
  // would note it as a new one.
  std::erase_if(failed_, [&](const auto& entry) {
    return !listed.contains(entry.first) &&
           now - entry.second.time >= options_.failed_jobs * options_.pause;
  });
}

std::map<int64_t, FleetPlanner::Failure> FleetPlanner::FailedInARow(const FleetView& view,
                                                                    absl::Time now) const {
  // A worker that reached the server disproves connection failures of earlier jobs. Only a worker
  // that also ended well disproves their crashes.
  const int64_t newest_worker = view.registered.empty() ? 0 : *view.registered.rbegin();
  int64_t newest_success = 0;
  for (const FleetJob& job : view.jobs) {
    if (job.state == FleetJob::State::kEnded && view.registered.contains(job.id)) {
      newest_success = std::max(newest_success, job.id);
    }
  }
  std::map<int64_t, Failure> in_a_row = failed_;
  std::erase_if(in_a_row, [&](const auto& entry) {
    const auto& [id, failure] = entry;
    return id <= (failure.reached_server ? newest_success : newest_worker);
  });
  std::vector<absl::Time> times;
  for (const auto& [id, failure] : in_a_row) times.push_back(failure.time);
  std::sort(times.begin(), times.end(), std::greater<>());
  absl::Time first = now;
  for (const absl::Time time : times) {
    if (first - time >= options_.pause) break;
    first = time;
  }
  std::erase_if(in_a_row, [&](const auto& entry) { return entry.second.time < first; });
  return in_a_row;
}

void FleetPlanner::Refused(absl::string_view reason, absl::Time now) {
  refusal_ = std::string(reason);
  refused_ = now;
}

FleetPlanner::Plan FleetPlanner::Next(const FleetView& view, absl::Time now) {
  NoteFailures(view, now);
  Plan plan;
  // Running or pending jobs that will take packs.
  int64_t coming = 0;
  std::string hopeless;
  for (const FleetJob& job : view.jobs) {
    if (job.state == FleetJob::State::kPending) {
      ++plan.pending;
      if (IsHopeless(job.reason)) {
        hopeless = absl::StrCat("no node can run job ", job.id, " (", job.reason, ")");
      } else {
        ++coming;
      }
    } else if (job.state == FleetJob::State::kRunning) {
      ++plan.running;
      if (!view.alive.contains(job.id)) ++coming;
    }
  }
  // Idle workers and starting jobs take the first packs.
  const int64_t wanted = view.runnable_packs - view.idle_workers - coming;
  if (wanted <= 0) return plan;
  const std::map<int64_t, Failure> failed = FailedInARow(view, now);
  if (!hopeless.empty()) {
    plan.held_back = hopeless;
  } else if (now - refused_ < options_.pause) {
    plan.held_back = absl::StrCat("the cluster refuses the job: ", refusal_);
  } else if (static_cast<int>(failed.size()) >= options_.failed_jobs) {
    const auto& [id, failure] = *failed.rbegin();
    plan.failed_job = id;
    plan.held_back =
        absl::StrCat(failed.size(), " jobs in a row failed, the last is job ", id,
                     failure.reason.empty() || failure.reason == "None"
                         ? ""
                         : absl::StrCat(" (", failure.reason, ")"),
                     failure.reached_server ? "" : ", whose worker never reached the server");
  } else if (plan.pending >= options_.backlog) {
    plan.held_back = absl::StrCat(plan.pending, " jobs wait in the cluster's queue (--backlog)");
  } else if (plan.pending + plan.running >= options_.max_jobs) {
    plan.held_back = absl::StrCat(plan.pending + plan.running, " jobs run or wait (--max)");
  } else {
    plan.submit = std::min(
        {wanted, options_.backlog - plan.pending, options_.max_jobs - plan.pending - plan.running});
  }
  return plan;
}

}  // namespace lengthwise::client
