#include "server/api/validation.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(Pages, SizesFromZeroToAThousand) {
  EXPECT_TRUE(CheckPage(0, "").ok());
  EXPECT_TRUE(CheckPage(1000, "abc").ok());
  EXPECT_EQ(Message(CheckPage(-1, "")), "page_size: is -1; accepted: 0 to 1000");
  EXPECT_EQ(Message(CheckPage(1001, "")), "page_size: is 1001; accepted: 0 to 1000");
  EXPECT_THAT(Message(CheckPage(0, std::string(513, 'a'))), HasSubstr("page_token: is malformed"));
  EXPECT_THAT(Message(CheckPage(0, "a\n")), HasSubstr("page_token: is malformed"));
}

TEST(RetryTrials, StatesAreFailedOrCancelled) {
  v1::RetryTrialsRequest request;
  request.set_name("experiments/a-1");
  EXPECT_EQ(Message(CheckRetryTrials(request)),
            "states: is empty, expected FAILED, CANCELLED or both");
  request.add_states(v1::FAILED);
  request.add_states(v1::CANCELLED);
  EXPECT_TRUE(CheckRetryTrials(request).ok());
  request.add_states(v1::SUCCEEDED);
  EXPECT_EQ(Message(CheckRetryTrials(request)),
            "states: got SUCCEEDED, expected FAILED, CANCELLED or both");
}

TEST(CreateExperiment, NeedsASource) {
  EXPECT_EQ(Message(CheckCreateExperiment({})),
            "specification: is absent; set either specification or specification_text");
}

TEST(CreateExperiment, TextMayHaveOneMebibyte) {
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(std::string(1 << 20, ' '));
  EXPECT_TRUE(CheckCreateExperiment(request).ok());
  request.mutable_specification_text()->mutable_text()->push_back(' ');
  EXPECT_EQ(Message(CheckCreateExperiment(request)),
            "text: got 1048577 bytes, expected at most 1048576");
}

TEST(CreateExperiment, MessageOfFiveMegabytesIsRefused) {
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_description(std::string(5'000'000, 'x'));
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("specification: is 5000005 bytes; a specification has at most 1048576"));
}

TEST(FreeText, HasNoControlCharacters) {
  EXPECT_TRUE(CheckText("reason", "two lines\n\tand a tab", 100).ok());
  EXPECT_THAT(Message(CheckText("reason", "\x1b[31mred", 100)),
              HasSubstr("reason: has control characters; accepted: text, lines and tabs"));
  EXPECT_THAT(Message(CheckText("filter", "long", 3)), HasSubstr("filter: is 4 bytes"));

  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("e");
  request.set_owner("ada");
  EXPECT_TRUE(CheckCreateExperiment(request).ok());
  request.set_owner("ada\u202E");
  EXPECT_THAT(Message(CheckCreateExperiment(request)), HasSubstr("owner: has control characters"));
}

TEST(CreateExperiment, TextNeedsItsFormat) {
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_text("name: a");
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("specification_text.format: is 0"));
  request.mutable_specification_text()->set_format(static_cast<v1::SpecificationText::Format>(9));
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("specification_text.format: is 9"));
}

TEST(CreateExperiment, NestedUnknownFieldsAreNamed) {
  v1::CreateExperimentRequest request;
  v1::ExperimentSpecification& specification = *request.mutable_specification();
  specification.add_encodings()->set_name("none");
  v1::Component& encoding = *specification.add_encodings();
  EXPECT_TRUE(CheckCreateExperiment(request).ok());

  encoding.GetReflection()->MutableUnknownFields(&encoding)->AddVarint(77, 1);
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("request.specification.encodings[1]: unknown field number 77 in "
                        "lengthwise.v1.Component"));
  encoding.GetReflection()->MutableUnknownFields(&encoding)->Clear();

  (*encoding.mutable_parameters())["randomized"].set_bool_value(true);
  EXPECT_TRUE(CheckCreateExperiment(request).ok());
  google::protobuf::Value& value = (*encoding.mutable_parameters())["randomized"];
  value.GetReflection()->MutableUnknownFields(&value)->AddVarint(99, 1);
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("unknown field number 99 in google.protobuf.Value"));
}

