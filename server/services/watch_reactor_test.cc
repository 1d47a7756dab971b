// WatchExperiment over a real connection: what clients see, whatever they and the server do
// meanwhile.
#include "server/services/watch_reactor.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/services/watch_fixture.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Positions(int64_t from, int64_t to) {
  std::vector<int64_t> positions;
  for (int64_t i = from; i < to; ++i) positions.push_back(i);
  return positions;
}

TEST_F(WatchTest, ALateWatcherSeesTheWholeHistoryThenLiveThenTheEnd) {
  coordinator_.set_page_limit(7);
  AppendLines(0, 100);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(100));
  AppendLines(100, 130);
  ASSERT_TRUE(watch.ReadEvents(130));
  EndAllTrials();
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_EQ(watch.positions(), Positions(1, 131));
  EXPECT_EQ(watch.texts()[0], "line 0");
  EXPECT_EQ(watch.texts()[129], "line 129");
  EXPECT_EQ(watch.next_position(), 131);
}

TEST_F(WatchTest, CaughtUpComesOnceAfterTheHistory) {
  coordinator_.set_page_limit(10);
  AppendLines(0, 25);
  Watch watch(*stub_, {});
  while (watch.caught_up() == 0) ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.positions().size(), 25u);
  AppendLines(25, 50);
  EndAllTrials();
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_EQ(watch.caught_up(), 1);
  EXPECT_EQ(watch.events_at_caught_up(), 25u);
  EXPECT_EQ(watch.positions(), Positions(1, 51));
}

TEST_F(WatchTest, AnEmptyHistoryIsCaughtUpAtOnce) {
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.caught_up(), 1);
  EXPECT_TRUE(watch.positions().empty());
}

TEST_F(WatchTest, AnEndedExperimentGivesItsHistoryAndEnds) {
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
  ASSERT_TRUE(watch.ReadOne());
  AppendLines(0, 2);
  ASSERT_TRUE(watch.ReadEvents(2));
  watch.Cancel();
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(WatchTest, TwoWatchersSeeTheSameWhileEventsArePouringIn) {
  coordinator_.set_page_limit(13);
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

TEST_F(WatchTest, AReconnectFromNextPositionMissesAndRepeatsNothing) {
  coordinator_.set_page_limit(10);
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

TEST_F(WatchTest, ASlowReaderIsACursorAndNotAQueue) {
  // 200 events of 512 KiB are 100 MiB: far beyond what a connection buffers.
  Watch slow(*stub_, {});
  ASSERT_TRUE(slow.ReadOne());
  coordinator_.set_page_limit(1);
  const std::string text(512 << 10, 'x');
  for (int i = 0; i < 200; ++i) coordinator_.Append(Line(text));
  EndAllTrials();
  // Another watcher is not held up.
  v1::WatchExperimentRequest tail;
  tail.set_start_position(200);
  Watch quick(*stub_, tail);
  quick.ReadToEnd();
  EXPECT_TRUE(quick.Finish().ok());
  EXPECT_THAT(quick.positions(), ElementsAre(200));
  // The slow one was not read ahead for: pages of one event, most of them still unread.
  EXPECT_LT(coordinator_.reads(), 100);
  slow.ReadToEnd();
  EXPECT_TRUE(slow.Finish().ok());
  EXPECT_EQ(slow.positions(), Positions(1, 201));
}

TEST_F(WatchTest, TheLagIsThatOfAWatcherWhoDoesNotRead) {
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadOne());
  EXPECT_TRUE(AwaitBehind(0));
  EXPECT_EQ(streams_->ReadLags(absl::Now()).longest, absl::ZeroDuration());
  // 100 MiB, as above.
  const std::string text(512 << 10, 'x');
  const absl::Time before = absl::Now();
  for (int i = 0; i < 200; ++i) coordinator_.Append(Line(text));
  const absl::Time after = absl::Now();
  ASSERT_TRUE(AwaitBehind(1));
  // From the first that it did not get.
  const absl::Time later = after + absl::Hours(1);
  EXPECT_GE(streams_->ReadLags(later).longest, absl::Hours(1));
  EXPECT_LE(streams_->ReadLags(later).longest, later - before);
  ASSERT_TRUE(watch.ReadEvents(200));
  EXPECT_TRUE(AwaitBehind(0));
}

TEST_F(WatchTest, ManyCommitsAreReadTogether) {
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadOne());
  const int64_t before = coordinator_.reads();
  AppendLines(0, 5000);
  ASSERT_TRUE(watch.ReadEvents(5000));
  EXPECT_LT(coordinator_.reads() - before, 5000);
  EXPECT_EQ(watch.positions(), Positions(1, 5001));
}

TEST_F(WatchTest, AttentionMapsAndProjectionsCanBeLeftOut) {
  coordinator_.set_page_limit(1);
  for (int i = 0; i < 3; ++i) {
    v1::Event event;
    event.set_trial(TrialName(0));
    if (i == 1) {
      event.mutable_projection()->set_length(5);
    } else {
      event.mutable_attention_map()->set_length(5);
    }
    coordinator_.Append(event);
    coordinator_.Append(Line("after"));
  }
  EndAllTrials();
  v1::WatchExperimentRequest request;
  request.set_omit_attention_maps(true);
  Watch watch(*stub_, request);
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
  EXPECT_THAT(watch.positions(), ElementsAre(2, 4, 6));
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
}

TEST_F(WatchTest, ADeletedExperimentEndsTheStreamWithNotFound) {
  AppendLines(0, 3);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(3));
  coordinator_.Remove(kExperiment);
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WatchTest, CancelledWatchersEndTheirSubscriptions) {
  coordinator_.set_page_limit(1);
  AppendLines(0, 200);
  for (int i = 0; i < 30; ++i) {
    Watch watch(*stub_, {});
    ASSERT_TRUE(watch.ReadEvents(i));  // in the history, in the middle of a write
    watch.Cancel();
    watch.ReadToEnd();
    EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(coordinator_.WaitFor([this] { return coordinator_.subscriptions() == 0; }));
}

TEST_F(WatchTest, ACancelledSlowReaderEndsItsSubscription) {
  const std::string text(512 << 10, 'x');
  for (int i = 0; i < 50; ++i) coordinator_.Append(Line(text));
  coordinator_.set_page_limit(1);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(1));
  watch.Cancel();
  EXPECT_TRUE(coordinator_.WaitFor([this] { return coordinator_.subscriptions() == 0; }));
  watch.ReadToEnd();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(WatchTest, AStoppingServerSaysWhereToGoOn) {
  AppendLines(0, 3);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(3));
  server_->Stop(absl::Seconds(30));
  watch.ReadToEnd();
  const grpc::Status status = watch.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("start_position 4"));
  EXPECT_EQ(coordinator_.subscriptions(), 0);
}

