#include "worker/connection/outbox.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Lease LeaseOfTrials(int trials) {
  v1::Lease lease;
  lease.set_lease_id("lease");
  lease.set_fencing_token(7);
  for (int i = 0; i < trials; ++i) {
    v1::LeasedTrial& trial = *lease.add_trials();
    trial.set_trial("trial" + std::to_string(i));
    trial.set_attempt(3);
  }
  return lease;
}

v1::Event LogEvent(const std::string& text) {
  v1::Event event;
  event.mutable_log_line()->set_text(text);
  return event;
}

v1::Event OutcomeEvent() {
  v1::Event event;
  event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  return event;
}

v1::StreamEventsResponse Answer(
    int trial, int64_t sequence,
    v1::StreamEventsResponse::Refusal refusal = v1::StreamEventsResponse::REFUSAL_UNSPECIFIED) {
  v1::StreamEventsResponse response;
  response.set_lease_id("lease");
  response.set_trial("trial" + std::to_string(trial));
  response.set_acknowledged_sequence(sequence);
  response.set_refusal(refusal);
  response.set_detail("a detail");
  return response;
}

constexpr bool kWithoutArtifacts = false;
constexpr bool kWithArtifacts = true;

// Returns the next batch, or an empty one if there is none now.
v1::StreamEventsRequest NextBatch(Outbox& outbox, bool with_artifacts = kWithoutArtifacts) {
  const Outbox::Work work = outbox.Next(std::chrono::steady_clock::now(), with_artifacts);
  const auto* batch = std::get_if<v1::StreamEventsRequest>(&work);
  return batch ? *batch : v1::StreamEventsRequest();
}

std::vector<int64_t> Sequences(const v1::StreamEventsRequest& batch) {
  std::vector<int64_t> sequences;
  for (const v1::Event& event : batch.events()) sequences.push_back(event.sequence());
  return sequences;
}

TEST(Outbox, NumbersAndAddressesEventsAndBatchesThemByTrial) {
  Outbox outbox(LeaseOfTrials(2), {});
  outbox.Put(0, LogEvent("a"));
  outbox.Put(1, LogEvent("b"));
  outbox.Put(0, LogEvent("c"));
  const v1::StreamEventsRequest batch = NextBatch(outbox);
  EXPECT_EQ(batch.lease_id(), "lease");
  EXPECT_EQ(batch.fencing_token(), 7);
  ASSERT_THAT(Sequences(batch), ElementsAre(1, 2, 1));
  EXPECT_EQ(batch.events(0).trial(), "trial0");
  EXPECT_EQ(batch.events(0).attempt(), 3);
  EXPECT_TRUE(batch.events(0).has_time());
  EXPECT_TRUE(batch.has_time()) << "tells the server how wrong this machine's clock is";
  EXPECT_EQ(batch.events(1).log_line().text(), "c");
  EXPECT_EQ(batch.events(2).trial(), "trial1");
  EXPECT_THAT(Sequences(NextBatch(outbox)), IsEmpty());
}

TEST(Outbox, BatchEndsAtATrialThatUploadsFirst) {
  Outbox outbox(LeaseOfTrials(3), {});
  outbox.Put(0, LogEvent("a"));
  outbox.PutCheckpoint(0, 1, "bytes");
  outbox.PutCheckpoint(1, 1, "bytes");
  outbox.Put(2, LogEvent("b"));
  const auto upload = [&] {
    const Outbox::Work work = outbox.Next(std::chrono::steady_clock::now(), kWithoutArtifacts);
    const auto* taken = std::get_if<Outbox::Upload>(&work);
    return taken == nullptr ? int64_t{-1} : taken->trial;
  };
  EXPECT_EQ(NextBatch(outbox).events(0).trial(), "trial0");
  EXPECT_EQ(upload(), 1);
  EXPECT_EQ(NextBatch(outbox).events(0).trial(), "trial2");
  EXPECT_EQ(upload(), 0);
}

TEST(Outbox, AnswerForABatchIsForEachOfItsTrials) {
  Outbox outbox(LeaseOfTrials(3), {});
  for (int trial = 0; trial < 3; ++trial) {
    outbox.Put(trial, LogEvent("x"));
    outbox.Put(trial, OutcomeEvent());
  }
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1, 2, 1, 2, 1, 2));
  v1::StreamEventsResponse answer = Answer(0, 2);
  *answer.add_others() = Answer(1, 0, v1::StreamEventsResponse::STALE_LEASE);
  *answer.add_others() = Answer(2, 2);
  for (v1::StreamEventsResponse& other : *answer.mutable_others()) other.clear_lease_id();
  outbox.Acknowledge(answer);
  EXPECT_EQ(outbox.unsent_events(), 0);
  EXPECT_FALSE(outbox.stopped(0));
  EXPECT_TRUE(outbox.stopped(1));
  EXPECT_FALSE(outbox.stopped(2));
  EXPECT_TRUE(outbox.Flush());
}

