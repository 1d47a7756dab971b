#include <map>

#include "absl/strings/str_cat.h"
#include "client/diagnosis/diagnosis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

void Set(absl::Time time, google::protobuf::Timestamp* timestamp) {
  timestamp->set_seconds(absl::ToUnixSeconds(time));
}

v1::Worker Worker(const std::string& id, bool alive, const std::string& version = "0.1.0") {
  v1::Worker worker;
  worker.set_worker_id(id);
  worker.set_alive(alive);
  worker.mutable_provenance()->set_program_version(version);
  worker.mutable_provenance()->set_device("NVIDIA H200");
  worker.mutable_provenance()->set_libtorch_version("2.11.0");
  worker.mutable_provenance()->set_cuda_version("12.8");
  return worker;
}

// Answers of a service without faults.
ServiceAnswers Healthy() {
  ServiceAnswers answers;
  answers.address = "n07:7070";
  answers.asked = kNow;
  answers.answered = kNow + absl::Milliseconds(20);
  v1::Caller caller;
  caller.set_principal("ada");
  caller.set_role(v1::ADMIN);
  Set(kNow + absl::Hours(24 * 30), caller.mutable_expire_time());
  answers.caller = caller;
  v1::Server server;
  server.set_program_version("0.1.0");
  server.set_source_revision("abc");
  Set(kNow, server.mutable_time());
  Set(kNow - absl::Hours(3), server.mutable_start_time());
  answers.server = server;
  v1::ListWorkersResponse workers;
  *workers.add_workers() = Worker("n08-cuda0", true);
  *workers.add_workers() = Worker("n08-cuda1", true);
  answers.workers = workers;
  v1::Storage storage;
  storage.set_data_dir("/data");
  storage.set_free_bytes(int64_t{500} << 30);
  answers.storage = storage;
  return answers;
}

Findings Inspect(const ServiceAnswers& answers) {
  return InspectService(answers, {.version = "0.1.0", .revision = "abc"});
}

auto Is(Verdict verdict, const std::string& subject, const std::string& found) {
  return AllOf(Field(&Finding::verdict, verdict), Field(&Finding::subject, subject),
               Field(&Finding::found, HasSubstr(found)));
}

// Matches findings with exactly one trouble, which has advice.
MATCHER_P3(HasOneTrouble, verdict, subject, found, "") {
  int troubles = 0;
  for (const Finding& finding : arg) {
    if (finding.verdict == Verdict::kOk) continue;
    ++troubles;
    *result_listener << finding.subject << ": " << finding.found << " -> " << finding.advice
                     << "; ";
    if (finding.verdict != verdict || finding.subject != subject || finding.advice.empty() ||
        finding.found.find(found) == std::string::npos) {
      return false;
    }
  }
  return troubles == 1;
}

TEST(ServiceTest, FindsNothingWrongWithAHealthyService) {
  const Findings findings = Inspect(Healthy());
  EXPECT_THAT(findings, Each(Field(&Finding::verdict, Verdict::kOk)));
  EXPECT_THAT(findings, Each(Field(&Finding::advice, "")));
  EXPECT_THAT(findings, Contains(Is(Verdict::kOk, "server", "n07:7070, up for 3:00:00")));
  EXPECT_THAT(findings,
              Contains(Is(Verdict::kOk, "versions", "client and server are 0.1.0 (abc)")));
  EXPECT_THAT(findings, Contains(Is(Verdict::kOk, "access", "ada, admin, until ")));
  EXPECT_THAT(findings, Contains(Is(Verdict::kOk, "workers",
                                    "2 on NVIDIA H200, LibTorch 2.11.0, CUDA 12.8")));
  EXPECT_THAT(findings, Contains(Is(Verdict::kOk, "server's disk", "500.0 GiB free at /data")));
}

TEST(ServiceTest, UnreachableServerIsTheOnlyFinding) {
  ServiceAnswers answers = Healthy();
  answers.caller = absl::UnavailableError("cannot reach a server at n07:7070");
  const Findings findings = Inspect(answers);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings, HasOneTrouble(Verdict::kFailure, "server", "cannot reach"));
}

TEST(ServiceTest, RejectedTokenIsTheOnlyTrouble) {
  ServiceAnswers answers = Healthy();
  answers.caller = absl::UnauthenticatedError("the token is over");
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kFailure, "access", "the token is over"));
}

