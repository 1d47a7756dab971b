// WatchExperiment over a real connection, as clients see it.
#include "server/api/watch_reactor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/testing/watch_fixture.h"

namespace lengthwise::server {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Positions of the events that tests append, counted from 1.
std::vector<int64_t> Positions(int64_t from, int64_t to) {
  std::vector<int64_t> positions;
  for (int64_t i = from; i < to; ++i) positions.push_back(i + kFirst - 1);
  return positions;
}

TEST_F(WatchTest, LateWatcherSeesHistoryThenLiveEvents) {
  // Several pages.
  AppendLines(0, 1000);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(1000));
  AppendLines(1000, 1030);
  ASSERT_TRUE(watch.ReadEvents(1030));
  EndAllTrials();
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_EQ(watch.positions(), Positions(1, 1031));
  EXPECT_EQ(watch.texts()[0], "line 0");
  EXPECT_EQ(watch.texts()[1029], "line 1029");
  EXPECT_EQ(watch.next_position(), kFirst + 1030 + 2) << "behind the end of the two trials";
}

TEST_F(WatchTest, PagesOfAReaderThatIsBehindAreLargerWhileTheirBudgetHasRoom) {
  AppendLines(0, 3000);
  const auto largest_page = [this] {
    Watch watch(*stub_, {});
    size_t largest = 0;
    while (watch.caught_up() == 0) {
      const size_t before = watch.positions().size();
      EXPECT_TRUE(watch.ReadOne());
      largest = std::max(largest, watch.positions().size() - before);
    }
    watch.Cancel();
    EXPECT_TRUE(TestServer::Await([this] { return Subscriptions() == 0; }));  // has no page left
    return largest;
  };
  EXPECT_EQ(largest_page(), 400U);
  // Each client may have half of what is left, so that many together leave too little for a page.
  std::vector<AnswerBudget::Share> taken;
  for (int client = 0; client < 300; ++client) {
    auto share =
        streams_->large_pages().TakeSize(absl::StrCat(client), /*method=*/"", /*size=*/128 << 10);
    if (share.ok()) taken.push_back(*std::move(share));
  }
  EXPECT_EQ(largest_page(), 100U);
}

TEST_F(WatchTest, CaughtUpComesOnceAfterHistory) {
  AppendLines(0, 250);
  Watch watch(*stub_, {});
  while (watch.caught_up() == 0) ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.positions().size(), 250u);
  AppendLines(250, 500);
  EndAllTrials();
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_EQ(watch.caught_up(), 1);
  EXPECT_EQ(watch.events_at_caught_up(), 250u);
  EXPECT_EQ(watch.positions(), Positions(1, 501));
}

TEST_F(WatchTest, EmptyHistoryIsCaughtUpAtOnce) {
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.caught_up(), 1);
  EXPECT_TRUE(watch.positions().empty());
}

TEST_F(WatchTest, EndedExperimentStreamsItsHistory) {
  AppendLines(0, 3);
  EndAllTrials();
  Watch watch(*stub_, {});
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_EQ(watch.positions(), Positions(1, 4));
  EXPECT_EQ(watch.caught_up(), 1);
}

