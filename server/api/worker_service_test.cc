#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "platform/version.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/answer_stream.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

// Returns `size` bytes. No two chunks are equal, so that a swapped chunk is noticed.
std::string SomeBytes(int64_t size) {
  std::string bytes;
  for (int64_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i * 2654435761u >> 24));
  return bytes;
}

class WorkerServiceTest : public ::testing::Test {
 protected:
  explicit WorkerServiceTest(RpcServer::Options options = {}) {
    EXPECT_EQ(server_.AddExperiment("grid", 1) + "/trials/t0", kTrial);
    server_.Serve(std::move(options));
    stub_ = v1::WorkerService::NewStub(server_.Connect());
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  }

  v1::StreamEventsRequest Batch(int64_t sequence) {
    const v1::Lease& lease = server_.LeaseOf(kTrial);
    v1::StreamEventsRequest request;
    request.set_lease_id(lease.lease_id());
    request.set_fencing_token(lease.fencing_token());
    *request.add_events() = PointsEvent(lease, 0, sequence, sequence);
    return request;
  }

  v1::UploadArtifactRequest Header(const std::string& bytes) {
    const v1::Lease& lease = server_.LeaseOf(kTrial);
    v1::UploadArtifactRequest request;
    request.mutable_header()->set_lease_id(lease.lease_id());
    request.mutable_header()->set_fencing_token(lease.fencing_token());
    request.mutable_header()->set_trial(kTrial);
    request.mutable_header()->set_sha256(platform::Sha256Hex(bytes));
    request.mutable_header()->set_size_bytes(static_cast<int64_t>(bytes.size()));
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
  v1::DownloadArtifactRequest DownloadOf(const std::string& bytes) {
    const v1::UploadArtifactRequest::Header header = Header(bytes).header();
    v1::DownloadArtifactRequest request;
    request.set_lease_id(header.lease_id());
    request.set_fencing_token(header.fencing_token());
    request.set_trial(kTrial);
    request.set_sha256(header.sha256());
    return request;
  }

  TestServer server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(WorkerServiceTest, AcknowledgesEventsInRequestOrder) {
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

// Holds ten requests, then answers the last one first. The real core always answers in order.
class LastFirst final : public v1::WorkerService::CallbackService {
 public:
  static constexpr int64_t kHeld = 10;

  grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>* StreamEvents(
      grpc::CallbackServerContext*) override {
    return EventStream::Start(
        [this](const v1::StreamEventsRequest& request, Done<v1::StreamEventsResponse> done) {
          v1::StreamEventsResponse response;
          response.set_acknowledged_sequence(request.events(0).sequence());
          held_.push_back([done = std::move(done), response] { done(response); });
          if (held_.size() < kHeld) return;
          for (auto answer = held_.rbegin(); answer != held_.rend(); ++answer) (*answer)();
        },
        /*admission=*/{}, streams_);
  }

 private:
  OpenStreams streams_;
  // Needs no mutex: the stream reads one request at a time.
  std::vector<std::function<void()>> held_;
};

// A server of this service alone, and a client of it.
struct ServedAlone {
  explicit ServedAlone(grpc::Service& service) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    stub = v1::WorkerService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::WorkerService::Stub> stub;
};

TEST(EventStreamTest, AnswersKeepRequestOrder) {
  LastFirst service;
  const ServedAlone served(service);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = served.stub->StreamEvents(&context);
  for (int i = 1; i <= LastFirst::kHeld; ++i) {
    v1::StreamEventsRequest request;
    request.add_events()->set_sequence(i);
    ASSERT_TRUE(stream->Write(request));
  }
  for (int i = 1; i <= LastFirst::kHeld; ++i) {
    v1::StreamEventsResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.acknowledged_sequence(), i);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// Answers with as many bytes as the sequence number says.
class Wordy final : public v1::WorkerService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>* StreamEvents(
      grpc::CallbackServerContext*) override {
    return EventStream::Start(
        [](const v1::StreamEventsRequest& request, Done<v1::StreamEventsResponse> done) {
          v1::StreamEventsResponse response;
          response.set_detail(std::string(request.events(0).sequence(), 'x'));
          done(std::move(response));
        },
        /*admission=*/{}, streams_, "ada", "StreamEvents");
  }

  AnswerBudget& answers() { return streams_.answers(); }

 private:
  OpenStreams streams_;
};

// A batch is of up to 256 trials, so its answer may be larger than the batch.
TEST(EventStreamTest, UnreadAnswersCount) {
  Wordy service;
  const ServedAlone served(service);
  // Nearly half of the budget, the most that a client may have: it counts twice.
  v1::StreamEventsResponse held;
  held.set_detail(std::string(AnswerBudget::kBytes / 4 - (100 << 10), 'x'));
  const auto share = service.answers().Take("ada", "StreamEvents", held);
  ASSERT_TRUE(share.ok()) << share.status();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = served.stub->StreamEvents(&context);
  v1::StreamEventsRequest request;
  v1::StreamEventsResponse response;
  // More than would fit together: an answer that was sent counts no longer.
  for (int i = 0; i < 20; ++i) {
    request.clear_events();
    request.add_events()->set_sequence(1);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
  }
  request.mutable_events(0)->set_sequence(1 << 20);
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(WorkerServiceTest, RequestsAreStoredInTheOrderSent) {
  constexpr int64_t kRequests = 3000;
  const auto stream = stub_->StreamEvents(&context_);
  std::thread writer([&] {
    for (int64_t i = 1; i <= kRequests; ++i) stream->Write(Batch(i));
    stream->WritesDone();
  });
  int64_t answers = 0;
  for (v1::StreamEventsResponse response; stream->Read(&response);) {
    // A request out of order would leave a gap in the sequence and be refused.
    EXPECT_EQ(response.refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED);
    EXPECT_EQ(response.acknowledged_sequence(), ++answers);
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, kRequests);
}

TEST_F(WorkerServiceTest, AtMostSixteenRequestsAreInFlight) {
  TestServer::HeldLoop held(server_);
  const auto stream = stub_->StreamEvents(&context_);
  // Few enough for the stream's window: a write beyond it waits until the server reads.
  constexpr int kRequests = EventStream::kMaxInFlight + 8;
  for (int i = 1; i <= kRequests; ++i) ASSERT_TRUE(stream->Write(Batch(i)));
  const auto queued = [this] { return server_.core().loop().queued(); };
  ASSERT_TRUE(TestServer::Await([&] { return queued() >= EventStream::kMaxInFlight; }));
  // The other requests arrived before these calls, so the server had time to read too many.
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    v1::Server described;
    EXPECT_TRUE(v1::AdministrationService::NewStub(server_.Connect())
                    ->GetServer(&context, {}, &described)
                    .ok());
    EXPECT_EQ(queued(), EventStream::kMaxInFlight);
  }
  held.Release();
  for (int i = 1; i <= kRequests; ++i) {
    v1::StreamEventsResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.acknowledged_sequence(), i);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, EventsThatCostMoreThanTheyHoldAreRefused) {
  v1::StreamEventsRequest request = Batch(1);
  request.set_lease_id(std::string(2000, 'x'));
  request.mutable_events(0)->set_trial(std::string(2000, 'x'));
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(request));
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_NE(response.refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED);
  EXPECT_EQ(response.lease_id().size(), 1000);
  EXPECT_EQ(response.trial().size(), 1000);

  for (int i = 0; i < 10'000; ++i) request.add_events();
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// The server keeps measurements and leases, and reads all progress between other calls.
TEST_F(WorkerServiceTest, CallOfAWorkerHasALimitedSize) {
  v1::SynchronizeRequest usual;
  usual.mutable_worker()->set_worker_id("n07-cpu-1");
  usual.mutable_worker()->set_max_pack_size(30);
  usual.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  usual.set_session("a");
  usual.mutable_measurements()->set_kernels("attention fused 3.05x");
  v1::SynchronizeRequest measured = usual, leased = usual, progressed = usual;
  measured.mutable_measurements()->set_kernels(std::string(5000, 'x'));
  for (int i = 0; i < 200; ++i) leased.add_leases();
  for (int i = 0; i < 20'000; ++i) progressed.add_progress();
  const auto call = [this](v1::SynchronizeRequest request, int64_t number) {
    grpc::ClientContext context;
    request.set_number(number);
    v1::SynchronizeResponse response;
    return stub_->Synchronize(&context, request, &response).error_code();
  };
  EXPECT_EQ(call(usual, 1), grpc::StatusCode::OK);
  EXPECT_EQ(call(measured, 2), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call(leased, 3), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call(progressed, 4), grpc::StatusCode::INVALID_ARGUMENT);
  // Unknown fields are left out.
  usual.GetReflection()->MutableUnknownFields(&usual)->AddLengthDelimited(
      100, std::string(2 << 20, 'x'));
  EXPECT_EQ(call(usual, 5), grpc::StatusCode::OK);
}

TEST_F(WorkerServiceTest, RequestsInFlightAreAnsweredAfterWritesDone) {
  TestServer::HeldLoop held(server_);
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(1)));
  stream->WritesDone();
  ASSERT_TRUE(TestServer::Await([this] { return server_.core().loop().queued() == 1; }));
  held.Release();
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acknowledged_sequence(), 1);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(WorkerServiceTest, UnstorableRequestEndsTheStream) {
  server_.core().Stop();
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(1)));
  v1::StreamEventsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is stopping; try again");
}

TEST_F(WorkerServiceTest, WorkerMayLeaveBeforeItsAnswers) {
  TestServer::HeldLoop held(server_);
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto stream = stub_->StreamEvents(&context);
    ASSERT_TRUE(stream->Write(Batch(1)));
    ASSERT_TRUE(TestServer::Await([&] { return server_.core().loop().queued() == i + 1; }));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  held.Release();  // the server answers streams that no longer exist
  server_.core().loop().Flush();
}

TEST_F(WorkerServiceTest, StoppingServerEndsEventStreamsAndUploads) {
  const auto stream = stub_->StreamEvents(&context_);
  ASSERT_TRUE(stream->Write(Batch(1)));
  v1::StreamEventsResponse acknowledged;
  ASSERT_TRUE(stream->Read(&acknowledged));
  grpc::ClientContext upload_context;
  v1::UploadArtifactResponse uploaded;
  const auto upload = stub_->UploadArtifact(&upload_context, &uploaded);
  ASSERT_TRUE(upload->Write(Header(SomeBytes(100))));
  ASSERT_TRUE(TestServer::Await([this] { return server_.UnfinishedArtifacts() == 1; }));

  server_.rpc().Stop(absl::Seconds(30));
  EXPECT_FALSE(stream->Read(&acknowledged));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server_.FinishedArtifacts(), 0);
  // The writing thread may discard its file shortly after the call has ended.
  EXPECT_TRUE(TestServer::Await([this] { return server_.UnfinishedArtifacts() == 0; }));
}

