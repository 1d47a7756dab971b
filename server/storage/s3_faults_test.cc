// What S3ArtifactStore makes of a store that errs, lags, hangs or races.
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/http_client.h"
#include "platform/sha256.h"
#include "server/storage/directory_artifact_store.h"
#include "server/storage/s3_artifact_store.h"
#include "server/storage/testing/s3_fake_store.h"
#include "server/storage/testing/s3_test_store.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kModel[] = "the bytes of a model";
constexpr int64_t kModelSize = sizeof(kModel) - 1;

ArtifactId IdOfModel(const std::string& bytes, const std::string& trial = "trial") {
  return {.experiment = "sorting-1", .trial = trial, .sha256 = platform::Sha256Hex(bytes)};
}

absl::StatusOr<bool> NotNeeded() { return true; }

std::string KeyOf(const ArtifactId& id) { return ArtifactPath("", id).value().substr(1); }

class S3FaultsTest : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  absl::Status TryOpen() {
    store_.reset();
    auto client = OpenS3(place_, fake_.options());
    if (!client.ok()) return client.status();
    auto files = DirectoryArtifactStore::Open(data_dir_ + "/artifacts");
    if (!files.ok()) return files.status();
    auto opened =
        S3ArtifactStore::Open({.data_dir = data_dir_, .copy_timeout = absl::Milliseconds(500)},
                              *std::move(client), *std::move(files));
    if (!opened.ok()) return opened.status();
    store_ = *std::move(opened);
    return absl::OkStatus();
  }
  void Reopen() { ASSERT_EQ(TryOpen(), absl::OkStatus()); }

  // As a worker: returns once the server says that the artifact is stored.
  absl::Status Store(const ArtifactId& id, const std::string& bytes) {
    auto put = store_->SignPut(id, static_cast<int64_t>(bytes.size()));
    if (!put.ok()) return put.status();
    if (!put->has_value()) return absl::OkStatus();
    const auto sent = http_->Send(
        {.method = "PUT", .url = (*put)->url, .headers = (*put)->headers, .body = bytes});
    if (!sent.ok()) return sent.status();
    if (!sent->ok()) return absl::UnknownError(absl::StrCat("PUT: ", sent->status));
    put = store_->SignPut(id, static_cast<int64_t>(bytes.size()));
    if (!put.ok()) return put.status();
    return put->has_value() ? absl::UnknownError("not stored") : absl::OkStatus();
  }
  // Through the server, as workers of earlier releases do.
  absl::Status Relay(const ArtifactId& id, const std::string& bytes) {
    auto writer = store_->Write(id, static_cast<int64_t>(bytes.size()));
    if (!writer.ok()) return writer.status();
    if (absl::Status status = (*writer)->Append(bytes); !status.ok()) return status;
    return (*writer)->Finish();
  }
  absl::Status Read(const ArtifactId& id) {
    auto reader = store_->Open(id);
    if (!reader.ok()) return reader.status();
    while (true) {
      auto chunk = (*reader)->Next();
      if (!chunk.ok()) return chunk.status();
      if (chunk->empty()) return absl::OkStatus();
    }
  }
  std::unique_ptr<S3Client> Client() { return OpenS3(place_, fake_.options()).value(); }
  bool IsThere(const ArtifactId& id) { return Client()->Head(KeyOf(id)).ok(); }

  const std::string data_dir_ = NewDataDir();
  S3FakeStore fake_{data_dir_};
  std::string place_ = "s3://bucket/some prefix+1";
  std::unique_ptr<platform::HttpClient> http_ = platform::HttpClient::Create().value();
  std::unique_ptr<S3ArtifactStore> store_;
};

