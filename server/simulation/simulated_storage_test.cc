#include "server/simulation/simulated_storage.h"

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(SimulatedStorageTest, FailedCommitUndoesEverything) {
  SimulatedStorage storage;
  StorageWriter& writer = storage.writer();
  ExperimentRecord experiment;
  experiment.name = "sort";
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
  storage.FailNextCommit();
  EXPECT_FALSE(writer.Commit().ok());
  EXPECT_FALSE((*writer.FindExperiment("sort-1")).has_value());
  experiment.id.clear();
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
  EXPECT_EQ(experiment.id, "sort-1");
  EXPECT_TRUE(writer.Commit().ok());
}

TEST(SimulatedStorageTest, CrashLosesTheOpenTransactionAlone) {
  SimulatedStorage storage;
  for (const char* name : {"kept", "lost"}) {
    ExperimentRecord experiment;
    experiment.name = name;
    ASSERT_TRUE(storage.writer().Begin().ok());
    ASSERT_TRUE(storage.writer().InsertExperiment(experiment).ok());
    if (experiment.name == "lost") continue;
    ASSERT_TRUE(storage.writer().Commit().ok());
  }
  storage.Crash();
  EXPECT_TRUE((*storage.writer().FindExperiment("kept-1")).has_value());
  EXPECT_FALSE((*storage.writer().FindExperiment("lost-1")).has_value());
}

}  // namespace
}  // namespace lengthwise::server
