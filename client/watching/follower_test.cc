#include "client/watching/follower.h"

#include "absl/time/clock.h"
#include "client/connection/testing/faulty_server.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

v1::WatchExperimentResponse Response(const std::vector<int64_t>& positions, bool caught_up) {
  v1::WatchExperimentResponse response;
  for (const int64_t position : positions) response.add_events()->set_position(position);
  response.set_next_position(positions.empty() ? 0 : positions.back() + 1);
  response.set_caught_up(caught_up);
  return response;
}

struct Everything {
  std::vector<int64_t> positions;
  int caught_up = 0;
  absl::Status end;
};

Everything ReadToEnd(FaultyServer& server) {
  Connection connection(server.address());
  v1::WatchExperimentRequest request;
  request.set_name("experiments/e-1");
  request.set_include_progress(true);
  Follower follower(connection, request);
  Everything everything;
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() < deadline) {
    const Follower::Update update = follower.Next(absl::Seconds(30));
    if (update.end.has_value()) {
      everything.end = *update.end;
      return everything;
    }
    if (!update.response.has_value()) break;
    for (const auto& event : update.response->events()) {
      everything.positions.push_back(event.position());
    }
    everything.caught_up += update.response->caught_up();
  }
  everything.end = absl::DeadlineExceededError("the test waited too long");
  return everything;
}

TEST(FollowerTest, ReadsHistoryThenLiveToTheEnd) {
  FaultyServer server;
  server.AnswerWatchOnce({Response({1, 4}, true), Response({9}, false)});
  const Everything everything = ReadToEnd(server);
  EXPECT_TRUE(everything.end.ok()) << everything.end;
  EXPECT_EQ(everything.positions, (std::vector<int64_t>{1, 4, 9}));
  EXPECT_TRUE(server.Requests<v1::WatchExperimentRequest>("WatchExperiment")[0].include_progress());
}

// gRPC cancels streams when a server's grace period to stop is over.
TEST(FollowerTest, ResumesAfterServerCancelsTheStream) {
  FaultyServer server;
  server.AnswerWatchOnce({Response({1, 2}, true)}, grpc::Status(grpc::StatusCode::CANCELLED, ""));
  server.AnswerWatchOnce({Response({3}, false)});
  const Everything everything = ReadToEnd(server);
  EXPECT_TRUE(everything.end.ok()) << everything.end;
  EXPECT_EQ(everything.positions, (std::vector<int64_t>{1, 2, 3}));
}

TEST(FollowerTest, ResumesBrokenStreamWithoutGapOrDuplicate) {
  FaultyServer server;
  const grpc::Status broken(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  server.AnswerWatchOnce({Response({1, 2}, true), Response({3}, false)}, broken);
  server.AnswerWatchOnce({}, broken);
  // The server sends duplicates.
  server.AnswerWatchOnce({Response({3, 4}, true)});
  const Everything everything = ReadToEnd(server);
  EXPECT_TRUE(everything.end.ok()) << everything.end;
  EXPECT_EQ(everything.positions, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(everything.caught_up, 1);
  const auto requests = server.Requests<v1::WatchExperimentRequest>("WatchExperiment");
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].start_position(), 4);
  EXPECT_EQ(requests[2].start_position(), 4);
}

TEST(FollowerTest, EndsAtOnceWithoutAnyAnswer) {
  Connection connection("127.0.0.1:1");
  Follower follower(connection, v1::WatchExperimentRequest());
  const Follower::Update update = follower.Next(absl::Seconds(30));
  ASSERT_TRUE(update.end.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*update.end)) << *update.end;
}

TEST(FollowerTest, PermanentErrorEndsTheStream) {
  FaultyServer server;
  server.AnswerWatchOnce({Response({1}, true)}, {grpc::StatusCode::NOT_FOUND, "deleted"});
  const Everything everything = ReadToEnd(server);
  EXPECT_TRUE(absl::IsNotFound(everything.end)) << everything.end;
}

}  // namespace
}  // namespace lengthwise::client