// A trial that resumes from the checkpoint before makes the damaged one again. It must not pass for
// stored: the trial would succeed with a model that nobody can read.
TEST_F(S3FaultsTest, DamagedObjectIsStoredAgain) {
  for (const bool relays : {false, true}) {
    const ArtifactId id = IdOfModel(kModel, relays ? "relayed" : "sent");
    ASSERT_EQ(Store(id, kModel), absl::OkStatus());
    ASSERT_TRUE(Client()->Replace(KeyOf(id), "others of same size!").ok());
    EXPECT_TRUE(absl::IsDataLoss(store_->Verify(id)));
    EXPECT_TRUE(absl::IsDataLoss(store_->VerifyQuickly(id, kModelSize, 0)));
    EXPECT_EQ(relays ? Relay(id, kModel) : Store(id, kModel), absl::OkStatus());
    EXPECT_EQ(store_->VerifyQuickly(id, kModelSize, 0), absl::OkStatus());
    EXPECT_EQ(Read(id), absl::OkStatus());
  }
}

TEST_F(S3FaultsTest, TruncatedObjectIsStoredAgain) {
  ASSERT_TRUE(Client()->Replace(KeyOf(IdOfModel(kModel)), "the bytes").ok());
  EXPECT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  EXPECT_EQ(Read(IdOfModel(kModel)), absl::OkStatus());
  // A wrong size in the request is no damage.
  EXPECT_TRUE(absl::IsInvalidArgument(store_->SignPut(IdOfModel(kModel), kModelSize + 1).status()));
  EXPECT_EQ(Read(IdOfModel(kModel)), absl::OkStatus());
}

// As after a move by "aws s3 sync", which knows no x-amz-meta-sha256.
TEST_F(S3FaultsTest, ObjectOfAnotherProgramIsReadOnce) {
  ASSERT_TRUE(Client()->Replace(KeyOf(IdOfModel(kModel)), kModel).ok());
  Reopen();
  const auto put = store_->SignPut(IdOfModel(kModel), kModelSize);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->has_value());
  EXPECT_EQ(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0), absl::OkStatus());
}

// The store itself does not notice: size and ETag stay.
TEST_F(S3FaultsTest, DamageIsFoundWhileReading) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("flip", "trial");
  EXPECT_EQ(store_->Verify(IdOfModel(kModel)),
            absl::OkStatus());  // the store compared the bytes once
  EXPECT_TRUE(absl::IsDataLoss(Read(IdOfModel(kModel))));
  EXPECT_TRUE(absl::IsDataLoss(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0)));
  EXPECT_TRUE(absl::IsDataLoss(store_->SignGet(IdOfModel(kModel)).status()));
}

// The deletion comes while the store is asked whether it has the object.
TEST_F(S3FaultsTest, ObjectReportedAsStoredIsNotDeleted) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("slow", "HEAD /bucket/");
  const int64_t before = fake_.CountRequests(IdOfModel(kModel).sha256);
  auto asked = std::async(std::launch::async,
                          [&] { return store_->SignPut(IdOfModel(kModel), kModelSize); });
  ASSERT_TRUE(fake_.AwaitMoreRequests(IdOfModel(kModel).sha256, before));
  EXPECT_TRUE(absl::IsAborted(store_->Delete(IdOfModel(kModel), NotNeeded)));
  const auto put = asked.get();
  fake_.Set("slow", "");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->has_value());
  EXPECT_TRUE(IsThere(IdOfModel(kModel)));
  EXPECT_EQ(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0), absl::OkStatus());
  // While it is decided and deleted, nothing is reported.
  EXPECT_EQ(store_->Delete(IdOfModel(kModel),
                           [&]() -> absl::StatusOr<bool> {
                             EXPECT_TRUE(absl::IsUnavailable(
                                 store_->SignPut(IdOfModel(kModel), kModelSize).status()));
                             return true;
                           }),
            absl::OkStatus());
  EXPECT_FALSE(IsThere(IdOfModel(kModel)));
  EXPECT_TRUE(absl::IsNotFound(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0)));
}