TEST(Outbox, TrialsTakeTurns) {
  Outbox outbox(LeaseOfTrials(2), {.max_batch_events = 1});
  for (int i = 0; i < 2; ++i) outbox.Put(0, LogEvent("a"));
  for (int i = 0; i < 2; ++i) outbox.Put(1, LogEvent("b"));
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) order.push_back(NextBatch(outbox).events(0).trial());
  EXPECT_THAT(order, ElementsAre("trial0", "trial1", "trial0", "trial1"));
}

TEST(Outbox, ResendsExactlyTheUnacknowledgedEvents) {
  Outbox outbox(LeaseOfTrials(1), {});
  for (int i = 0; i < 5; ++i) outbox.Put(0, LogEvent("x"));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1, 2, 3, 4, 5));
  outbox.Acknowledge(Answer(0, 3));
  EXPECT_TRUE(outbox.awaits_acknowledgement());
  outbox.Resend();
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(4, 5));
  outbox.Acknowledge(Answer(0, 5));
  EXPECT_FALSE(outbox.awaits_acknowledgement());
  EXPECT_EQ(outbox.unsent_events(), 0);
  EXPECT_EQ(outbox.unsent_bytes(), 0);
  EXPECT_TRUE(outbox.Flush());
}

TEST(Outbox, TrialsAreSentOneByOneAfterABrokenStream) {
  Outbox outbox(LeaseOfTrials(3), {});
  for (int trial = 0; trial < 3; ++trial) outbox.Put(trial, LogEvent("x"));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1, 1, 1));
  // The server ends the stream whenever it gets an event of trial 0.
  outbox.Resend();
  EXPECT_EQ(NextBatch(outbox).events(0).trial(), "trial0");
  outbox.Resend();
  const v1::StreamEventsRequest second = NextBatch(outbox);
  EXPECT_THAT(Sequences(second), ElementsAre(1));
  EXPECT_EQ(second.events(0).trial(), "trial1");
  outbox.Acknowledge(Answer(1, 1));
  const v1::StreamEventsRequest both = NextBatch(outbox);
  ASSERT_THAT(Sequences(both), ElementsAre(1, 1));
  EXPECT_EQ(both.events(0).trial(), "trial2");
  EXPECT_EQ(both.events(1).trial(), "trial0");
  outbox.Resend();
  EXPECT_EQ(NextBatch(outbox).events(0).trial(), "trial2");
  outbox.Acknowledge(Answer(2, 1));
  EXPECT_EQ(outbox.unsent_events(), 1);
}

TEST(Outbox, EventsBehindACheckpointWaitForItsUpload) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.Put(0, LogEvent("before"));
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.Put(0, LogEvent("behind"));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1));
  const Outbox::Work work = outbox.Next(kNever, kWithoutArtifacts);
  const auto* upload = std::get_if<Outbox::Upload>(&work);
  ASSERT_NE(upload, nullptr);
  EXPECT_EQ(upload->step, 100);
  EXPECT_EQ(*upload->bytes, "bytes");
  // Without a result, Next returns the upload again.
  EXPECT_TRUE(std::holds_alternative<Outbox::Upload>(outbox.Next(kNever, kWithArtifacts)));
  v1::Checkpoint checkpoint;
  checkpoint.set_sha256("sum");
  outbox.UploadStored(*upload, checkpoint);
  const v1::StreamEventsRequest batch = NextBatch(outbox);
  ASSERT_THAT(Sequences(batch), ElementsAre(2, 3));
  EXPECT_EQ(batch.events(0).checkpoint().sha256(), "sum");
  EXPECT_EQ(batch.events(0).step(), 100);
  // After a broken stream, the event is sent again without another upload.
  outbox.Resend();
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1, 2, 3));
}