TEST_F(WatchTest, FollowStaysOpenAfterTheEnd) {
  EndAllTrials();
  v1::WatchExperimentRequest request;
  request.set_follow(true);
  Watch watch(*stub_, request);
  while (watch.caught_up() == 0) ASSERT_TRUE(watch.ReadOne());
  // A retried trial runs and ends again.
  const int64_t before = watch.next_position();
  ASSERT_TRUE(server_.calls().Retry(kExperiment, {v1::CANCELLED}).ok());
  while (watch.next_position() < before + 2) ASSERT_TRUE(watch.ReadOne());
  watch.Cancel();
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(WatchTest, ConcurrentWatchersSeeTheSameEvents) {
  AppendLines(0, 500);
  Watch first(*stub_, {});
  Watch second(*stub_, {});
  std::thread writer([this] {
    AppendLines(500, 3000);
    EndAllTrials();
  });
  std::thread reader([&] { first.ReadToEnd(); });
  second.ReadToEnd();
  reader.join();
  writer.join();
  EXPECT_TRUE(first.Finish().ok());
  EXPECT_TRUE(second.Finish().ok());
  EXPECT_EQ(first.positions(), Positions(1, 3001));
  EXPECT_EQ(second.positions(), Positions(1, 3001));
  EXPECT_EQ(first.caught_up(), 1);
  EXPECT_EQ(second.caught_up(), 1);
}

TEST_F(WatchTest, ReconnectMissesAndRepeatsNoEvent) {
  std::thread writer([this] {
    AppendLines(0, 1000);
    EndAllTrials();
  });
  std::vector<int64_t> all;
  v1::WatchExperimentRequest request;
  for (int connection = 0;; ++connection) {
    Watch watch(*stub_, request);
    const bool more = connection < 20 && watch.ReadEvents(30);
    if (!more) watch.ReadToEnd();
    all.insert(all.end(), watch.positions().begin(), watch.positions().end());
    if (!more) {
      EXPECT_TRUE(watch.Finish().ok());
      break;
    }
    request.set_start_position(watch.next_position());
    watch.Cancel();
    watch.Finish();
  }
  writer.join();
  EXPECT_EQ(all, Positions(1, 1001));
}

TEST_F(WatchTest, SlowReaderHasACursorAndNoQueue) {
  // 100 events of 512 KiB are 50 MiB, far more than a connection buffers.
  Watch slow(*stub_, {});
  ASSERT_TRUE(slow.ReadOne());
  for (int i = 0; i < 100; ++i) server_.Append(Large());
  EndAllTrials();
  // Another watcher is not delayed.
  v1::WatchExperimentRequest tail;
  tail.set_start_position(kFirst + 99);
  Watch quick(*stub_, tail);
  const int64_t reads = server_.read_gate().reads();
  quick.ReadToEnd();
  EXPECT_TRUE(quick.Finish().ok());
  EXPECT_EQ(quick.positions(), Positions(100, 101));
  // The server does not read ahead for the slow watcher: pages hold one event, and most are still
  // unread.
  EXPECT_LT(server_.read_gate().reads() - reads, 50);
  slow.ReadToEnd();
  EXPECT_TRUE(slow.Finish().ok());
  EXPECT_EQ(slow.positions(), Positions(1, 101));
  EXPECT_GT(server_.read_gate().reads() - reads, 50);
}

TEST_F(WatchTest, ReportsTheSlowestWatchersLag) {
  Watch watch(*stub_, {});
  while (watch.caught_up() == 0) ASSERT_TRUE(watch.ReadOne());
  EXPECT_TRUE(AwaitBehind(0));
  EXPECT_EQ(streams_->ReadLags(absl::Now()).longest, absl::ZeroDuration());
  // 50 MiB, as above.
  const absl::Time before = absl::Now();
  for (int i = 0; i < 100; ++i) server_.Append(Large());
  const absl::Time after = absl::Now();
  ASSERT_TRUE(AwaitBehind(1));
  // Counted from the first event that the watcher did not get.
  const absl::Time later = after + absl::Hours(1);
  EXPECT_GE(streams_->ReadLags(later).longest, absl::Hours(1));
  EXPECT_LE(streams_->ReadLags(later).longest, later - before);
  ASSERT_TRUE(watch.ReadEvents(100));
  EXPECT_TRUE(AwaitBehind(0));
}

TEST_F(WatchTest, ManyCommitsAreReadTogether) {
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadOne());
  const int64_t before = server_.read_gate().reads();
  // The watcher's next read waits until each line is stored, in a commit of its own.
  server_.read_gate().Hold();
  for (int line = 0; line < 300; ++line) AppendLines(line, line + 1);
  server_.read_gate().Release();
  int responses = 0;
  for (; watch.positions().size() < 300; ++responses) ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(responses, 2);
  EXPECT_THAT(server_.read_gate().reads() - before, AnyOf(2, 3))
      << "the first page holds 100 events, the next 400; another read may have found nothing more";
  EXPECT_EQ(watch.positions(), Positions(1, 301));
}

TEST_F(WatchTest, AttentionMapsAndProjectionsCanBeLeftOut) {
  v1::Event projection;
  projection.set_trial(NameOf(0));
  projection.mutable_projection()->set_fitted_length(5);
  projection.mutable_projection()->set_length(5);
  projection.mutable_projection()->set_depths(1);
  projection.mutable_projection()->set_sequences(1);
  projection.mutable_projection()->set_tokens(1);
  projection.mutable_projection()->set_coordinates(std::string(8, 'c'));
  projection.mutable_projection()->add_explained_variance(0.5);
  projection.mutable_projection()->add_explained_variance(0.25);
  for (const v1::Event& large : {Large(), projection, Large()}) {
    server_.Append(large);
    server_.Append(Line("after"));
  }
  EndAllTrials();
  v1::WatchExperimentRequest request;
  request.set_omit_attention_maps(true);
  Watch watch(*stub_, request);
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_THAT(watch.positions(), ElementsAre(kFirst + 1, kFirst + 3, kFirst + 5));
  EXPECT_EQ(watch.caught_up(), 1);
}

