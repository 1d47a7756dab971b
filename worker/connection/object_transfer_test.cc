// Tests the transfer of checkpoints to an object store and back.
#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "server/storage/s3_artifact_store.h"
#include "server/storage/s3_client.h"
#include "server/storage/testing/s3_fake_store.h"
#include "worker/connection/artifact_transfer.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = FakeWorkerService::State;

class ObjectTransferTest : public ConnectionTest {
 protected:
  ObjectTransferTest() {
    server_.With([this](State& state) {
      state.sign_transfer = [this](const v1::SignTransferRequest& request,
                                   v1::SignTransferResponse& response) {
        return Sign(request, response);
      };
    });
  }

  // As the server: asks the store, and signs.
  grpc::Status Sign(const v1::SignTransferRequest& request, v1::SignTransferResponse& response) {
    ++signed_;
    const bool is_put = request.direction() == v1::SignTransferRequest::PUT;
    if (is_put && client_->Head(request.sha256()).ok()) {
      response.set_stored(true);
      return grpc::Status::OK;
    }
    const auto transfer =
        is_put
            ? client_->Sign(server::S3PutOnce(request.sha256(), request.sha256()), absl::Hours(1))
            : client_->Sign({.method = "GET", .key = request.sha256()}, absl::Hours(1));
    response.set_url(transfer->url);
    response.mutable_headers()->insert(transfer->headers.begin(), transfer->headers.end());
    return grpc::Status::OK;
  }

  // As of a server that has none, or of an earlier release.
  void RemoveObjectStore() {
    server_.With([this](State& state) {
      state.sign_transfer = [this](const v1::SignTransferRequest&, v1::SignTransferResponse&) {
        ++signed_;
        return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no object store");
      };
    });
  }

  absl::Status Put(const std::string& bytes) {
    v1::UploadArtifactRequest::Header header;
    header.set_trial("a");
    header.set_sha256(platform::Sha256Hex(bytes));
    header.set_size_bytes(static_cast<int64_t>(bytes.size()));
    return objects_.Put(*stub_, calls_, header, bytes, [] {});
  }
  absl::StatusOr<std::string> Get(const std::string& bytes) {
    v1::DownloadArtifactRequest request;
    request.set_sha256(platform::Sha256Hex(bytes));
    return objects_.Get(*stub_, calls_, request, static_cast<int64_t>(bytes.size()));
  }

  server::S3FakeStore store_{testing::TempDir()};
  const std::unique_ptr<server::S3Client> client_ =
      server::OpenS3("s3://bucket/prefix", store_.options()).value();
  const std::unique_ptr<v1::WorkerService::Stub> stub_ = v1::WorkerService::NewStub(
      grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials()));
  CallGroup calls_;
  ObjectTransfers objects_;
  int signed_ = 0;
};

TEST_F(ObjectTransferTest, CheckpointGoesAroundTheServer) {
  const std::string bytes(3'000'000, 'w');
  v1::Lease lease = LeaseOf({"a"});
  lease.mutable_trials(0)->mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  lease.mutable_trials(0)->mutable_checkpoint()->set_size_bytes(3'000'000);
  OfferLease(lease);
  std::promise<absl::StatusOr<std::string>> fetched;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.EmitCheckpoint(0, 1, bytes);
    session.Emit(0, Completed());
    EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 2; }));
    fetched.set_value(session.FetchCheckpoint(0));
    return absl::OkStatus();
  });
  const absl::StatusOr<std::string> got = fetched.get_future().get();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(got.value_or(got.status().ToString()).size(), bytes.size());
  server_.With([&](State& state) {
    EXPECT_THAT(state.history, ElementsAre("event a 1", "event a 2"));
    EXPECT_THAT(state.artifacts, IsEmpty());
    EXPECT_EQ(state.downloads, 0);
    EXPECT_EQ(state.events["a"][0].checkpoint().sha256(), platform::Sha256Hex(bytes));
  });
  EXPECT_EQ(client_->Head(platform::Sha256Hex(bytes))->sha256, platform::Sha256Hex(bytes));
}