// A server without download threads, as if slow downloads occupied all of them.
class WithoutDownloadThreadsTest : public WorkerServiceTest {
 protected:
  WithoutDownloadThreadsTest() : WorkerServiceTest(Options()) {}
  static RpcServer::Options Options() {
    RpcServer::Options options;
    options.worker_transfer_threads = 0;
    return options;
  }
};

TEST_F(WithoutDownloadThreadsTest, UploadsNeedNoDownloadThread) {
  const std::string bytes = SomeBytes(1000);
  const grpc::Status status = Upload({Header(bytes), Data(bytes)});
  EXPECT_TRUE(status.ok()) << status.error_message();
}

class ImpatientServerTest : public WorkerServiceTest {
 protected:
  ImpatientServerTest() : WorkerServiceTest(Options()) {}
  static RpcServer::Options Options() {
    RpcServer::Options options;
    options.transfer_patience = absl::Seconds(2);
    return options;
  }
};

TEST_F(ImpatientServerTest, IdleUploadsEndAndMakeRoom) {
  struct IdleUpload {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::UploadArtifactRequest>> writer;
  };
  // One upload more than may begin.
  const int limit = TransferThreads::kStreamsOfAClient;
  std::vector<IdleUpload> idle(limit + 1);
  for (IdleUpload& upload : idle) {
    upload.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    upload.writer = stub_->UploadArtifact(&upload.context, &upload.response);
    ASSERT_TRUE(upload.writer->Write(Header(SomeBytes(100))));
    if (&upload == &idle[limit - 1]) {
      ASSERT_TRUE(TestServer::Await([&] { return server_.UnfinishedArtifacts() == limit; }));
    }
  }
  EXPECT_LE(server_.UnfinishedArtifacts(), limit);
  // Its turn comes when the others have ended.
  const std::string bytes = SomeBytes(1000);
  const grpc::Status stored = Upload({Header(bytes), Data(bytes)});
  EXPECT_TRUE(stored.ok()) << stored.error_message();
  for (IdleUpload& upload : idle) {
    const grpc::Status status = upload.writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_THAT(status.error_message(), HasSubstr("the client sent nothing of its upload for 2s"));
  }
  EXPECT_TRUE(TestServer::Await([this] { return server_.UnfinishedArtifacts() == 0; }));
}