TEST_F(WatchTest, AStoppingServerDoesNotWaitForASlowReader) {
  const std::string text(512 << 10, 'x');
  for (int i = 0; i < 100; ++i) coordinator_.Append(Line(text));
  coordinator_.set_page_limit(1);
  Watch watch(*stub_, {});
  ASSERT_TRUE(watch.ReadEvents(1));
  server_->Stop(absl::Milliseconds(100));  // returns, though a write is outstanding
  EXPECT_EQ(coordinator_.subscriptions(), 0);
}

TEST_F(WatchTest, WatchersMayComeAndGoWhileTheServerStops) {
  coordinator_.set_page_limit(3);
  AppendLines(0, 100);
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([this, i] {
      while (true) {
        Watch watch(*stub_, {});
        watch.ReadEvents(20 + i);
        watch.Cancel();
        watch.ReadToEnd();
        if (watch.Finish().error_code() == grpc::StatusCode::UNAVAILABLE) return;
      }
    });
  }
  std::thread writer([this] { AppendLines(100, 1000); });
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.reads() > 200; }));
  server_->Stop(absl::Seconds(30));
  for (std::thread& client : clients) client.join();
  writer.join();
  EXPECT_EQ(coordinator_.subscriptions(), 0);
}

TEST_F(WatchTest, ALogIsLogLinesAndChangesOfState) {
  AppendLines(0, 2);
  v1::Event points;
  points.set_trial(TrialName(0));
  points.mutable_training_points()->add_steps(1);
  coordinator_.Append(points);
  v1::Event change;
  change.set_trial(TrialName(0));
  change.mutable_state_change()->set_to(v1::SUCCEEDED);
  coordinator_.Append(change);
  EndAllTrials();
  v1::WatchExperimentRequest request;
  request.set_log_only(true);
  Watch watch(*stub_, request);
  watch.ReadToEnd();
  EXPECT_THAT(watch.positions(), ElementsAre(1, 2, 4));
  EXPECT_EQ(watch.caught_up(), 1);
}

}  // namespace
}  // namespace lengthwise::server
