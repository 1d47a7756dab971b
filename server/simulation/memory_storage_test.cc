#include "server/simulation/memory_storage.h"

#include <memory>

#include "gtest/gtest.h"
#include "server/storage/storage_conformance.h"

namespace lengthwise::server {
namespace {

// Reopening keeps everything committed: the same object, after a crash.
class OpenedAgain : public Storage {
 public:
  explicit OpenedAgain(std::shared_ptr<MemoryStorage> storage) : storage_(std::move(storage)) {
    storage_->Crash();
  }
  StorageWriter& writer() override { return storage_->writer(); }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override { return storage_->Read(); }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }

 private:
  const std::shared_ptr<MemoryStorage> storage_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StorageConformanceTest,
                         testing::Values(StorageFactory([](bool fresh) {
                           static std::shared_ptr<MemoryStorage> storage;
                           if (fresh) storage = std::make_shared<MemoryStorage>();
                           return std::make_unique<OpenedAgain>(storage);
                         })));

TEST(MemoryStorageTest, FailedCommitUndoesEverything) {
  MemoryStorage storage;
  StorageWriter& writer = storage.writer();
  ExperimentRecord experiment;
  experiment.name = "sort";
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
  storage.FailNextCommit();
  EXPECT_FALSE(writer.Commit().ok());
  EXPECT_FALSE((*writer.FindExperiment("sort-1")).has_value());
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.InsertExperiment(experiment).ok());
  EXPECT_EQ(experiment.id, "sort-1");
  EXPECT_TRUE(writer.Commit().ok());
}

}  // namespace
}  // namespace lengthwise::server