TEST(CreateExperiment, UnknownFieldsOnTheWireAreSeen) {
  // Field 30 (a varint, tag 30 << 3 = 240 = 0xf0 0x01) with value 5, inside field 3
  // (specification).
  v1::CreateExperimentRequest request;
  ASSERT_TRUE(request.ParseFromString(std::string("\x1a\x03\xf0\x01\x05", 5)));
  EXPECT_THAT(Message(CheckCreateExperiment(request)),
              HasSubstr("request.specification: unknown field number 30 in "
                        "lengthwise.v1.ExperimentSpecification"));
}

TEST(ExtendExperiment, NeedsAnExperimentAndSeedsOfEitherKind) {
  v1::ExtendExperimentRequest request;
  EXPECT_THAT(Message(CheckExtendExperiment(request)), HasSubstr("name: is \"\""));
  request.set_name("experiments/a-1");
  EXPECT_EQ(Message(CheckExtendExperiment(request)),
            "seeds: is empty; set seeds, or weight_seeds and data_seeds, as the experiment has "
            "them");
  request.add_data_seeds(3);
  EXPECT_TRUE(CheckExtendExperiment(request).ok());
  request.clear_data_seeds();
  request.add_seeds(0);
  EXPECT_TRUE(CheckExtendExperiment(request).ok());
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(77, 1);
  EXPECT_THAT(Message(CheckExtendExperiment(request)), HasSubstr("unknown field number 77"));
}

TEST(EvaluateTrial, HasTheLimitsOfASubmission) {
  v1::EvaluateTrialRequest request;
  request.set_trial("experiments/a-1");
  EXPECT_THAT(Message(CheckEvaluateTrial(request)), HasSubstr("trial: is \"experiments/a-1\""));
  request.set_trial("experiments/a-1/trials/t");
  EXPECT_TRUE(CheckEvaluateTrial(request).ok());
  request.set_request_id(std::string(65, 'x'));
  EXPECT_THAT(Message(CheckEvaluateTrial(request)), HasSubstr("request_id: has 65 bytes"));
  request.clear_request_id();
  request.set_owner(std::string(201, 'x'));
  EXPECT_THAT(Message(CheckEvaluateTrial(request)), HasSubstr("owner: is 201 bytes"));
  request.clear_owner();
  v1::Evaluation& evaluation = *request.mutable_evaluation();
  evaluation.GetReflection()->MutableUnknownFields(&evaluation)->AddVarint(99, 1);
  EXPECT_THAT(Message(CheckEvaluateTrial(request)),
              HasSubstr("request.evaluation: unknown field number 99"));
  evaluation.Clear();
  for (int i = 0; i < 400'000; ++i) evaluation.add_lengths(100'000);
  EXPECT_THAT(Message(CheckEvaluateTrial(request)), HasSubstr("evaluation: is 12000"));
}

TEST(Workers, HaveAnIdAndAPackSize) {
  v1::WorkerDescription worker;
  worker.set_worker_id("n07-cuda0-4711");
  worker.set_max_pack_size(1);
  EXPECT_TRUE(CheckWorker(worker).ok());
  worker.set_max_pack_size(0);
  EXPECT_THAT(Message(CheckWorker(worker)), HasSubstr("worker.max_pack_size: is 0"));
  worker.set_max_pack_size(1);
  worker.mutable_provenance()->set_host(std::string(200'000, 'x'));
  EXPECT_THAT(Message(CheckWorker(worker)), HasSubstr("worker: has 2000"));
  worker.clear_provenance();
  for (const std::string& id : {std::string(), std::string("A"), std::string(61, 'a')}) {
    worker.set_worker_id(id);
    EXPECT_THAT(Message(CheckWorker(worker)), HasSubstr("worker.worker_id: is")) << id;
  }
}

TEST(Artifacts, HaveATrialAChecksumAndASize) {
  v1::UploadArtifactRequest::Header header;
  header.set_trial("experiments/a-1/trials/t");
  header.set_sha256(std::string(64, 'a'));
  EXPECT_TRUE(CheckArtifactHeader(header).ok());
  header.set_size_bytes(-1);
  EXPECT_THAT(Message(CheckArtifactHeader(header)), HasSubstr("header.size_bytes: is -1"));
  header.set_sha256(std::string(64, 'A'));
  EXPECT_THAT(Message(CheckArtifactHeader(header)), HasSubstr("header.sha256: is"));
  header.set_sha256("../../etc/passwd");
  EXPECT_THAT(Message(CheckArtifactHeader(header)), HasSubstr("header.sha256: is"));
}

}  // namespace
}  // namespace lengthwise::server
