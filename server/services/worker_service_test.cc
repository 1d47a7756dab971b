#include "server/services/worker_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/services/event_stream.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kTrial[] = "experiments/grid-1/trials/t0";
const std::string& Checksum() {
  static const std::string& checksum = *new std::string(64, 'a');
  return checksum;
}

class WorkerServiceTest : public ::testing::Test {
 protected:
  WorkerServiceTest() {
    server_ = RpcServer::Start({}, coordinator_).value();
    stub_ = v1::WorkerService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }

  static v1::StreamEventsRequest Batch(int64_t sequence) {
    v1::StreamEventsRequest request;
    request.set_lease_id("lease-1");
    v1::Event& event = *request.add_events();
    event.set_trial(kTrial);
    event.set_sequence(sequence);
    return request;
  }

  static v1::UploadArtifactRequest Header(int64_t size_bytes) {
    v1::UploadArtifactRequest request;
    request.mutable_header()->set_fencing_token(1);
    request.mutable_header()->set_trial(kTrial);
    request.mutable_header()->set_sha256(Checksum());
    request.mutable_header()->set_size_bytes(size_bytes);
    return request;
  }
  static v1::UploadArtifactRequest Data(std::string bytes) {
    v1::UploadArtifactRequest request;
    request.set_data(std::move(bytes));
    return request;
  }
  grpc::Status Upload(const std::vector<v1::UploadArtifactRequest>& parts) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::UploadArtifactResponse response;
    const auto writer = stub_->UploadArtifact(&context, &response);
    for (const v1::UploadArtifactRequest& part : parts) {
      if (!writer->Write(part)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  FakeCoordinator coordinator_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(WorkerServiceTest, EventsAreAcknowledgedInTheOrderOfTheRequests) {
  const auto stream = stub_->StreamEvents(&context_);
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(stream->Write(Batch(i)));
    v1::StreamEventsResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.acknowledged_sequence(), i);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, AnswersKeepTheirOrderWhenTheCoordinatorAnswersOutOfOrder) {
  coordinator_.HoldAnswers();
  const auto stream = stub_->StreamEvents(&context_);
  for (int i = 1; i <= 10; ++i) ASSERT_TRUE(stream->Write(Batch(i)));
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.held_answers() == 10; }));
  coordinator_.ReleaseAnswers(/*last_first=*/true);
  for (int i = 1; i <= 10; ++i) {
    v1::StreamEventsResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.acknowledged_sequence(), i);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, RequestsReachTheCoordinatorInTheOrderInWhichTheyWereSent) {
  constexpr int64_t kRequests = 3000;
  const auto stream = stub_->StreamEvents(&context_);
  std::thread writer([&] {
    for (int64_t i = 1; i <= kRequests; ++i) stream->Write(Batch(i));
    stream->WritesDone();
  });
  int64_t answers = 0;
  for (v1::StreamEventsResponse response; stream->Read(&response);) ++answers;
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, kRequests);
  const std::vector<int64_t> stored = coordinator_.stored();
  EXPECT_EQ(stored.size(), static_cast<size_t>(kRequests));
  EXPECT_TRUE(std::is_sorted(stored.begin(), stored.end()));
}

TEST_F(WorkerServiceTest, NoMoreThanSixteenRequestsAreInFlight) {
  coordinator_.HoldAnswers();
  const auto stream = stub_->StreamEvents(&context_);
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(stream->Write(Batch(i)));
  int64_t most = 0;
  for (int answered = 0; answered < 100;) {
    const int64_t expected = std::min<int64_t>(EventStream::kMaxInFlight, 100 - answered);
    ASSERT_TRUE(coordinator_.WaitFor([&] { return coordinator_.held_answers() >= expected; }));
    const int64_t held = coordinator_.held_answers();
    most = std::max(most, held);
    coordinator_.ReleaseAnswers(/*last_first=*/false);
    for (int64_t i = 0; i < held; ++i) {
      v1::StreamEventsResponse response;
      ASSERT_TRUE(stream->Read(&response));
      EXPECT_EQ(response.acknowledged_sequence(), ++answered);
    }
  }
  EXPECT_EQ(most, EventStream::kMaxInFlight);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, WhatIsInFlightIsAnsweredAfterTheWorkersLastRequest) {
  coordinator_.HoldAnswers();
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(7)));
  stream->WritesDone();
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.held_answers() == 1; }));
  coordinator_.ReleaseAnswers(false);
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acknowledged_sequence(), 7);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, AStoreThatCannotBeWrittenEndsTheStream) {
  coordinator_.FailNextStore(absl::UnavailableError("disk full"));
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(1)));
  v1::StreamEventsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "disk full");
}