TEST_F(S3FaultsTest, CopyThatFailsWithinASuccessIsNoCopy) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("copy", "error");
  const absl::Status copied = store_->Copy(IdOfModel(kModel), "sorting-2", "copy");
  EXPECT_TRUE(absl::IsUnavailable(copied)) << copied;
  EXPECT_THAT(std::string(copied.message()), HasSubstr("InternalError"));
  fake_.Set("copy", "");
  EXPECT_EQ(store_->Copy(IdOfModel(kModel), "sorting-2", "copy"), absl::OkStatus());
  ArtifactId copy = IdOfModel(kModel, "copy");
  copy.experiment = "sorting-2";
  EXPECT_EQ(Read(copy), absl::OkStatus());
}

// Users' transfers wait for its thread.
TEST_F(S3FaultsTest, CopyEndsWhenTheStoreHangs) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("hang", "sorting-2");
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(store_->Copy(IdOfModel(kModel), "sorting-2", "copy")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  fake_.Set("hang", "");
}

TEST_F(S3FaultsTest, ServerStopsWhileTheStoreHangs) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("hang", "sorting-1");
  auto asked = std::async(std::launch::async, [&] { return store_->SignGet(IdOfModel(kModel)); });
  auto deleted =
      std::async(std::launch::async, [&] { return store_->Delete(IdOfModel(kModel), NotNeeded); });
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Time start = absl::Now();
  store_->Interrupt();
  EXPECT_TRUE(absl::IsUnavailable(asked.get().status()));
  EXPECT_TRUE(absl::IsUnavailable(deleted.get()));
  store_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  fake_.Set("hang", "");
}

// S3 answers 400 to a temporary credential that has expired.
TEST_F(S3FaultsTest, ExpiredCredentialsLoseNothing) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  Reopen();
  fake_.Set("status", "GET /bucket=400");
  const absl::Status read = store_->Verify(IdOfModel(kModel));
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("ExpiredToken"));
  fake_.Set("status", "HEAD /bucket=400");
  EXPECT_TRUE(absl::IsUnavailable(store_->SignGet(IdOfModel(kModel)).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->SignPut(IdOfModel(kModel), kModelSize).status()));
  EXPECT_EQ(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0), absl::OkStatus());
  const absl::Status sought = CheckpointsInS3(Client()).find(IdOfModel("absent"), 6);
  EXPECT_TRUE(absl::IsUnavailable(sought)) << sought;
}

TEST_F(S3FaultsTest, InterruptedAnswersLoseNothing) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("hang", "HEAD /bucket/");
  auto asked = std::async(std::launch::async, [&] { return store_->Verify(IdOfModel(kModel)); });
  absl::SleepFor(absl::Milliseconds(200));
  store_->Interrupt();
  EXPECT_TRUE(absl::IsUnavailable(asked.get()));
  fake_.Set("hang", "");
}

TEST_F(S3FaultsTest, ListThatLagsHidesNothing) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  fake_.Set("hide", IdOfModel(kModel).sha256);
  Reopen();
  EXPECT_TRUE(absl::IsNotFound(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0)));
  EXPECT_EQ(store_->Find(IdOfModel(kModel)), absl::OkStatus());
  EXPECT_EQ(store_->VerifyQuickly(IdOfModel(kModel), kModelSize, 0), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(store_->Find(IdOfModel("absent"))));
  EXPECT_EQ(CheckpointsInS3(Client()).find(IdOfModel(kModel), kModelSize), absl::OkStatus());
}

TEST_F(S3FaultsTest, RestoreAsksOnceForAllCheckpoints) {
  for (int i = 0; i < 10; ++i) {
    const std::string bytes = absl::StrCat("model ", i);
    ASSERT_EQ(Store(IdOfModel(bytes), bytes), absl::OkStatus());
  }
  const CheckpointPlace place = CheckpointsInS3(Client());
  const size_t before = fake_.Requests().size();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(place.find(IdOfModel(absl::StrCat("model ", i)), 7), absl::OkStatus());
  }
  EXPECT_EQ(fake_.Requests().size() - before, 4U);  // pages of the list
  EXPECT_TRUE(absl::IsDataLoss(place.find(IdOfModel("model 1"), 8)));
  EXPECT_TRUE(absl::IsNotFound(place.find(IdOfModel("absent"), 8)));
}

