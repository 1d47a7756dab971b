#include "worker/training/testing/pack_runner_fixture.h"

#include "gtest/gtest.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker {

PackRunner& Runner() {
  static PackRunner& runner =
      *CreatePackRunner({.device = "cpu", .threads = 1, .max_pack_size = 8}).value().release();
  return runner;
}

void RunLease(const v1::Lease& lease, RecordingSession& session) {
  const absl::Status status = Runner().Run(lease, session);
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<std::string> HistoryAlone(const v1::TrialSpecification& trial) {
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  return session.History(0);
}

std::vector<std::string> Outline(const std::vector<v1::Event>& events) {
  std::vector<std::string> outline;
  for (const v1::Event& event : events) {
    const std::string step = " " + std::to_string(event.step());
    if (event.has_training_points()) {
      for (const int64_t s : event.training_points().steps()) {
        outline.push_back("point " + std::to_string(s));
      }
    }
    if (event.has_length_accuracies()) {
      outline.push_back((event.length_accuracies().final() ? "final" : "evaluation") + step);
    }
    if (event.has_sequence_scores()) outline.push_back("scores" + step);
    if (event.has_noise_accuracies()) outline.push_back("noise" + step);
    if (event.has_answer_errors()) outline.push_back("errors" + step);
    if (event.has_answer()) outline.push_back("answer" + step);
    if (event.has_attention_map()) outline.push_back("attention" + step);
    if (event.has_projection()) outline.push_back("projection" + step);
    if (event.has_log_line()) outline.push_back("log" + step);
    if (event.has_checkpoint()) outline.push_back("checkpoint" + step);
    if (event.has_outcome()) outline.push_back("outcome" + step);
  }
  return outline;
}

}  // namespace lengthwise::worker
