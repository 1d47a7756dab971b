// Solves and masks every sample of the reference implementation, and expects the reference's
// results.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/catalogue.h"
#include "tasks/task.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::tasks {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

constexpr char kFolder[] = "randomized_positional_encodings/tasks";

TEST(GoldenTasksTest, ThereAreGoldenFiles) {
  EXPECT_EQ(golden::WhyNothingIsIn("randomized_positional_encodings"), "");
}

class GoldenTaskTest : public ::testing::TestWithParam<std::string> {};

// The paper's tasks in the catalogue, and those in the folder.
std::vector<std::string> EveryName() {
  std::vector<std::string> names;
  for (const TaskEntry* entry : TaskEntries()) {
    if (absl::StrContains(entry->documentation, "Ruoss et al. 2023")) names.push_back(entry->name);
  }
  return golden::Files(kFolder, names);
}

TEST_P(GoldenTaskTest, SolvesAndMasksAsTheReferenceDoes) {
  const std::string path = golden::Folder(kFolder) + "/" + GetParam() + ".json";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "no examples of " << GetParam() << ": " << path << " is absent";
  const nlohmann::json golden = nlohmann::json::parse(file);

  const auto owner = CreateTask(golden.at("task").get<std::string>(), {});
  ASSERT_TRUE(owner.ok()) << owner.status();
  const auto& task = dynamic_cast<const TransductionTask&>(**owner);
  EXPECT_EQ(task.input_size(), golden.at("input_size").get<int32_t>());
  EXPECT_EQ(task.output_size(), golden.at("output_size").get<int32_t>());

  size_t examples = 0;
  for (const nlohmann::json& batch : golden.at("batches")) {
    const auto n = batch.at("requested_length").get<int64_t>();
    SCOPED_TRACE(n);
    EXPECT_EQ(task.InputLength(n), batch.at("input_length").get<int64_t>());
    EXPECT_EQ(task.OutputLength(n), batch.at("output_length").get<int64_t>());
    const Rows inputs = batch.at("inputs").get<Rows>();
    const Rows targets = batch.at("targets").get<Rows>();
    const nlohmann::json& masks = batch.at("accuracy_mask");
    ASSERT_EQ(inputs.size(), targets.size());
    for (size_t row = 0; row < inputs.size(); ++row) {
      std::vector<int32_t> solved(targets[row].size(), -1);
      task.Solve(inputs[row], absl::MakeSpan(solved));
      EXPECT_EQ(solved, targets[row]) << "row " << row;
      std::vector<uint8_t> mask(targets[row].size(), 77);
      task.Mask(targets[row], absl::MakeSpan(mask));
      EXPECT_EQ(mask, masks == "all_ones" ? std::vector<uint8_t>(mask.size(), 1)
                                          : masks.at(row).get<std::vector<uint8_t>>())
          << "row " << row;
      ++examples;
    }
  }
  EXPECT_GT(examples, 0U) << path;
}

INSTANTIATE_TEST_SUITE_P(AllTasks, GoldenTaskTest, ::testing::ValuesIn(EveryName()),
                         [](const auto& info) { return golden::TestName(info.param); });

}  // namespace
}  // namespace lengthwise::tasks