TEST_F(S3FaultsTest, LargeExperimentIsDeletedInParts) {
  // Signed and never sent, as of a fleet that was lost.
  for (int i = 0; i < 210; ++i) {
    const auto put = store_->SignPut(IdOfModel(absl::StrCat(i)), 7);
    ASSERT_TRUE(put.ok()) << put.status();
  }
  std::atomic<int> asked = 0;
  const auto in_parts = [&]() -> absl::StatusOr<bool> {
    if (++asked < 150) return true;
    return absl::AbortedError("later");
  };
  EXPECT_TRUE(absl::IsAborted(store_->DeleteExperiment("sorting-1", in_parts)));
  const size_t left = store_->List("sorting-1", "trial")->size();
  EXPECT_GE(left, 60u);
  EXPECT_LT(left, 70u);
  EXPECT_EQ(store_->DeleteExperiment("sorting-1", NotNeeded), absl::OkStatus());
  EXPECT_TRUE(store_->List("sorting-1", "trial")->empty());
}

TEST_F(S3FaultsTest, ProbeTouchesNothingElse) {
  ASSERT_EQ(Store(IdOfModel(kModel), kModel), absl::OkStatus());
  const size_t before = fake_.Requests().size();
  Reopen();
  const auto requests = fake_.Requests();
  for (size_t i = before; i < requests.size(); ++i) {
    EXPECT_TRUE(requests[i] == "GET /bucket" || requests[i].ends_with("/lengthwise_probe"))
        << requests[i];
  }
}

TEST_F(S3FaultsTest, AnswersOutsideTheProtocolAreNoAnswers) {
  const auto client = Client();
  const auto list = [&](const std::string& body) {
    fake_.Set("answer", "GET /bucket=" + body);
    const absl::Status status = client->List("", [](const S3Object&) {});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(list("{}"), HasSubstr("is no XML"));
  EXPECT_THAT(list("<ListBucketResult><Contents><Key>some prefix+1/k</Key></Contents>"
                   "</ListBucketResult>"),
              HasSubstr("is damaged"))
      << "an object without a size";
  EXPECT_THAT(list("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
              HasSubstr("has no end"));
  fake_.Set("answer", "GET /bucket=the whole object");
  const absl::Status read = client->Read("key", 0, 3).status();
  EXPECT_TRUE(absl::IsUnavailable(read));
  EXPECT_THAT(std::string(read.message()), HasSubstr("ignores the range"));
}

TEST_F(S3FaultsTest, ErrorsSayWhatToDo) {
  const auto client = Client();
  const struct {
    int status;
    const char* advice;
  } errors[] = {{301, "check --s3_endpoint and --s3_region"},
                {307, "check --s3_endpoint and --s3_region"},
                {403, "check AWS_ACCESS_KEY_ID"},
                {409, "try again"},
                {429, "try again"}};
  for (const auto& error : errors) {
    fake_.Set("status", absl::StrCat("HEAD /bucket=", error.status));
    const absl::Status status = client->Head("key").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(error.advice));
  }
}

TEST_F(S3FaultsTest, UsageCountsObjectsAndFiles) {
  ASSERT_EQ(Store(IdOfModel("one"), "one"), absl::OkStatus());
  ASSERT_EQ(Store(IdOfModel("three"), "three"), absl::OkStatus());
  const auto usage = store_->Usage();
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->artifacts, 2);
  EXPECT_EQ(usage->bytes, 8);
}

TEST_F(S3FaultsTest, ErrorsShowNoSignature) {
  fake_.Set("proxy", "sorting-1");
  const absl::Status status = store_->SignGet(IdOfModel(kModel)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("X-Amz-")));
}

}  // namespace
}  // namespace lengthwise::server
