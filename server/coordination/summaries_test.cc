// Commits that arrive while a summary is built. core_summary_test checks that summaries are right.
#include "server/coordination/summaries.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/status_macros.h"
#include "server/storage/sqlite_storage.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;

// A store that runs a hook right after a snapshot was taken.
class HookedStorage : public Storage {
 public:
  explicit HookedStorage(const std::string& path)
      : storage_(*OpenSqliteStorage(path, SqliteOptions())) {}

  StorageWriter& writer() override { return storage_->writer(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override {
    ++reads_;
    auto reader = storage_->Read();
    if (const auto hook = std::exchange(hook_, nullptr)) {
      // SQLite takes the snapshot at the first read
      (*reader)->TotalCounts().status().IgnoreError();
      RETURN_IF_ERROR(hook());
    }
    return reader;
  }

  void set_hook(std::function<absl::Status()> hook) { hook_ = std::move(hook); }
  int reads() const { return reads_; }

 private:
  const std::unique_ptr<Storage> storage_;
  std::function<absl::Status()> hook_;
  int reads_ = 0;
};

class SummariesTest : public testing::Test {
 protected:
  SummariesTest() : storage_(NewPath()), summaries_(storage_) {
    EXPECT_TRUE(storage_.writer().Begin().ok());
    ExperimentRecord experiment;
    experiment.name = "sort";
    experiment.counts.set_queued(2);
    EXPECT_TRUE(storage_.writer().InsertExperiment(experiment).ok());
    PackRecord pack;
    pack.experiment = experiment.key;
    EXPECT_TRUE(storage_.writer().InsertPack(pack).ok());
    for (int32_t index : {0, 1}) {
      TrialRecord& trial = trials_[index];
      trial.experiment = experiment.key;
      trial.index = index;
      trial.id = absl::StrCat("t", index);
      trial.pack = pack.key;
      EXPECT_TRUE(storage_.writer().InsertTrials({&trial, 1}).ok());
    }
    EXPECT_TRUE(storage_.writer().Commit().ok());
  }

  static std::string NewPath() {
    const std::string path = testing::TempDir() + "/summaries_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove(path);
    return path;
  }

  // Commits that the trial succeeded with this accuracy at length 1, and updates the summary.
  absl::Status Succeed(int index, double accuracy) {
    TrialRecord& trial = trials_[index];
    StorageWriter& writer = storage_.writer();
    v1::Event fact;
    fact.mutable_length_accuracies()->set_final(true);
    fact.mutable_length_accuracies()->add_lengths(1);
    fact.mutable_length_accuracies()->add_accuracies(accuracy);
    fact.mutable_length_accuracies()->add_losses(0);
    EventRecord event;
    event.experiment = trial.experiment;
    event.trial = trial.key;
    event.sequence = 1;
    event.kind = v1::Event::kLengthAccuracies;
    event.payload = fact.SerializeAsString();
    absl::Status status = writer.Begin();
    if (status.ok()) status = writer.AppendEvent(event);
    const v1::TrialState previous = std::exchange(trial.state, v1::SUCCEEDED);
    if (status.ok()) status = writer.UpdateTrial(trial, previous);
    if (status.ok()) status = writer.Commit();
    summaries_.Update("sort-1", {trial.key});
    return status;
  }

  v1::SummarizeExperimentResponse::Cell Ask() {
    const auto summary = summaries_.Summarize("sort-1", "");
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary->cells(0);
  }

  HookedStorage storage_;
  Summaries summaries_;
  TrialRecord trials_[2];
};

TEST_F(SummariesTest, CommitDuringTheBuildIsInTheNextAnswer) {
  ASSERT_TRUE(Succeed(0, 0.25).ok());
  storage_.set_hook([this] { return Succeed(1, 0.75); });
  EXPECT_THAT(Ask().mean_accuracies(), ElementsAre(0.25));
  EXPECT_THAT(Ask().mean_accuracies(), ElementsAre(0.5));
  EXPECT_EQ(Ask().trials().succeeded(), 2);
}

TEST_F(SummariesTest, CommitThatWasReadCountsOnce) {
  ASSERT_TRUE(Succeed(0, 0.25).ok());
  storage_.set_hook([this] {
    summaries_.Update("sort-1", {trials_[0].key});
    return absl::OkStatus();
  });
  EXPECT_THAT(Ask().mean_accuracies(), ElementsAre(0.25));
  summaries_.Update("sort-1", {trials_[0].key});
  EXPECT_EQ(Ask().seen_accuracy().trials() + Ask().unseen_accuracy().trials(), 1);
}

TEST_F(SummariesTest, CachedSummaryIsNotReadAgain) {
  Ask();
  const int reads = storage_.reads();
  for (int i = 0; i < 10; ++i) Ask();
  EXPECT_EQ(storage_.reads(), reads);
  ASSERT_TRUE(Succeed(0, 0.25).ok());
  EXPECT_EQ(Ask().trials().succeeded(), 1);
  EXPECT_EQ(storage_.reads(), reads + 1);
  summaries_.Forget("sort-1");
  EXPECT_EQ(Ask().trials().succeeded(), 1);
  EXPECT_EQ(storage_.reads(), reads + 2);
  summaries_.ForgetAll();
  EXPECT_EQ(Ask().trials().succeeded(), 1);
  EXPECT_EQ(storage_.reads(), reads + 3);
}

TEST_F(SummariesTest, FailedReadIsRepeatedByTheNextQuery) {
  storage_.set_hook([] { return absl::UnavailableError("busy"); });
  EXPECT_EQ(summaries_.Summarize("sort-1", "").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask().trials().queued(), 2);
  // A change that could not be read is not lost either.
  ASSERT_TRUE(Succeed(0, 0.25).ok());
  storage_.set_hook([] { return absl::UnavailableError("busy"); });
  EXPECT_EQ(summaries_.Summarize("sort-1", "").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask().trials().succeeded(), 1);
  EXPECT_EQ(summaries_.Summarize("sort-2", "").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SummariesTest, SummaryEvictedDuringTheBuildIsRebuilt) {
  storage_.set_hook([this] {
    summaries_.ForgetAll();
    return Succeed(0, 0.25);  // committed without an update
  });
  EXPECT_EQ(Ask().trials().queued(), 2);
  EXPECT_EQ(Ask().trials().succeeded(), 1);
}

}  // namespace
}  // namespace lengthwise::server