TEST(Outbox, SmallArtifactTravelsWithItsEvent) {
  Outbox outbox(LeaseOfTrials(2), {});
  outbox.Put(0, LogEvent("before"));
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.Put(0, LogEvent("behind"));
  const v1::StreamEventsRequest batch = NextBatch(outbox, kWithArtifacts);
  ASSERT_THAT(Sequences(batch), ElementsAre(1, 2, 3));
  const v1::Checkpoint& checkpoint = batch.events(1).checkpoint();
  EXPECT_EQ(checkpoint.sha256(), platform::Sha256Hex("bytes"));
  EXPECT_EQ(checkpoint.size_bytes(), 5);
  ASSERT_EQ(batch.artifacts().size(), 1U);
  EXPECT_EQ(batch.artifacts().at(checkpoint.sha256()), "bytes");
  // The server stores the artifact beside the stream, so later events could overtake it.
  outbox.Put(0, LogEvent("later"));
  outbox.Put(1, LogEvent("of another trial"));
  EXPECT_EQ(NextBatch(outbox, kWithArtifacts).events(0).trial(), "trial1");
  outbox.Acknowledge(Answer(0, 1));  // to an earlier batch
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), IsEmpty());
  outbox.Acknowledge(Answer(0, 3));
  const v1::StreamEventsRequest later = NextBatch(outbox, kWithArtifacts);
  EXPECT_THAT(Sequences(later), ElementsAre(4));
  EXPECT_TRUE(later.artifacts().empty());
}

// They would arrive before those that wait for the artifact, and the server would see a gap.
TEST(Outbox, NoEventOvertakesABatchWithAnotherTrialsArtifact) {
  Outbox outbox(LeaseOfTrials(2), {});
  outbox.Put(0, LogEvent("early"));
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), ElementsAre(1));
  outbox.Put(0, LogEvent("beside an artifact"));
  outbox.PutCheckpoint(1, 100, "bytes");
  EXPECT_EQ(NextBatch(outbox, kWithArtifacts).events_size(), 2);
  outbox.Put(0, LogEvent("late"));
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), IsEmpty());
  outbox.Acknowledge(Answer(0, 1));
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), IsEmpty());
  outbox.Acknowledge(Answer(0, 2));
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), ElementsAre(3));
}

TEST(Outbox, ArtifactThatDoesNotFitABatchIsUploaded) {
  Outbox outbox(LeaseOfTrials(1), {.max_batch_bytes = 1000});
  outbox.PutCheckpoint(0, 100, std::string(1000, 'b'));
  EXPECT_TRUE(std::holds_alternative<Outbox::Upload>(outbox.Next(kNever, kWithArtifacts)));
}

TEST(Outbox, ArtifactsFillABatchAsEventsDo) {
  Outbox outbox(LeaseOfTrials(2), {.max_batch_bytes = 1500});
  outbox.PutCheckpoint(0, 100, std::string(800, 'b'));
  outbox.PutCheckpoint(1, 100, std::string(800, 'c'));
  EXPECT_EQ(NextBatch(outbox, kWithArtifacts).artifacts().size(), 1U);
  EXPECT_EQ(NextBatch(outbox, kWithArtifacts).artifacts().size(), 1U);
}

TEST(Outbox, ArtifactThatCameButIsNotStoredIsUploaded) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.Put(0, OutcomeEvent());
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), ElementsAre(1, 2));
  outbox.Acknowledge(Answer(0, 0, v1::StreamEventsResponse::NOT_STORED));
  const auto upload = std::get<Outbox::Upload>(outbox.Next(kNever, kWithArtifacts));
  EXPECT_EQ(*upload.bytes, "bytes");
  v1::Checkpoint checkpoint;
  checkpoint.set_sha256("sum");
  outbox.UploadStored(upload, checkpoint);
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), ElementsAre(1, 2));
  // The server has lost it, and so has this worker.
  outbox.Acknowledge(Answer(0, 0, v1::StreamEventsResponse::NOT_STORED));
  const v1::StreamEventsRequest failure = NextBatch(outbox, kWithArtifacts);
  ASSERT_THAT(Sequences(failure), ElementsAre(1));
  EXPECT_EQ(failure.events(0).outcome().reason(),
            "the server refused the worker's events: a detail");
  EXPECT_TRUE(outbox.stopped(0));
}

// The server may have stored it, and a disk that hangs must not break one stream after the other.
TEST(Outbox, ArtifactOfABrokenStreamIsUploadedIfTheServerDoesNotHaveIt) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.Put(0, OutcomeEvent());
  EXPECT_THAT(Sequences(NextBatch(outbox, kWithArtifacts)), ElementsAre(1, 2));
  outbox.Resend();
  const v1::StreamEventsRequest again = NextBatch(outbox, kWithArtifacts);
  EXPECT_THAT(Sequences(again), ElementsAre(1, 2));
  EXPECT_EQ(again.events(0).checkpoint().sha256(), platform::Sha256Hex("bytes"));
  EXPECT_TRUE(again.artifacts().empty());
  outbox.Acknowledge(Answer(0, 0, v1::StreamEventsResponse::NOT_STORED));
  EXPECT_TRUE(std::holds_alternative<Outbox::Upload>(outbox.Next(kNever, kWithArtifacts)));
}