TEST_F(WatchTest, UnknownExperimentsAndBadRequestsAreRefused) {
  v1::WatchExperimentRequest request;
  request.set_name("experiments/none-1");
  Watch unknown(*stub_, request);
  EXPECT_FALSE(unknown.ReadOne());
  EXPECT_EQ(unknown.Finish().error_code(), grpc::StatusCode::NOT_FOUND);

  request.set_name("none");
  Watch malformed(*stub_, request);
  EXPECT_FALSE(malformed.ReadOne());
  const grpc::Status status = malformed.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("name: is \"none\""));

  request.set_name(kExperiment);
  request.set_start_position(-1);
  Watch negative(*stub_, request);
  EXPECT_FALSE(negative.ReadOne());
  EXPECT_EQ(negative.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  // No event will ever be there first, so the watch would be silent for ever.
  for (const bool log_only : {false, true}) {
    request.set_log_only(log_only);
    request.set_start_position(kFirst + 1);
    Watch beyond(*stub_, request);
    EXPECT_FALSE(beyond.ReadOne());
    EXPECT_THAT(beyond.Finish().error_message(),
                HasSubstr(absl::StrCat("start_position: got ", kFirst + 1, ", expected at most ",
                                       kFirst, ", the end of the log")));
  }
}

TEST_F(WatchTest, DeletionEndsTheStreamWithNotFound) {
  AppendLines(0, 3);
  // Only an experiment without unfinished trials can be deleted, so the stream must outlive its
  // trials.
  v1::WatchExperimentRequest request;
  request.set_follow(true);
  Watch watch(*stub_, request);
  ASSERT_TRUE(watch.ReadEvents(3));
  server_.Remove(kExperiment);
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WatchTest, CancelledWatchersEndTheirSubscriptions) {
  AppendLines(0, 1000);
  for (int i = 0; i < 30; ++i) {
    Watch watch(*stub_, {});
    ASSERT_TRUE(watch.ReadEvents(30 * i));  // in the history, during a write
    watch.Cancel();
    watch.ReadToEnd();
    EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(TestServer::Await([this] { return Subscriptions() == 0; }));
}

TEST_F(WatchTest, CancelledSlowReaderUnsubscribes) {
  for (int i = 0; i < 50; ++i) server_.Append(Large());
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(1));
  watch.Cancel();
  EXPECT_TRUE(TestServer::Await([this] { return Subscriptions() == 0; }));
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(WatchTest, StoppingServerReturnsThePositionToResume) {
  AppendLines(0, 3);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(3));
  server_.rpc().Stop(absl::Seconds(30));
  watch.ReadToEnd();
  const grpc::Status status = watch.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("start_position ", kFirst + 3)));
  EXPECT_EQ(Subscriptions(), 0);
}

TEST_F(WatchTest, StopDoesNotWaitForASlowReader) {
  for (int i = 0; i < 50; ++i) server_.Append(Large());
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(1));
  server_.rpc().Stop(absl::Milliseconds(100));  // returns although a write is outstanding
  EXPECT_EQ(Subscriptions(), 0);
}

TEST_F(WatchTest, WatchersMayConnectWhileTheServerStops) {
  AppendLines(0, 100);
  std::atomic<int> watched = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([this, i, &watched] {
      while (true) {
        Watch watch(*stub_, {});
        watch.ReadEvents(20 + i);
        watch.Cancel();
        watch.ReadToEnd();
        if (watch.Finish().error_code() == grpc::StatusCode::UNAVAILABLE) return;
        ++watched;
      }
    });
  }
  std::thread writer([this] { AppendLines(100, 1000); });
  EXPECT_TRUE(TestServer::Await([&] { return watched > 20; }));
  server_.rpc().Stop(absl::Seconds(30));
  for (std::thread& client : clients) client.join();
  writer.join();
  EXPECT_EQ(Subscriptions(), 0);
}

TEST_F(WatchTest, LogHasLogLinesAndChangesOfState) {
  AppendLines(0, 2);
  server_.Append(PointsEvent(server_.LeaseOf(NameOf(0)), 0, 0, 1));
  AppendLines(2, 3);
  EndAllTrials();
  v1::WatchExperimentRequest request;
  request.set_log_only(true);
  Watch watch(*stub_, request);
  watch.ReadToEnd();
  EXPECT_THAT(watch.positions(), ElementsAre(kFirst, kFirst + 1, kFirst + 3));
  EXPECT_EQ(watch.changes(), 4) << "both trials began and ended";
  EXPECT_EQ(watch.caught_up(), 1);
}

}  // namespace
}  // namespace lengthwise::server