TEST(ServiceTest, WarnsOfATokenThatEndsSoon) {
  ServiceAnswers answers = Healthy();
  Set(kNow + absl::Hours(24 * 2), answers.caller->mutable_expire_time());
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "access", "ada, admin"));
  answers.has_web_token = true;
  EXPECT_THAT(Inspect(answers), Not(Contains(Field(&Finding::verdict, Verdict::kWarning))));
}

TEST(ServiceTest, WarnsOfDifferentBuilds) {
  ServiceAnswers answers = Healthy();
  answers.server->set_source_revision("def");
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "versions",
                                              "the client is 0.1.0 (abc), the server 0.1.0 (def)"));
  answers = Healthy();
  *answers.workers->add_workers() = Worker("old", true, "0.0.9");
  EXPECT_THAT(Inspect(answers),
              HasOneTrouble(Verdict::kWarning, "versions", "another build than the client's: old"));
  answers = Healthy();
  answers.workers->mutable_workers(1)->clear_provenance();  // as in a long list
  EXPECT_THAT(Inspect(answers), Not(Contains(Field(&Finding::verdict, Verdict::kWarning))));
  answers = Healthy();
  answers.server->clear_source_revision();  // not every build knows it
  EXPECT_THAT(Inspect(answers), Each(Field(&Finding::verdict, Verdict::kOk)));
  answers = Healthy();
  answers.server = absl::UnimplementedError("does not know this call");
  EXPECT_THAT(Inspect(answers),
              HasOneTrouble(Verdict::kWarning, "versions", "does not know this call"));
}

TEST(ServiceTest, WarnsOfClockDifference) {
  ServiceAnswers answers = Healthy();
  Set(kNow - absl::Minutes(2), answers.server->mutable_time());
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "clock",
                                              "the server's is 2:00 behind this machine's"));
  Set(kNow + absl::Minutes(2), answers.server->mutable_time());
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "clock",
                                              "the server's is 2:00 ahead of this machine's"));
  // A slow answer hides when the server read its clock.
  answers.answered = kNow + absl::Minutes(4);
  EXPECT_THAT(Inspect(answers), Not(Contains(Field(&Finding::verdict, Verdict::kWarning))));
}

TEST(ServiceTest, WarnsWithoutLiveWorkers) {
  ServiceAnswers answers = Healthy();
  answers.workers->clear_workers();
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "workers", "none is alive"));
  answers = Healthy();
  *answers.workers->add_workers() = Worker("n09-cuda0", false);
  EXPECT_THAT(Inspect(answers),
              HasOneTrouble(Verdict::kWarning, "workers", "no heartbeat from n09-cuda0"));
}

TEST(ServiceTest, WarnsOfAPausedQueue) {
  ServiceAnswers answers = Healthy();
  answers.workers->set_queue_pause("paused by ada: new disks");
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "queue",
                                              "is paused by ada: new disks: no trial starts"));
}

TEST(ServiceTest, StoppedWorkerIsNoTrouble) {
  ServiceAnswers answers = Healthy();
  v1::Worker stopped = Worker("n09-cuda0", false);
  stopped.set_stopped(true);
  *answers.workers->add_workers() = stopped;
  EXPECT_THAT(Inspect(answers), Not(Contains(Field(&Finding::verdict, Verdict::kWarning))));
}

TEST(ServiceTest, FullDiskFailsAndNearlyFullDiskWarns) {
  ServiceAnswers answers = Healthy();
  answers.storage->set_free_bytes(int64_t{5} << 30);
  EXPECT_THAT(Inspect(answers), HasOneTrouble(Verdict::kWarning, "server's disk", "5.0 GiB free"));
  answers.storage->set_free_bytes(100 << 20);
  EXPECT_THAT(Inspect(answers),
              HasOneTrouble(Verdict::kFailure, "server's disk", "100.0 MiB free"));
  answers.storage->set_free_bytes(int64_t{500} << 30);
  answers.storage->set_checkpoints_elsewhere("/mnt/shared");
  answers.storage->set_elsewhere_free_bytes(5 << 20);
  EXPECT_THAT(Inspect(answers),
              HasOneTrouble(Verdict::kFailure, "server's disk",
                            "500.0 GiB free at /data, 5.0 MiB free at /mnt/shared"));
  answers.storage = absl::PermissionDeniedError("no");
  EXPECT_THAT(Inspect(answers), Contains(Is(Verdict::kSkipped, "server's disk", "administrator")));
}

}  // namespace
}  // namespace lengthwise::client