// Above the size from which stores recommend several parts.
TEST_F(ObjectTransferTest, LargeCheckpointIsOneRequest) {
  const std::string bytes(80 << 20, 'l');
  ASSERT_EQ(Put(bytes), absl::OkStatus());
  const auto got = Get(bytes);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == bytes);
}

TEST_F(ObjectTransferTest, ObjectOfAnEarlierTryIsEnough) {
  const std::string bytes = "bytes";
  const std::string key = platform::Sha256Hex(bytes);
  server_.With([&](State& state) {
    state.sign_transfer = [&](const v1::SignTransferRequest& request,
                              v1::SignTransferResponse& response) {
      if (signed_ > 0) return Sign(request, response);
      // The earlier try's bytes arrive after the server looked.
      const grpc::Status status = Sign(request, response);
      EXPECT_TRUE(client_->PutOnce(key, bytes, key).ok());
      return status;
    };
  });
  EXPECT_EQ(Put(bytes), absl::OkStatus());  // 412
  EXPECT_EQ(signed_, 2);
}

TEST_F(ObjectTransferTest, RefusedUrlIsSignedAgain) {
  const std::string bytes = "bytes";
  server_.With([&](State& state) {
    state.sign_transfer = [&](const v1::SignTransferRequest& request,
                              v1::SignTransferResponse& response) {
      const grpc::Status status = Sign(request, response);
      // As if it had expired.
      if (signed_ == 1) response.set_url(response.url().substr(0, response.url().find('?')));
      return status;
    };
  });
  const absl::Status refused = Put(bytes);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("403"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("AccessDenied"));
  EXPECT_EQ(Put(bytes), absl::OkStatus());
}

// A proxy's error page, or the store's, may show the whole URL, and workers log errors.
TEST_F(ObjectTransferTest, ErrorsShowNoSignature) {
  store_.Set("proxy", "PUT /bucket");
  const absl::Status refused = Put("bytes");
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("503"));
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("X-Amz-")));
}

TEST_F(ObjectTransferTest, LostOrDamagedObjectIsAskedOfTheServer) {
  const std::string bytes(2'000'000, 'd');
  EXPECT_TRUE(absl::IsUnimplemented(Get(bytes).status()));
  ASSERT_EQ(Put(bytes), absl::OkStatus());
  ASSERT_TRUE(Get(bytes).ok());
  store_.Set("flip", platform::Sha256Hex(bytes));
  EXPECT_TRUE(absl::IsUnimplemented(Get(bytes).status()));
}

TEST_F(ObjectTransferTest, ServerWithoutObjectStoreIsNotAskedAgain) {
  RemoveObjectStore();
  EXPECT_TRUE(absl::IsUnimplemented(Put("bytes")));
  EXPECT_TRUE(absl::IsUnimplemented(Put("bytes")));
  EXPECT_TRUE(absl::IsUnimplemented(Get("bytes").status()));
  EXPECT_EQ(signed_, 1);
}

TEST_F(ObjectTransferTest, ServerWithoutObjectStoreIsAskedOnceForAllLeases) {
  RemoveObjectStore();
  int64_t token = 11;
  for (const char* trial : {"a", "b", "c"}) {
    OfferLease(LeaseOf({trial}, absl::StrCat("lease-of-", trial), token++));
  }
  StartWorker([&](const v1::Lease& lease, PackSession& session) {
    session.EmitCheckpoint(0, 1, "model of " + lease.trials(0).trial());
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "c") == 2; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_EQ(state.artifacts.size(), 3U);
    EXPECT_EQ(signed_, 1);
  });
}

TEST_F(ObjectTransferTest, CancelledCallEndsItsTransfer) {
  store_.Set("hang", "PUT /bucket");
  auto put = std::async(std::launch::async, [&] { return Put("bytes"); });
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Time start = absl::Now();
  calls_.Cancel();
  EXPECT_FALSE(put.get().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  store_.Set("hang", "");
}

}  // namespace
}  // namespace lengthwise::worker