TEST_F(WorkerServiceTest, AWorkerMayGoWhileAnswersAreOwed) {
  coordinator_.HoldAnswers();
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto stream = stub_->StreamEvents(&context);
    ASSERT_TRUE(stream->Write(Batch(1)));
    ASSERT_TRUE(coordinator_.WaitFor([&] { return coordinator_.held_answers() == i + 1; }));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  coordinator_.ReleaseAnswers(false);  // to streams that are gone
}

TEST_F(WorkerServiceTest, AStoppingServerEndsEventStreamsAndUploads) {
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(1)));
  v1::StreamEventsResponse acknowledged;
  ASSERT_TRUE(stream->Read(&acknowledged));
  grpc::ClientContext upload_context;
  v1::UploadArtifactResponse uploaded;
  const auto upload = stub_->UploadArtifact(&upload_context, &uploaded);
  ASSERT_TRUE(upload->Write(Header(100)));
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.open_writers() == 1; }));

  server_->Stop(absl::Seconds(30));
  EXPECT_FALSE(stream->Read(&acknowledged));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(coordinator_.artifacts().empty());
  // The thread that wrote lets go of its file after the call has ended.
  EXPECT_TRUE(coordinator_.WaitFor([this] { return coordinator_.open_writers() == 0; }));
}

TEST_F(WorkerServiceTest, AnArtifactComesBackAsItWasSent) {
  std::string bytes;
  for (int i = 0; i < 3'000'000; ++i) bytes.push_back(static_cast<char>(i * 2654435761u >> 24));
  const grpc::Status status =
      Upload({Header(3'000'000), Data(bytes.substr(0, 1 << 20)),
              Data(bytes.substr(1 << 20, 1 << 20)), Data(bytes.substr(2 << 20))});
  ASSERT_TRUE(status.ok()) << status.error_message();

  v1::DownloadArtifactRequest request;
  request.set_trial(kTrial);
  request.set_sha256(Checksum());
  const auto reader = stub_->DownloadArtifact(&context_, request);
  std::string back;
  v1::DownloadArtifactResponse part;
  while (reader->Read(&part)) {
    EXPECT_LE(part.data().size(), 1u << 20);
    back += part.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(back, bytes);
}

TEST_F(WorkerServiceTest, UploadsThatAreNotAsTheHeaderSaysAreRefused) {
  EXPECT_EQ(Upload({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Data("x")}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Header(1), Header(1)}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({v1::UploadArtifactRequest()}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Header(2), Data("x")}).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Upload({Header(2), Data("xyz")}).error_code(), grpc::StatusCode::DATA_LOSS);
  v1::UploadArtifactRequest stale = Header(1);
  stale.mutable_header()->set_fencing_token(0);
  EXPECT_EQ(Upload({stale, Data("x")}).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status large = Upload({Header(2 << 20), Data(std::string((1 << 20) + 1, 'x'))});
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(large.error_message(), HasSubstr("data: is 1048577 bytes"));
  EXPECT_TRUE(coordinator_.artifacts().empty());
}

TEST_F(WorkerServiceTest, ACancelledUploadStoresNothing) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    const auto writer = stub_->UploadArtifact(&context, &response);
    writer->Write(Header(1000));
    writer->Write(Data("part"));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_->Stop(absl::Seconds(30));
  EXPECT_TRUE(coordinator_.artifacts().empty());
  EXPECT_EQ(coordinator_.open_writers(), 0);
}

