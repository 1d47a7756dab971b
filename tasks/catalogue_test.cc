#include "tasks/catalogue.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::tasks {
namespace {

using ::testing::HasSubstr;

const TransductionTask& AsTransduction(const Task& task) {
  return dynamic_cast<const TransductionTask&>(task);
}

TEST(TaskCatalogueTest, CreatesEveryEntryWithItsDefaults) {
  for (const TaskEntry* entry : TaskEntries()) {
    const absl::StatusOr<std::unique_ptr<Task>> task = CreateTask(entry->name, {});
    ASSERT_TRUE(task.ok()) << task.status();
    EXPECT_EQ((*task)->kind(), entry->kind) << entry->name;
  }
}

TEST(TaskCatalogueTest, EntriesAreNamedAndDocumented) {
  std::set<std::string> names, titles;
  for (const TaskEntry* entry : TaskEntries()) {
    EXPECT_TRUE(names.insert(entry->name).second) << entry->name;
    EXPECT_TRUE(titles.insert(entry->title).second) << entry->title;
    EXPECT_FALSE(entry->documentation.empty()) << entry->name;
  }
}

// Table 1 of Ruoss et al. 2023: labels, levels (R, DCF, CS), random accuracies and daggers. The
// catalogue may list tasks of other papers in between.
TEST(TaskCatalogueTest, ListsTheTasksOfThePapersTable) {
  struct Row {
    std::string name, title, level;
    double random_accuracy;
    bool permutation_invariant;
    bool operator==(const Row&) const = default;
  };
  const std::string r = "regular", dcf = "deterministic context-free", cs = "context-sensitive";
  const std::vector<Row> expected = {
      {"cycle_navigation", "Cycle Navigation", r, 0.2, true},
      {"even_pairs", "Even Pairs", r, 0.5, false},
      {"modular_arithmetic", "Modular Arithmetic (Simple)", r, 0.2, false},
      {"parity_check", "Parity Check", r, 0.5, true},
      {"modular_arithmetic_brackets", "Modular Arithmetic", dcf, 0.2, false},
      {"reverse_string", "Reverse String", dcf, 0.5, false},
      {"solve_equation", "Solve Equation", dcf, 0.2, false},
      {"stack_manipulation", "Stack Manipulation", dcf, 0.5, false},
      {"binary_addition", "Binary Addition", cs, 0.5, false},
      {"binary_multiplication", "Binary Multiplication", cs, 0.5, false},
      {"bucket_sort", "Bucket Sort", cs, 0.2, true},
      {"compute_sqrt", "Compute Sqrt", cs, 0.5, false},
      {"duplicate_string", "Duplicate String", cs, 0.5, false},
      {"missing_duplicate_string", "Missing Duplicate", cs, 0.5, false},
      {"odds_first", "Odds First", cs, 0.5, false},
  };
  std::vector<const TaskEntry*> entries;
  for (const TaskEntry* entry : TaskEntries()) {
    if (absl::StrContains(entry->documentation, "Ruoss et al. 2023")) entries.push_back(entry);
  }
  ASSERT_EQ(entries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TaskEntry& entry = *entries[i];
    const Row row = {entry.name, entry.title, entry.chomsky_level, entry.random_accuracy,
                     entry.permutation_invariant};
    EXPECT_TRUE(row == expected[i]) << i << ": " << entry.name;
  }
}

TEST(TaskCatalogueTest, FindsEveryEntryByName) {
  for (const TaskEntry* entry : TaskEntries()) EXPECT_EQ(FindTask(entry->name), entry);
  EXPECT_EQ(FindTask("bucket"), nullptr);
}

TEST(TaskCatalogueTest, ParametersReachTheTask) {
  catalogue::Parameters parameters;
  parameters.Set("vocabulary", 7.0);  // as a JSON parser returns it
  const absl::StatusOr<std::unique_ptr<Task>> task = CreateTask("reverse_string", parameters);
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(AsTransduction(**task).input_size(), 7);
  EXPECT_EQ(AsTransduction(**task).output_size(), 7);
}

TEST(TaskCatalogueTest, UnknownNameGetsASuggestion) {
  const absl::Status status = CreateTask("bucket_srot", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"bucket_sort\"?"));
}

TEST(TaskCatalogueTest, OutOfRangeParameterIsNamed) {
  catalogue::Parameters parameters;
  parameters.Set("vocabulary", int64_t{1});
  const absl::Status status = CreateTask("bucket_sort", parameters).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bucket_sort.vocabulary"));
}

TEST(TaskCatalogueTest, UnknownParameterIsNamed) {
  catalogue::Parameters parameters;
  parameters.Set("modulus", int64_t{5});
  const absl::Status status = CreateTask("even_pairs", parameters).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("modulus"));
}

}  // namespace
}  // namespace lengthwise::tasks