TEST(Outbox, ArtifactOfADrainIsUploadedBecauseUploadsReportProgress) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.SetPatience(After(absl::Minutes(1)));
  EXPECT_TRUE(std::holds_alternative<Outbox::Upload>(outbox.Next(kNever, kWithArtifacts)));
}

TEST(Outbox, RefusedArtifactBecomesAFailure) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.PutCheckpoint(0, 100, "bytes");
  outbox.Put(0, LogEvent("behind it"));
  const auto upload = std::get<Outbox::Upload>(outbox.Next(kNever, kWithoutArtifacts));
  outbox.UploadRefused(upload, "too large");
  const v1::StreamEventsRequest batch = NextBatch(outbox);
  ASSERT_THAT(Sequences(batch), ElementsAre(1));
  EXPECT_EQ(batch.events(0).outcome().kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_EQ(batch.events(0).outcome().reason(),
            "the server does not store the checkpoint of step 100 (5 bytes): too large");
  EXPECT_EQ(batch.events(0).step(), 100);
  EXPECT_TRUE(outbox.stopped(0));
  // Further items of a run that continues are dropped.
  outbox.Put(0, LogEvent("later"));
  outbox.Acknowledge(Answer(0, 1));
  EXPECT_TRUE(outbox.finished(0));
  EXPECT_EQ(outbox.unsent_events(), 0);
}

TEST(Outbox, OversizedEventBecomesALogLine) {
  Outbox outbox(LeaseOfTrials(1), {.max_event_bytes = 1000});
  outbox.Put(0, LogEvent(std::string(2000, 'x')));
  EXPECT_THAT(NextBatch(outbox).events(0).log_line().text(),
              HasSubstr("bytes was dropped; the limit"));
}

TEST(Outbox, GapIsFilledFromTheAcknowledgedNumberOn) {
  Outbox outbox(LeaseOfTrials(1), {.max_batch_events = 2});
  for (int i = 0; i < 6; ++i) outbox.Put(0, LogEvent("x"));
  for (int i = 0; i < 3; ++i) NextBatch(outbox);
  outbox.Acknowledge(Answer(0, 2, v1::StreamEventsResponse::SEQUENCE_GAP));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(3, 4));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(5, 6));
}

TEST(Outbox, GapBeforeAcknowledgedEventsEndsTheLease) {
  Outbox outbox(LeaseOfTrials(2), {});
  outbox.Put(0, LogEvent("x"));
  NextBatch(outbox);
  outbox.Acknowledge(Answer(0, 1));
  outbox.Put(0, LogEvent("y"));
  NextBatch(outbox);
  outbox.Acknowledge(Answer(0, 0, v1::StreamEventsResponse::SEQUENCE_GAP));
  EXPECT_TRUE(outbox.closed());
  EXPECT_FALSE(outbox.Flush());
}

TEST(Outbox, StaleLeaseClosesOnlyItsTrial) {
  Outbox outbox(LeaseOfTrials(2), {});
  outbox.Put(0, LogEvent("x"));
  outbox.Put(1, LogEvent("y"));
  outbox.Acknowledge(Answer(0, 0, v1::StreamEventsResponse::STALE_LEASE));
  outbox.Put(0, LogEvent("z"));
  EXPECT_TRUE(outbox.stopped(0));
  EXPECT_FALSE(outbox.stopped(1));
  EXPECT_EQ(NextBatch(outbox).events(0).trial(), "trial1");
  EXPECT_THAT(Sequences(NextBatch(outbox)), IsEmpty());
}

TEST(Outbox, RefusedEventsBecomeATemporaryFailure) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.Put(0, LogEvent("good"));
  NextBatch(outbox);
  outbox.Put(0, LogEvent("bad"));
  NextBatch(outbox);
  outbox.Acknowledge(Answer(0, 1));
  outbox.Acknowledge(Answer(0, 1, v1::StreamEventsResponse::INVALID));
  EXPECT_TRUE(outbox.stopped(0));
  EXPECT_FALSE(outbox.finished(0));
  const v1::StreamEventsRequest batch = NextBatch(outbox);
  ASSERT_THAT(Sequences(batch), ElementsAre(2));
  EXPECT_EQ(batch.events(0).trial(), "trial0");
  EXPECT_EQ(batch.events(0).outcome().kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(batch.events(0).outcome().reason(), HasSubstr("a detail"));
  outbox.Acknowledge(Answer(0, 2));
  EXPECT_TRUE(outbox.finished(0));
}

