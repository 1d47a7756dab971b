#include "proto/printable_message.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise {
namespace {

using ::testing::Eq;

TEST(PrintableMessageTest, ReachesEveryText) {
  v1::ListTrialsResponse response;
  response.set_next_page_token("\x1b[2J");
  v1::Trial& trial = *response.add_trials();
  trial.set_reason("first\rsecond");
  trial.mutable_outcome()->mutable_provenance()->set_host("\x1b]0;title\x07");
  auto& parameters = *trial.mutable_specification()->mutable_task()->mutable_parameters();
  parameters["file"].set_string_value("\u202Efile");
  parameters["\x1b[1m"].set_bool_value(true);
  MakePrintable(response);
  EXPECT_THAT(response.next_page_token(), Eq("\\x1b[2J"));
  EXPECT_THAT(response.trials(0).reason(), Eq("first\\x0dsecond"));
  EXPECT_THAT(response.trials(0).outcome().provenance().host(), Eq("\\x1b]0;title\\x07"));
  EXPECT_THAT(response.trials(0).specification().task().parameters().at("file").string_value(),
              Eq("\\u202efile"));
  EXPECT_TRUE(response.trials(0).specification().task().parameters().contains("\\x1b[1m"));

  v1::SynchronizeResponse answer;
  answer.add_leases()->add_cancelled_trials("\x07");
  MakePrintable(answer);
  EXPECT_THAT(answer.leases(0).cancelled_trials(0), Eq("\\x07"));
}

TEST(PrintableMessageTest, KeepsBytesAndPrintableText) {
  v1::Event event;
  event.mutable_attention_map()->set_probabilities(std::string("\x1b\0\xff", 3));
  MakePrintable(event);
  EXPECT_THAT(event.attention_map().probabilities(), Eq(std::string("\x1b\0\xff", 3)));

  event.mutable_log_line()->set_text("one\n\ttwo é");
  MakePrintable(event);
  EXPECT_THAT(event.log_line().text(), Eq("one\n\ttwo é"));
}

}  // namespace
}  // namespace lengthwise
