#include "server/coordination/running_trials.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/length_accuracies.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

int32_t Width(int32_t seen_up_to, int32_t longest) {
  const int32_t least = (longest + LengthBuckets::kMost - 1) / LengthBuckets::kMost;
  for (int32_t width = least; width <= std::min(3 * least, seen_up_to); ++width) {
    if (seen_up_to % width == 0) return width;
  }
  for (int32_t power = 1;; power *= 10) {
    for (const int32_t digit : {1, 2, 5}) {
      if (digit * power >= least) return digit * power;
    }
  }
}

}  // namespace

LengthBuckets::LengthBuckets(int32_t seen_up_to, int32_t longest)
    : longest_(std::max(longest, 1)), width_(Width(seen_up_to, longest_)) {}

std::string LengthBuckets::Label(int32_t length) const {
  const int32_t first = (std::clamp(length, 1, longest_) - 1) / width_ * width_ + 1;
  const int32_t last = first + width_ - 1;
  const int digits =
      static_cast<int>(absl::StrCat((longest_ + width_ - 1) / width_ * width_).size());
  if (width_ == 1) return absl::StrFormat("%0*d", digits, first);
  return absl::StrFormat("%0*d-%0*d", digits, first, digits, last);
}

RunningChange StartOf(const TrialRecord& trial, const PackRecord& pack,
                      const v1::TrialSpecification& specification) {
  const v1::Evaluation& evaluation = specification.evaluation();
  RunningChange start;
  start.name = TrialName(trial.experiment_id, trial.id);
  start.experiment_id = trial.experiment_id;
  start.trial_id = trial.id;
  start.attempt = trial.attempt;
  start.worker = trial.worker;
  start.task = pack.task;
  start.network = pack.network;
  start.encoding = pack.encoding;
  start.seen_up_to = evaluation.seen_up_to();
  for (const int32_t length : evaluation.lengths()) start.longest = std::max(start.longest, length);
  for (const int32_t length : evaluation.interval_lengths()) {
    start.longest = std::max(start.longest, length);
  }
  return start;
}

void RunningTrials::Apply(const std::vector<RunningChange>& changes) {
  if (changes.empty()) return;
  platform::MutexLock lock(mutex_);
  for (const RunningChange& change : changes) {
    const auto found = trials_.find(change.name);
    if (found != trials_.end()) {
      if (found->second.trial.attempt == change.attempt) continue;
      Erase(found);
    }
    if (change.attempt == 0) continue;
    trials_.emplace(change.name, Entry{.trial = change, .number = next_number_++});
  }
}

void RunningTrials::Erase(Trials::iterator trial) {
  const Entry& entry = trial->second;
  if (const auto told = told_.find(entry.trial.experiment_id); told != told_.end()) {
    told->second.erase(entry.told);
    if (told->second.empty()) told_.erase(told);
  }
  trials_.erase(trial);
}

std::optional<std::string> RunningTrials::Progress(const WorkerProgress& told_by) {
  const v1::TrialProgress& progress = told_by.progress;
  platform::MutexLock lock(mutex_);
  const auto found = trials_.find(progress.trial());
  if (found == trials_.end()) return std::nullopt;
  Entry& entry = found->second;
  // A late report of an earlier attempt, or of a worker that has lost the trial.
  if (entry.trial.attempt != progress.attempt() || entry.trial.worker != told_by.worker) {
    return std::nullopt;
  }
  entry.trial.progress = progress;
  std::map<int64_t, std::string>& told = told_[entry.trial.experiment_id];
  told.erase(entry.told);
  entry.told = ++last_told_;
  told.emplace(entry.told, entry.trial.name);
  return entry.trial.experiment_id;
}

std::vector<v1::TrialProgress> RunningTrials::ProgressSince(absl::string_view experiment_id,
                                                            absl::string_view name,
                                                            int64_t max_trials,
                                                            int64_t& since) const {
  platform::MutexLock lock(mutex_);
  std::vector<v1::TrialProgress> newest;
  if (!name.empty()) {
    const auto found = trials_.find(name);
    if (found != trials_.end() && found->second.told > since) {
      newest.push_back(found->second.trial.progress);
      since = found->second.told;
    }
    return newest;
  }
  const auto told = told_.find(experiment_id);
  if (told == told_.end()) return newest;
  for (auto next = told->second.upper_bound(since); next != told->second.end(); ++next) {
    if (static_cast<int64_t>(newest.size()) == max_trials) break;
    newest.push_back(trials_.at(next->second).trial.progress);
    since = next->first;
  }
  return newest;
}

void RunningTrials::Evaluated(absl::string_view name, const v1::LengthAccuracies& accuracies) {
  struct Sum {
    double accuracy = 0;
    int64_t lengths = 0;
  };
  platform::MutexLock lock(mutex_);
  const auto found = trials_.find(name);
  if (found == trials_.end()) return;
  Entry& entry = found->second;
  const LengthBuckets buckets(entry.trial.seen_up_to, entry.trial.longest);
  std::map<std::string, Sum> sums;
  for (int i = 0; i < accuracies.lengths_size(); ++i) {
    Sum& sum = sums[buckets.Label(accuracies.lengths(i))];
    sum.accuracy += ClampAccuracy(accuracies.accuracies(i));
    ++sum.lengths;
  }
  if (accuracies.has_unseen_accuracy()) entry.trial.unseen_accuracy = accuracies.unseen_accuracy();
  entry.trial.accuracies.clear();
  for (const auto& [label, sum] : sums) {
    entry.trial.accuracies[label] = sum.accuracy / static_cast<double>(sum.lengths);
  }
}

std::vector<RunningTrial> RunningTrials::List() const {
  platform::MutexLock lock(mutex_);
  std::vector<const Entry*> entries;
  entries.reserve(trials_.size());
  for (const auto& [name, entry] : trials_) entries.push_back(&entry);
  const size_t shown = std::min(entries.size(), kMostShown);
  std::partial_sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(shown),
                    entries.end(),
                    [](const Entry* a, const Entry* b) { return a->number < b->number; });
  entries.resize(shown);
  std::vector<RunningTrial> trials;
  for (const Entry* entry : entries) trials.push_back(entry->trial);
  return trials;
}

}  // namespace lengthwise::server