TEST(Outbox, NothingFollowsAnOutcome) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.Put(0, OutcomeEvent());
  outbox.Put(0, LogEvent("late"));
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(1));
  EXPECT_FALSE(outbox.finished(0));
  outbox.Acknowledge(Answer(0, 1));
  EXPECT_TRUE(outbox.finished(0));
}

TEST(Outbox, PutBlocksUntilThereIsRoom) {
  Outbox outbox(LeaseOfTrials(1), {.max_bytes = 10'000});
  outbox.Put(0, LogEvent(std::string(9'000, 'x')));
  NextBatch(outbox);
  // The box counts at least the bytes of its events, so it cannot hold 18,000 at once.
  std::atomic<bool> acknowledged = false;
  auto put = std::async(std::launch::async, [&] {
    outbox.Put(0, LogEvent(std::string(9'000, 'y')));
    return acknowledged.load();
  });
  EXPECT_LE(outbox.unsent_bytes(), 10'000);
  acknowledged = true;
  outbox.Acknowledge(Answer(0, 1));
  ASSERT_EQ(put.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(put.get());
  EXPECT_THAT(Sequences(NextBatch(outbox)), ElementsAre(2));
}

TEST(Outbox, ItemAboveTheLimitPassesAlone) {
  Outbox outbox(LeaseOfTrials(1), {.max_bytes = 1'000});
  outbox.PutCheckpoint(0, 1, std::string(5'000, 'x'));  // does not block
  EXPECT_EQ(outbox.unsent_events(), 1);
}

TEST(Outbox, ClosingDropsItemsAndWakesWaiters) {
  for (const bool all : {false, true}) {
    Outbox outbox(LeaseOfTrials(1), {.max_bytes = 1'000});
    outbox.Put(0, LogEvent(std::string(900, 'x')));
    auto put =
        std::async(std::launch::async, [&] { outbox.Put(0, LogEvent(std::string(900, 'y'))); });
    if (all) {
      outbox.Close();
    } else {
      outbox.CloseTrial(0);
    }
    ASSERT_EQ(put.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(outbox.unsent_bytes(), 0);
    EXPECT_EQ(outbox.closed(), all);
  }
}

TEST(Outbox, PatienceEndsWaiting) {
  Outbox outbox(LeaseOfTrials(1), {.max_bytes = 1'000});
  outbox.Put(0, LogEvent(std::string(900, 'x')));
  outbox.SetPatience(std::chrono::steady_clock::now());
  outbox.Put(0, LogEvent(std::string(900, 'y')));
  EXPECT_TRUE(outbox.closed());
  EXPECT_FALSE(outbox.Flush());
}

// Later than all times read before.
void LetTimePass() {
  const TimePoint start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() == start) {
  }
}

TEST(Outbox, ProgressDelaysTheStallButNotTheEnd) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.Put(0, LogEvent("x"));
  outbox.SetPatience(After(absl::Hours(10)), absl::Hours(1));
  const TimePoint stall = outbox.patience();
  EXPECT_LE(stall, After(absl::Hours(1)));
  LetTimePass();
  outbox.NoteProgress();
  EXPECT_GT(outbox.patience(), stall);
  const TimePoint end = After(absl::Minutes(1));
  outbox.SetPatience(end, absl::Hours(1));
  outbox.NoteProgress();
  EXPECT_EQ(outbox.patience(), end);
}

// Without items there is nothing to stall: a runner's last step may take longer than the timeout.
TEST(Outbox, StallBeginsWithTheFirstItem) {
  Outbox outbox(LeaseOfTrials(1), {});
  outbox.SetPatience(kNever, absl::Hours(1));
  const TimePoint drain = outbox.patience();
  LetTimePass();
  outbox.Put(0, LogEvent("x"));
  const TimePoint first = outbox.patience();
  EXPECT_GT(first, drain);
  LetTimePass();
  outbox.Put(0, LogEvent("y"));
  EXPECT_EQ(outbox.patience(), first) << "further items are not progress";
}

}  // namespace
}  // namespace lengthwise::worker
