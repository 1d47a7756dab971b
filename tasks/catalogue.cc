#include "tasks/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/addition/addition.h"
#include "tasks/chomsky/binary_operation.h"
#include "tasks/chomsky/bucket_sort.h"
#include "tasks/chomsky/compute_sqrt.h"
#include "tasks/chomsky/cycle_navigation.h"
#include "tasks/chomsky/duplicate_string.h"
#include "tasks/chomsky/even_pairs.h"
#include "tasks/chomsky/missing_duplicate_string.h"
#include "tasks/chomsky/modular_arithmetic.h"
#include "tasks/chomsky/modular_arithmetic_brackets.h"
#include "tasks/chomsky/odds_first.h"
#include "tasks/chomsky/parity_check.h"
#include "tasks/chomsky/reverse_string.h"
#include "tasks/chomsky/solve_equation.h"
#include "tasks/chomsky/stack_manipulation.h"
#include "tasks/examples/entries.h"
#include "tasks/latin_square/latin_square.h"
#include "tasks/numeric/algorithmic.h"
#include "tasks/numeric/relational_query.h"

namespace lengthwise::tasks {
namespace {

size_t Rank(const TaskEntry& entry) {
  constexpr std::array<absl::string_view, 3> kLevels = {"regular", "deterministic context-free",
                                                        "context-sensitive"};
  return static_cast<size_t>(std::find(kLevels.begin(), kLevels.end(), entry.chomsky_level) -
                             kLevels.begin());
}

std::vector<const TaskEntry*> AllTasks() {
  std::vector<const TaskEntry*> entries = {
      &chomsky::BinaryAddition(),
      &chomsky::BinaryMultiplication(),
      &chomsky::BucketSort(),
      &chomsky::ComputeSqrt(),
      &chomsky::CycleNavigation(),
      &chomsky::DuplicateString(),
      &chomsky::EvenPairs(),
      &chomsky::MissingDuplicateString(),
      &chomsky::ModularArithmetic(),
      &chomsky::ModularArithmeticBrackets(),
      &chomsky::OddsFirst(),
      &chomsky::ParityCheck(),
      &chomsky::ReverseString(),
      &chomsky::SolveEquation(),
      &chomsky::StackManipulation(),
      &latin_square::LatinSquare(),
      &numeric::CumulativeMaxSumSubarray(),
      &numeric::CumulativeMedian(),
      &numeric::CumulativeMin(),
      &numeric::CumulativeSum(),
      &numeric::RelationalQuery(),
      &numeric::Sorting(),
      &addition::DecimalAddition(),
  };
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
  static const auto& entries = *new std::vector<const TaskEntry*>(AllTasks());
  return entries;
}

absl::Span<const TaskEntry* const> EveryTaskEntry() {
  static const auto& entries = *[] {
    auto* all = new std::vector<const TaskEntry*>(AllTasks());
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
