#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "catalogue/entry.h"
#include "platform/counted.h"
#include "proto/component_label.h"
#include "server/coordination/messages.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"

namespace lengthwise::server {
namespace {

using tasks::examples::Contents;

std::optional<Contents> FilesOf(const v1::Component& task) {
  const auto contents = task.parameters().find("contents");
  if (!tasks::examples::IsExamples(task.name()) || contents == task.parameters().end()) {
    return std::nullopt;
  }
  absl::StatusOr<Contents> files = tasks::examples::ParseContents(contents->second.string_value());
  return files.ok() ? std::optional(*std::move(files)) : std::nullopt;
}

// The lengths of an experiment's evaluations and of its training.
struct Lengths {
  std::string axis;
  // True if a value of the axis is one "length" or "scale", false if "digits" are counted.
  bool is_one = true;
  std::set<int32_t> evaluated;
  // Lengths up to it count as seen.
  int32_t seen_up_to = 0;
  // Lengths in training; empty if the axis is not training.lengths. If tasks differ in it (their
  // files do), those of any task; and those of all tasks.
  std::set<int32_t> trained;
  std::set<int32_t> trained_by_all;

  // True if training ended at seen_up_to and showed all evaluated lengths that count as seen, as
  // far as is known.
  bool AllTrained() const {
    if (trained.empty()) return true;
    return *trained.rbegin() == seen_up_to && absl::c_all_of(evaluated, [&](int32_t length) {
      return length > seen_up_to || trained_by_all.contains(length);
    });
  }
};

Lengths LengthsOf(const v1::ExperimentSpecification& specification,
                  const v1::SummarizeExperimentResponse& summary) {
  Lengths lengths{.seen_up_to = specification.evaluation().seen_up_to()};
  for (const auto& cell : summary.cells()) {
    lengths.evaluated.insert(cell.lengths().begin(), cell.lengths().end());
  }
  bool is_first = true;
  for (const v1::Component& task : specification.tasks()) {
    std::set<int32_t> of_task;
    for (const v1::LengthRange& range : TrainedLengths(task, specification.training())) {
      for (int32_t length = range.min(); length <= range.max(); ++length) {
        of_task.insert(of_task.end(), length);
      }
    }
    if (is_first) lengths.trained_by_all = of_task;
    is_first = false;
    std::erase_if(lengths.trained_by_all,
                  [&](int32_t length) { return !of_task.contains(length); });
    lengths.trained.merge(of_task);
  }
  return lengths;
}

// "lengths 10 to 20", "length 8", "2 to 5 digits", "some of the lengths 1 to 9", "different lengths
// by task".
std::string TrainedText(const Lengths& lengths) {
  // Gaps between evaluated lengths, and differences elsewhere, do not matter.
  const bool all_trained = lengths.AllTrained();
  if (!all_trained && lengths.trained != lengths.trained_by_all) {
    return lengths.is_one ? absl::StrCat("different ", lengths.axis, "s by task")
                          : absl::StrCat("different numbers of ", lengths.axis, " by task");
  }
  const int32_t first = *lengths.trained.begin();
  const int32_t last = *lengths.trained.rbegin();
  const std::string numbers =
      first == last ? absl::StrCat(last) : absl::StrCat(first, " to ", last);
  const bool has_gaps =
      !all_trained && static_cast<int32_t>(lengths.trained.size()) <= last - first;
  if (!lengths.is_one) {
    return absl::StrCat(has_gaps ? "some of " : "", numbers, " ", lengths.axis);
  }
  return absl::StrCat(has_gaps ? "some of the " : "", lengths.axis, first == last ? " " : "s ",
                      numbers);
}

// "trained on lengths up to 20", "trained on up to 5 digits", "trained on lengths 10 to 20",
// "trained on lengths 1 to 500; up to 40 count as seen".
std::string WhatIsSeen(const Lengths& lengths) {
  const int32_t most = lengths.seen_up_to;
  if (most == 0 && lengths.trained.empty()) return "none of them seen in training";
  if (!lengths.AllTrained()) {
    return absl::StrCat("trained on ", TrainedText(lengths), "; up to ", most, " count as seen");
  }
  if (!lengths.trained.empty() && *lengths.trained.begin() > 1) {
    return absl::StrCat("trained on ", TrainedText(lengths));
  }
  if (!lengths.is_one) return absl::StrCat("trained on up to ", most, " ", lengths.axis);
  if (most == 1) return absl::StrCat("trained on ", lengths.axis, " 1");
  return absl::StrCat("trained on ", lengths.axis, "s up to ", most);
}

// "500 sequences", "up to 500 sequences" if some lengths have fewer: a worker evaluates all
// examples of a length if a test file has fewer than requested.
std::string Sequences(const v1::ExperimentSpecification& specification,
                      const std::set<int32_t>& evaluated) {
  const int64_t requested = specification.evaluation().sequences();
  std::set<int64_t> counts;
  for (const v1::Component& task : specification.tasks()) {
    const std::optional<Contents> files = FilesOf(task);
    if (!files.has_value()) {
      counts.insert(requested);
      continue;
    }
    for (const auto& [length, examples] : files->test.lengths) {
      if (evaluated.contains(length)) counts.insert(std::min(requested, examples));
    }
  }
  if (counts.empty()) counts.insert(requested);
  return absl::StrCat(counts.size() > 1 ? "up to " : "",
                      platform::Counted(*counts.rbegin(), "sequence"));
}

// Heading.random_guess.
std::string RandomGuess(const v1::ExperimentSpecification& specification) {
  const auto text = [](const google::protobuf::Value& value) {
    if (value.has_number_value()) return catalogue::FormatValue(value.number_value());
    if (value.has_bool_value()) return catalogue::FormatValue(value.bool_value());
    return value.string_value();
  };
  std::map<double, std::vector<std::string>, std::greater<>> tasks;  // by their chance
  for (const v1::Component& task : specification.tasks()) {
    const tasks::TaskEntry* entry = tasks::FindTask(task.name());
    if (entry == nullptr || entry->compared_by_loss || !(entry->random_accuracy > 0)) continue;
    // It is that of the default parameters.
    const bool is_known = absl::c_all_of(entry->parameters, [&](const auto& parameter) {
      const auto given = task.parameters().find(parameter.name);
      return given == task.parameters().end() ||
             text(given->second) == catalogue::FormatValue(parameter.default_value);
    });
    if (is_known) tasks[entry->random_accuracy].push_back(LabelOf(task));
  }
  if (tasks.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [chance, labels] : tasks) {
    parts.push_back(absl::StrFormat("%.3g %%", 100 * chance));
    if (static_cast<int>(labels.size()) < specification.tasks_size()) {
      absl::StrAppend(&parts.back(), " (", absl::StrJoin(labels, ", "), ")");
    }
  }
  return absl::StrCat("Random guess: ", absl::StrJoin(parts, ", "), ".");
}

}  // namespace

std::vector<v1::LengthRange> TrainedLengths(const v1::Component& task,
                                            const v1::Training& training) {
  const tasks::TaskEntry* entry = tasks::FindTask(task.name());
  if (entry != nullptr && entry->seen_up_to.has_value()) return {};
  const int32_t first = std::max(1, training.lengths().min());
  const int32_t last = training.lengths().max();
  std::vector<v1::LengthRange> ranges;
  const auto add = [&](int32_t min, int32_t max) {
    if (min > max) return;
    if (ranges.empty() || ranges.back().max() + 1 < min) ranges.emplace_back().set_min(min);
    ranges.back().set_max(max);
  };
  const std::optional<Contents> files = FilesOf(task);
  if (!files.has_value()) {
    add(first, last);
    return ranges;
  }
  for (const auto& [length, examples] : files->training.lengths) {
    if (length >= first && length <= last) add(length, length);
  }
  return ranges;
}

v1::SummarizeExperimentResponse::Heading HeadingOf(const v1::ExperimentSpecification& specification,
                                                   const v1::SummarizeExperimentResponse& summary) {
  // All tasks of a specification are of one kind.
  const tasks::TaskEntry* found =
      specification.tasks().empty() ? nullptr : tasks::FindTask(specification.tasks(0).name());
  static const auto* const kUnknown = new tasks::TaskEntry;
  const tasks::TaskEntry& task = found == nullptr ? *kUnknown : *found;
  Lengths lengths = LengthsOf(specification, summary);
  lengths.axis = task.axis;
  lengths.is_one = task.axis == "length" || task.axis == "scale";
  const bool by_loss = task.compared_by_loss;
  const bool has_deviations = absl::c_any_of(summary.cells(), [&](const auto& cell) {
    return (!by_loss && cell.unseen_accuracy().trials() > 1) ||
           cell.training_accuracy().trials() > 1;
  });
  std::string score = by_loss ? task.loss_title : task.accuracy_title;
  v1::SummarizeExperimentResponse::Heading heading;
  heading.set_score_title(score);
  score[0] = absl::ascii_toupper(score[0]);
  const bool went_beyond =
      !lengths.trained.empty() && *lengths.trained.rbegin() > lengths.seen_up_to;

  heading.set_axis(task.axis);
  heading.set_axis_title(task.axis_title);
  heading.set_compared_by_loss(by_loss);
  heading.set_seen_up_to(lengths.seen_up_to);
  heading.set_caption(absl::StrCat(
      score, " by ", task.axis_title, by_loss ? ", median over trials (" : ", per cent (",
      Sequences(specification, lengths.evaluated), " per ",
      lengths.is_one ? task.axis : task.axis_title, "; ", WhatIsSeen(lengths),
      has_deviations ? "; ±: standard deviation over trials)" : ")"));
  heading.set_seen(lengths.AllTrained() ? "seen in training"
                                        : absl::StrCat("up to ", lengths.seen_up_to));
  heading.set_unseen(went_beyond ? absl::StrCat("above ", lengths.seen_up_to) : "not seen");
  heading.set_random_guess(RandomGuess(specification));
  return heading;
}

}  // namespace lengthwise::server