TEST_F(WorkerServiceTest, DownloadReturnsTheUploadedBytes) {
  const std::string bytes = SomeBytes(3'000'000);
  const grpc::Status status =
      Upload({Header(bytes), Data(bytes.substr(0, 1 << 20)), Data(bytes.substr(1 << 20, 1 << 20)),
              Data(bytes.substr(2 << 20))});
  ASSERT_TRUE(status.ok()) << status.error_message();

  const auto reader = stub_->DownloadArtifact(&context_, DownloadOf(bytes));
  std::string back;
  v1::DownloadArtifactResponse part;
  while (reader->Read(&part)) {
    EXPECT_LE(part.data().size(), 1u << 20);
    back += part.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(back, bytes);
}

TEST_F(WorkerServiceTest, OneMessageMayBeAnUpload) {
  v1::UploadArtifactRequest whole = Header("bytes");
  whole.set_data("bytes");
  const grpc::Status status = Upload({whole});
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(server_.FinishedArtifacts(), 1);
}

TEST_F(WorkerServiceTest, SmallCheckpointComesWithItsEvent) {
  const auto stream = stub_->StreamEvents(&context_);
  const auto send = [&](const std::string& sha256, const std::string& bytes) {
    v1::StreamEventsRequest batch = Batch(1);
    v1::Event& event = *batch.mutable_events(0);
    event.set_step(1);
    event.mutable_checkpoint()->set_sha256(sha256);
    event.mutable_checkpoint()->set_size_bytes(5);
    (*batch.mutable_artifacts())[sha256] = bytes;
    v1::StreamEventsResponse response;
    EXPECT_TRUE(stream->Write(batch));
    EXPECT_TRUE(stream->Read(&response));
    return response;
  };
  const std::string sha256 = platform::Sha256Hex("bytes");
  EXPECT_EQ(send("../" + sha256, "bytes").refusal(), v1::StreamEventsResponse::INVALID);
  EXPECT_EQ(send(sha256, "bites").refusal(), v1::StreamEventsResponse::NOT_STORED);
  EXPECT_EQ(server_.FinishedArtifacts(), 0);
  const v1::StreamEventsResponse stored = send(sha256, "bytes");
  EXPECT_EQ(stored.refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED) << stored.detail();
  EXPECT_EQ(stored.acknowledged_sequence(), 1);
  EXPECT_EQ(server_.FinishedArtifacts(), 1);
}

// A message must not cost the disk many times its bytes.
TEST_F(WorkerServiceTest, ArtifactOfABatchIsStoredOnceForATrialAndNeedsTheLease) {
  const v1::Lease& lease = server_.LeaseOf(server_.AddExperiment("pair", 2) + "/trials/t0");
  v1::StreamEventsRequest batch;
  batch.set_lease_id(lease.lease_id());
  *batch.add_events() = CheckpointEvent(lease, 0, 1, 1, "bytes");
  *batch.add_events() = CheckpointEvent(lease, 0, 2, 1, "bytes");
  *batch.add_events() = CheckpointEvent(lease, 1, 1, 1, "bytes");
  (*batch.mutable_artifacts())[platform::Sha256Hex("bytes")] = "bytes";
  const auto stream = stub_->StreamEvents(&context_);
  const auto send = [&](int64_t token) {
    batch.set_fencing_token(token);
    v1::StreamEventsResponse response;
    EXPECT_TRUE(stream->Write(batch));
    EXPECT_TRUE(stream->Read(&response));
    return response;
  };
  EXPECT_EQ(send(lease.fencing_token() + 1).refusal(), v1::StreamEventsResponse::STALE_LEASE);
  EXPECT_EQ(server_.FinishedArtifacts(), 0);
  const v1::StreamEventsResponse response = send(lease.fencing_token());
  EXPECT_EQ(response.acknowledged_sequence(), 2) << response.detail();
  ASSERT_EQ(response.others_size(), 1);
  EXPECT_EQ(response.others(0).acknowledged_sequence(), 1) << response.others(0).detail();
  EXPECT_EQ(server_.FinishedArtifacts(), 2);
}

TEST_F(WorkerServiceTest, UploadsThatContradictTheirHeaderAreRefused) {
  EXPECT_EQ(Upload({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Data("x")}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Header("x"), Header("x")}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({v1::UploadArtifactRequest()}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Header("x"), Data("")}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::UploadArtifactRequest part = Header("xy");
  part.set_data("x");
  EXPECT_EQ(Upload({part, part}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({part}).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Upload({Header("xy"), Data("x")}).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Upload({Header("xy"), Data("xyz")}).error_code(), grpc::StatusCode::DATA_LOSS);
  v1::UploadArtifactRequest stale = Header("x");
  stale.mutable_header()->set_fencing_token(0);
  EXPECT_EQ(Upload({stale, Data("x")}).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status large =
      Upload({Header(SomeBytes(2 << 20)), Data(std::string((1 << 20) + 1, 'x'))});
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(large.error_message(), HasSubstr("data: is 1048577 bytes"));
  EXPECT_EQ(server_.FinishedArtifacts(), 0);
}

TEST_F(WorkerServiceTest, CancelledUploadStoresNothing) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    v1::UploadArtifactResponse response;
    const auto writer = stub_->UploadArtifact(&context, &response);
    writer->Write(Header(SomeBytes(1000)));
    writer->Write(Data("part"));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_.rpc().Stop(absl::Seconds(30));
  EXPECT_EQ(server_.FinishedArtifacts(), 0);
  EXPECT_EQ(server_.UnfinishedArtifacts(), 0);
}

TEST_F(WorkerServiceTest, CancelledDownloadReleasesItsThread) {
  const std::string bytes(32 << 20, 'x');
  server_.PutModel(kTrial, 1, bytes);
  const v1::DownloadArtifactRequest request = DownloadOf(bytes);
  // More downloads than threads: a cancelled download must release its thread.
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    const auto reader = stub_->DownloadArtifact(&context, request);
    v1::DownloadArtifactResponse part;
    ASSERT_TRUE(reader->Read(&part));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(WorkerServiceTest, DownloadOfUnknownArtifactIsNotFound) {
  const auto reader = stub_->DownloadArtifact(&context_, DownloadOf("nobody sent it"));
  v1::DownloadArtifactResponse part;
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WorkerServiceTest, CancelledCallGetsNoLease) {
  for (const char* worker : {"stays", "goes"}) {
    ASSERT_EQ(server_.calls().Register(worker), absl::OkStatus());
  }
  grpc::ClientContext stays, goes;
  v1::SynchronizeResponse given, refused;
  std::vector<std::thread> workers;
  const auto ask = [&](const char* worker, grpc::ClientContext& context,
                       v1::SynchronizeResponse& response) {
    v1::SynchronizeRequest request = server_.calls().CallOf(worker);
    request.set_wants_lease(true);
    request.mutable_wait()->set_seconds(60);
    stub_->Synchronize(&context, request, &response);
  };
  workers.emplace_back([&] { ask("goes", goes, refused); });
  ASSERT_TRUE(TestServer::Await([this] { return server_.core().waiting_calls() == 1; }));
  workers.emplace_back([&] { ask("stays", stays, given); });
  ASSERT_TRUE(TestServer::Await([this] { return server_.core().waiting_calls() == 2; }));
  goes.TryCancel();
  workers.front().join();
  // These calls follow the cancellation on the same connection. Once they are answered, the server
  // has seen it.
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::SynchronizeResponse heard;
    stub_->Synchronize(&context, {}, &heard);
  }
  const std::string experiment = server_.calls().Create("more", 1, 2);
  workers.back().join();
  EXPECT_EQ(given.lease().trials_size(), 1);
  const v1::TrialCounts counts = server_.core().reads().GetExperiment(experiment)->trials();
  EXPECT_EQ(counts.running(), 1);
  EXPECT_EQ(counts.queued(), 1) << "no lease was given to the one that had gone";
}

// A fleet so large for its heartbeat interval that the server holds heartbeats' answers.
class LargeFleetTest : public ::testing::Test {
 protected:
  LargeFleetTest()
      : server_(ResolveSimply, [](TestCoordinator& coordinator) {
          coordinator.options().heartbeat_interval = absl::Milliseconds(1);
          coordinator.RunClock();
        }) {
    server_.Serve();
    stub_ = v1::WorkerService::NewStub(server_.Connect());
    // Posted without waiting, so that a few groups of commands hold all of them.
    for (int i = 0; i < kWorkers; ++i) {
      v1::SynchronizeRequest request;
      request.mutable_worker()->set_worker_id(absl::StrCat("w", i));
      request.mutable_worker()->set_max_pack_size(1);
      request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
      PostCall(server_.core(), request, "anonymous",
               [](const auto& registered) { EXPECT_EQ(registered.status(), absl::OkStatus()); });
    }
    server_.core().loop().Flush();
    // From now on, the server holds a heartbeat's answer for four to five seconds.
    server_.calls().Create("sort", 1, 1);
    EXPECT_EQ(server_.calls().Register("w0"), absl::OkStatus());
    lease_ = server_.calls().Acquire("w0");
  }

  // Sends a heartbeat of the worker that holds the lease, in a separate thread.
  std::future<grpc::Status> Beat(absl::Duration wait) {
    return std::async(std::launch::async, [this, wait] {
      v1::SynchronizeRequest request = server_.calls().CallOf("w0", {lease_});
      request.mutable_wait()->set_seconds(absl::ToInt64Seconds(wait));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
      return stub_->Synchronize(&context, request, &heard_);
    });
  }

  static constexpr int kWorkers = 10'000;

  TestServer server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  v1::Lease lease_;
  v1::SynchronizeResponse heard_;
};

TEST_F(LargeFleetTest, CancellationEndsAHeldCall) {
  auto answer = Beat(absl::Seconds(20));
  ASSERT_TRUE(TestServer::Await([this] { return server_.core().waiting_calls() == 1; }));
  const absl::Time start = absl::Now();
  ASSERT_TRUE(server_.calls().CancelTrial(lease_.trials(0).trial()).ok());
  EXPECT_TRUE(answer.get().ok());
  // Less than the minimum hold of four seconds, and within the two seconds of GUARANTEES.md.
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_THAT(heard_.leases(0).cancelled_trials(), testing::ElementsAre(lease_.trials(0).trial()));
}

TEST_F(LargeFleetTest, StoppingServerAnswersHeldCalls) {
  auto answer = Beat(absl::Seconds(20));
  ASSERT_TRUE(TestServer::Await([this] { return server_.core().waiting_calls() == 1; }));
  const absl::Time start = absl::Now();
  server_.Close();
  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST_F(LargeFleetTest, WaitIsLimited) {
  EXPECT_TRUE(Beat(absl::ZeroDuration()).get().ok()) << "it does not wait";
  const grpc::Status status = Beat(absl::Seconds(61)).get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("wait: is 61 s"));
}

TEST_F(WorkerServiceTest, EscapesControlCharactersFromWorkers) {
  v1::SynchronizeRequest registration;
  registration.mutable_worker()->set_worker_id("n07-cpu-1");
  registration.mutable_worker()->set_max_pack_size(4);
  registration.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  registration.mutable_worker()->mutable_provenance()->set_device("\x1b]0;title\x07");
  v1::SynchronizeResponse registered;
  grpc::ClientContext register_context;
  ASSERT_TRUE(stub_->Synchronize(&register_context, registration, &registered).ok());
  std::vector<std::string> devices;
  const v1::ListWorkersResponse workers = server_.core().reads().ListWorkers();
  for (const v1::Worker& worker : workers.workers()) {
    devices.push_back(worker.provenance().device());
  }
  EXPECT_THAT(devices, testing::Contains("\\x1b]0;title\\x07"));

  const auto stream = stub_->StreamEvents(&context_);
  v1::StreamEventsRequest batch = Batch(1);
  batch.mutable_events(0)->mutable_log_line()->set_text("50 %\rdone\n\tat line 3");
  ASSERT_TRUE(stream->Write(batch));
  v1::StreamEventsResponse stored;
  ASSERT_TRUE(stream->Read(&stored));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());

  v1::SynchronizeRequest call = server_.calls().CallOf("inside-1");
  v1::ReleasedLease& release = *call.add_released();
  release.set_lease_id(server_.LeaseOf(kTrial).lease_id());
  release.set_fencing_token(server_.LeaseOf(kTrial).fencing_token());
  release.set_reason("\x1b[2J");
  v1::SynchronizeResponse released;
  grpc::ClientContext release_context;
  ASSERT_TRUE(stub_->Synchronize(&release_context, call, &released).ok());
  const std::vector<v1::Event> history = server_.calls().History("experiments/grid-1");
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[1].log_line().text(), "50 %\\x0ddone\n\tat line 3");
  EXPECT_THAT(history[2].state_change().reason(), HasSubstr("\\x1b[2J"));
}

TEST_F(WorkerServiceTest, SynchronizeReturnsTheCoresAnswers) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id("n07-cpu-1");
  request.mutable_worker()->set_max_pack_size(4);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  request.set_wants_lease(true);
  v1::SynchronizeResponse response;
  const auto call = [&] {
    grpc::ClientContext context;
    return stub_->Synchronize(&context, request, &response);
  };
  ASSERT_TRUE(call().ok());
  EXPECT_EQ(response.lease_duration().seconds(), 30);
  EXPECT_THAT(response.no_lease_reason(), HasSubstr("no trials are queued"));

  request.mutable_wait()->set_seconds(61);
  EXPECT_EQ(call().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(call().error_message(), HasSubstr("wait: is 61 s"));
  request.clear_wait();
  request.set_session(std::string(61, 's'));
  EXPECT_EQ(call().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.clear_session();
  request.mutable_worker()->set_worker_id("N07");
  EXPECT_EQ(call().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WorkerServiceTest, LaterProcessWithAnIdFencesTheEarlierOne) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id("n07-cpu-1");
  request.mutable_worker()->set_max_pack_size(1);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  const auto call = [&](const std::string& session, int64_t number) {
    request.set_session(session);
    request.set_number(number);
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    return stub_->Synchronize(&context, request, &response);
  };
  ASSERT_TRUE(call("first", 1).ok());
  EXPECT_TRUE(call("second", 1).ok());
  const grpc::Status fenced = call("first", 2);
  EXPECT_EQ(fenced.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(fenced.error_message(), HasSubstr("another process has begun to work as"));
  EXPECT_TRUE(call("second", 2).ok());

  ASSERT_TRUE(call("third", 1).ok());
  EXPECT_EQ(call("first", 3).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(call("second", 3).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(call("third", 2).ok());
}

// Otherwise a worker that has stopped would count as lost.
TEST_F(WorkerServiceTest, CallThatTheLastOneOvertookRegistersNoWorker) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id("n07-cpu-1");
  request.mutable_worker()->set_max_pack_size(1);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  const auto call = [&](const std::string& session, int64_t number, bool stopping) {
    request.set_session(session);
    request.set_number(number);
    request.set_stopping(stopping);
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    return stub_->Synchronize(&context, request, &response);
  };
  ASSERT_TRUE(call("first", 1, false).ok());
  ASSERT_TRUE(call("first", 3, true).ok());
  EXPECT_EQ(call("first", 2, false).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(call("first", 4, true).ok()) << "the answer to the last call was lost";
  EXPECT_TRUE(call("second", 1, false).ok()) << "another process with the id";
}

// Workers of 0.2 register first, with version 3 of the API.
TEST_F(WorkerServiceTest, OlderWorkersAreToldToUpgrade) {
  v1::RegisterWorkerRequest request;
  request.mutable_worker()->set_worker_id("n07-cpu-1");
  request.mutable_worker()->set_max_pack_size(4);
  request.mutable_worker()->set_api_version(3);
  v1::RegisterWorkerResponse response;
  const grpc::Status status = stub_->RegisterWorker(&context_, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(),
            absl::StrCat("the worker has version 3 of the worker API, the server ",
                         platform::kWorkerApiVersion, "; upgrade the worker"));
}

}  // namespace
}  // namespace lengthwise::server
