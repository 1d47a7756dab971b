#include "tasks/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/all_tasks.h"
#include "tasks/examples/entries.h"
#include "tasks/transduction_text.h"

namespace lengthwise::tasks {
namespace {

size_t Rank(const TaskEntry& entry) {
  constexpr std::array<absl::string_view, 3> kLevels = {"regular", "deterministic context-free",
                                                        "context-sensitive"};
  return static_cast<size_t>(std::find(kLevels.begin(), kLevels.end(), entry.chomsky_level) -
                             kLevels.begin());
}

// The transduction task as text. `asked` must outlive it.
TaskEntry TextOf(const TaskEntry& asked) {
  TaskEntry made = asked;
  made.documentation = absl::StrCat(
      "The task ", made.name,
      " for networks that continue text: they read the input's tokens and \"=\", and write the "
      "target's. An answer is right only as a whole.");
  made.name += "_text";
  made.title += ", as Text";
  made.kind = TaskKind::kText;
  made.create = [&asked](const catalogue::Parameters& parameters) {
    std::unique_ptr<Task> task = asked.create(parameters);
    return std::make_unique<TransductionText>(
        std::unique_ptr<TransductionTask>(static_cast<TransductionTask*>(task.release())));
  };
  made.accuracy_title = "exact match";
  made.random_accuracy = 0;
  return made;
}

std::vector<const TaskEntry*> MakeTasks() {
  std::vector<const TaskEntry*> entries;
  const auto add = [&](TaskEntry made) {
    const TaskEntry& entry = *new TaskEntry(std::move(made));
    entries.push_back(&entry);
    if (entry.kind == TaskKind::kTransduction) entries.push_back(new TaskEntry(TextOf(entry)));
  };
#define LENGTHWISE_ADD(family, name) add(family::name());
  LENGTHWISE_TASKS(LENGTHWISE_ADD)
#undef LENGTHWISE_ADD
  std::sort(entries.begin(), entries.end(), [](const TaskEntry* a, const TaskEntry* b) {
    return std::forward_as_tuple(Rank(*a), a->name) < std::forward_as_tuple(Rank(*b), b->name);
  });
  return entries;
}

std::string Describe(const std::vector<catalogue::Problem>& problems) {
  return absl::StrJoin(problems, "; ", [](std::string* out, const catalogue::Problem& problem) {
    absl::StrAppend(out, problem.field, ": ", problem.description);
  });
}

}  // namespace

absl::Span<const TaskEntry* const> TaskEntries() {
  static const auto& entries = *new std::vector<const TaskEntry*>(MakeTasks());
  return entries;
}

absl::Span<const TaskEntry* const> EveryTaskEntry() {
  static const auto& entries = *[] {
    auto* all = new std::vector<const TaskEntry*>(TaskEntries().begin(), TaskEntries().end());
    all->insert(all->end(),
                {&examples::Examples(), &examples::ExamplesNumbers(), &examples::ExamplesText()});
    return all;
  }();
  return entries;
}

const TaskEntry* FindTask(absl::string_view name) {
  const absl::Span<const TaskEntry* const> entries = EveryTaskEntry();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const TaskEntry* entry) { return entry->name == name; });
  return found == entries.end() ? nullptr : *found;
}

absl::StatusOr<std::unique_ptr<Task>> CreateTask(absl::string_view name,
                                                 const catalogue::Parameters& given) {
  const absl::Span<const TaskEntry* const> entries = TaskEntries();
  const std::vector<const catalogue::Entry*> names(entries.begin(), entries.end());
  std::vector<catalogue::Problem> problems;
  const std::optional<size_t> found = catalogue::Find(names, name, "task", "task", problems);
  if (!found) return absl::NotFoundError(Describe(problems));
  const TaskEntry& entry = *entries[*found];
  const catalogue::Parameters parameters = catalogue::Resolve(entry, given, entry.name, problems);
  if (!problems.empty()) return absl::InvalidArgumentError(Describe(problems));
  return entry.create(parameters);
}

}  // namespace lengthwise::tasks