TEST_F(WorkerServiceTest, AWorkerMayGoInTheMiddleOfADownload) {
  coordinator_.PutArtifact(Checksum(), std::string(32 << 20, 'x'));
  v1::DownloadArtifactRequest request;
  request.set_trial(kTrial);
  request.set_sha256(Checksum());
  // More than there are threads: each must be given back.
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    const auto reader = stub_->DownloadArtifact(&context, request);
    v1::DownloadArtifactResponse part;
    ASSERT_TRUE(reader->Read(&part));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(WorkerServiceTest, DownloadsOfUnknownArtifactsAreNotFound) {
  v1::DownloadArtifactRequest request;
  request.set_trial(kTrial);
  request.set_sha256(Checksum());
  const auto reader = stub_->DownloadArtifact(&context_, request);
  v1::DownloadArtifactResponse part;
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WorkerServiceTest, TheCoordinatorIsToldOfAWorkerThatWaitsNoMore) {
  grpc::ClientContext stays, goes;
  v1::AcquireLeaseRequest request;
  request.mutable_wait()->set_seconds(60);
  std::vector<std::thread> workers;
  for (grpc::ClientContext* context : {&stays, &goes}) {
    workers.emplace_back([&, context] {
      v1::AcquireLeaseResponse response;
      EXPECT_FALSE(stub_->AcquireLease(context, request, &response).ok());
    });
  }
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.waiting_workers() == 2; }));
  EXPECT_EQ(coordinator_.given_up_workers(), 0);
  goes.TryCancel();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (coordinator_.given_up_workers() < 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(coordinator_.given_up_workers(), 1);
  server_->Stop(absl::Seconds(30));
  for (std::thread& worker : workers) worker.join();
}

TEST_F(WorkerServiceTest, ControlCharactersOfWorkersAreWrittenOut) {
  v1::RegisterWorkerRequest registration;
  registration.mutable_worker()->set_worker_id("n07-cpu-1");
  registration.mutable_worker()->set_max_pack_size(4);
  registration.mutable_worker()->mutable_provenance()->set_device("\x1b]0;title\x07");
  v1::RegisterWorkerResponse registered;
  grpc::ClientContext register_context;
  ASSERT_TRUE(stub_->RegisterWorker(&register_context, registration, &registered).ok());

  v1::ReleaseLeaseRequest release;
  release.set_reason("\x1b[2J");
  v1::ReleaseLeaseResponse released;
  grpc::ClientContext release_context;
  ASSERT_TRUE(stub_->ReleaseLease(&release_context, release, &released).ok());

  const auto stream = stub_->StreamEvents(&context_);
  v1::StreamEventsRequest batch = Batch(1);
  batch.mutable_events(0)->mutable_log_line()->set_text("50 %\rdone\n\tat line 3");
  ASSERT_TRUE(stream->Write(batch));
  v1::StreamEventsResponse stored;
  ASSERT_TRUE(stream->Read(&stored));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(coordinator_.worker_texts(),
              testing::ElementsAre("\\x1b]0;title\\x07", "\\x1b[2J", "50 %\\x0ddone\n\tat line 3"));
}

TEST_F(WorkerServiceTest, UnaryCallsAnswerWhatTheCoordinatorSays) {
  v1::RegisterWorkerRequest registration;
  registration.mutable_worker()->set_worker_id("n07-cpu-1");
  registration.mutable_worker()->set_max_pack_size(4);
  v1::RegisterWorkerResponse registered;
  ASSERT_TRUE(stub_->RegisterWorker(&context_, registration, &registered).ok());
  EXPECT_EQ(registered.lease_duration().seconds(), 30);

  grpc::ClientContext bad_context;
  registration.mutable_worker()->set_worker_id("N07");
  EXPECT_EQ(stub_->RegisterWorker(&bad_context, registration, &registered).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  grpc::ClientContext acquire_context;
  v1::AcquireLeaseResponse acquired;
  ASSERT_TRUE(stub_->AcquireLease(&acquire_context, {}, &acquired).ok());
  EXPECT_EQ(acquired.no_lease_reason(), "no trials are queued");

  grpc::ClientContext long_context;
  v1::AcquireLeaseRequest long_wait;
  long_wait.mutable_wait()->set_seconds(61);
  const grpc::Status status = stub_->AcquireLease(&long_context, long_wait, &acquired);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("wait: is 61 s"));

  grpc::ClientContext heartbeat_context;
  v1::HeartbeatResponse heard;
  EXPECT_EQ(stub_->Heartbeat(&heartbeat_context, {}, &heard).error_code(),
            grpc::StatusCode::NOT_FOUND);

  grpc::ClientContext release_context;
  v1::ReleaseLeaseResponse released;
  EXPECT_TRUE(stub_->ReleaseLease(&release_context, {}, &released).ok());
}

}  // namespace
}  // namespace lengthwise::server
