// Checks the real server's answers to invalid requests, and that `lengthwise validate` gives the
// same ones.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "monitoring/testing/scrape.h"
#include "platform/child_process.h"
#include "proto/rpc_details.pb.h"
#include "server/api/testing/byte_call.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// kTinySpecification with `line` in place of the line of the same field.
std::string With(const std::string& line) {
  std::string text;
  for (absl::string_view old : absl::StrSplit(kTinySpecification, '\n', absl::SkipEmpty())) {
    const bool same = old.substr(0, old.find(':')) == line.substr(0, line.find(':'));
    if (!same) absl::StrAppend(&text, old, "\n");
  }
  return absl::StrCat(text, line, "\n");
}

v1::CreateExperimentRequest TextRequest(std::string text) {
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(std::move(text));
  return request;
}

v1::CreateExperimentRequest TypedRequest() {
  v1::CreateExperimentRequest request;
  v1::ExperimentSpecification& specification = *request.mutable_specification();
  specification.set_name("right");
  specification.add_tasks()->set_name("bucket_sort");
  specification.add_networks()->set_name("encoder");
  specification.add_encodings()->set_name("none");
  specification.add_learning_rates(0.001);
  specification.mutable_training()->set_steps(10);
  specification.mutable_evaluation()->add_lengths(4);
  return request;
}

// "field: description" of every violation in the details of the status.
std::vector<std::string> Violations(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), static_cast<int>(status.error_code()));
  EXPECT_EQ(details.message(), status.error_message());
  std::vector<std::string> lines;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    if (!detail.UnpackTo(&bad_request)) continue;
    for (const auto& violation : bad_request.field_violations()) {
      lines.push_back(absl::StrCat(violation.field(), ": ", violation.description()));
    }
  }
  return lines;
}

// One server for all tests. A rejected request must leave nothing behind; tests that expect no
// experiments would notice.
class RefusalTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new Server(absl::StrCat(testing::TempDir(), "/refusals"), absl::Seconds(5));
    server_->Start();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static grpc::Status Create(const v1::CreateExperimentRequest& request,
                             v1::CreateExperimentResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    return server_->experiments().CreateExperiment(&context, request, response);
  }

  // Submits an invalid request and returns the lines of the answer.
  static std::vector<std::string> Refused(const v1::CreateExperimentRequest& request) {
    v1::CreateExperimentResponse response;
    const grpc::Status status = Create(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    const std::vector<std::string> lines = absl::StrSplit(status.error_message(), '\n');
    EXPECT_EQ(Violations(status), lines);
    EXPECT_THAT(ExperimentNames(), IsEmpty());
    return lines;
  }

  static std::vector<std::string> ExperimentNames() {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    v1::ListExperimentsResponse response;
    const grpc::Status status = server_->experiments().ListExperiments(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> names;
    for (const v1::Experiment& experiment : response.experiments()) {
      names.push_back(experiment.name());
    }
    return names;
  }

  static Server* server_;
};

Server* RefusalTest::server_ = nullptr;

// The output of `lengthwise validate` for a file with this text, after the first line.
std::vector<std::string> ValidatedLines(const std::string& text) {
  const std::string directory = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/specification.yaml";
  std::ofstream(path) << text;
  const auto [code, printed] = RunProgram({kClient, "validate", path}, directory + "/output");
  EXPECT_EQ(code, 2) << "a wrong specification exits with 2";
  const std::string first_line = absl::StrCat("lengthwise: ", path, " is not valid:\n  ");
  EXPECT_THAT(printed, AllOf(StartsWith(first_line), testing::EndsWith("\n")));
  if (printed.size() <= first_line.size()) return {};
  return absl::StrSplit(printed.substr(first_line.size(), printed.size() - first_line.size() - 1),
                        "\n  ");
}

struct WrongText {
  std::string name;
  std::string text;
  std::vector<std::string> lines;
};

void PrintTo(const WrongText& wrong, std::ostream* out) { *out << wrong.name; }

class WrongTextTest : public RefusalTest, public testing::WithParamInterface<WrongText> {};

TEST_P(WrongTextTest, ServerAndValidateAgree) {
  EXPECT_EQ(Refused(TextRequest(GetParam().text)), GetParam().lines);
  EXPECT_EQ(ValidatedLines(GetParam().text), GetParam().lines);
}

// `validate` does not read such a file.
TEST_F(RefusalTest, LongTextIsRefused) {
  const std::string text(3'000'000, ' ');
  EXPECT_EQ(Refused(TextRequest(text)),
            std::vector<std::string>{"text: got 3000000 bytes, expected at most 1048576"});
  const std::string path = testing::TempDir() + "/long.yaml";
  std::ofstream(path) << text;
  const auto [code, printed] = RunProgram({kClient, "validate", path}, path + ".output");
  EXPECT_EQ(code, 2);
  EXPECT_THAT(printed, HasSubstr("it has 3000000 bytes, expected at most 1048576"));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongTextTest,
    testing::ValuesIn(std::vector<WrongText>{
        {"NegativeLength",
         With("training: {steps: 10, lengths: {min: -3, max: 8}}"),
         {"training.lengths.min: got -3, expected an integer from 1 to 100000"}},
        {"NanLearningRate",
         With("learning_rates: .nan"),
         {"learning_rates[0]: got nan, expected a finite number above 0"}},
        {"EmptyGrid",
         With("encodings: []"),
         {"encodings: got an empty list, expected at least one value"}},
        {"TenMillionTrials",
         With("weight_seeds: 1..1000\ndata_seeds: 1..10000"),
         {"trials: 1,000 weight_seeds x 10,000 data_seeds = 10,000,000 trials; at most 100,000: "
          "give the grid fewer values or submit it in parts"}},
        {"UnknownField",
         With("learning_rate: 0.1"),
         {"learning_rate: unknown field; did you mean \"learning_rates\"?"}},
        {"NotUtf8", With("name: \xff\xfe"), {"line 7: not valid UTF-8"}},
        {"FiveMistakes",
         "name: five\n"
         "taskz: bucket_sort\n"
         "encodings: [none, rellative]\n"
         "learning_rates: [.nan]\n"
         "training: {steps: many, lengths: {min: -1}}\n"
         "evaluation: {lengths: 1..10}\n",
         {"taskz: unknown field; did you mean \"tasks\"?",
          "training.steps: got \"many\", expected an integer",
          "learning_rates[0]: got nan, expected a finite number above 0",
          "training.lengths.min: got -1, expected an integer from 1 to 100000",
          "encodings[1]: unknown encoding \"rellative\"; did you mean \"relative\"?"}},
    }),
    [](const auto& test) { return test.param.name; });

TEST_F(RefusalTest, TypedRequestGetsTheSameChecks) {
  v1::CreateExperimentRequest request = TypedRequest();
  request.mutable_specification()->set_learning_rates(0, std::numeric_limits<double>::quiet_NaN());
  request.mutable_specification()->mutable_evaluation()->set_lengths(0, -5);
  EXPECT_EQ(
      Refused(request),
      (std::vector<std::string>{"learning_rates[0]: got nan, expected a finite number above 0",
                                "evaluation.lengths: got -5, expected lengths from 1 to 100000"}));
}

TEST_F(RefusalTest, UnknownFieldNumberIsNamedWithItsPath) {
  v1::CreateExperimentRequest request = TypedRequest();
  v1::Training& training = *request.mutable_specification()->mutable_training();
  training.GetReflection()->MutableUnknownFields(&training)->AddVarint(7777, 1);
  EXPECT_THAT(Refused(request),
              testing::ElementsAre(AllOf(StartsWith("request.specification.training: "),
                                         HasSubstr("unknown field number 7777"))));
}

TEST_F(RefusalTest, ValidateOnlyStoresNothing) {
  v1::CreateExperimentRequest request = TextRequest(kTinySpecification);
  request.set_validate_only(true);
  v1::CreateExperimentResponse response;
  const grpc::Status status = Create(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.trial_count(), 1);
  EXPECT_THAT(ExperimentNames(), IsEmpty());
}

TEST_F(RefusalTest, HealthIsServing) {
  // grpc.health.v1: a request's field 1 is the service's name, an answer's field 1 the status, 1
  // (SERVING).
  for (const std::string& request : {std::string(), std::string("\x0a\x1flengthwise.v1."
                                                                "ExperimentService")}) {
    EXPECT_EQ(server::CallWithBytes(server_->address(), "/grpc.health.v1.Health/Check", request),
              "\x08\x01");
  }
}

TEST_F(RefusalTest, ReflectionListsTheServices) {
  // Field 7 of grpc.reflection.v1alpha.ServerReflectionRequest: list_services.
  const std::string answer = server::CallWithBytes(
      server_->address(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      "\x3a\x01*");
  for (const char* service :
       {"ExperimentService", "WorkerService", "FleetService", "CatalogueService"}) {
    EXPECT_THAT(answer, HasSubstr(absl::StrCat("lengthwise.v1.", service)));
  }
}

TEST_F(RefusalTest, PrometheusReadsTheNumberOfTrials) {
  EXPECT_THAT(monitoring::Scrape(server_->metrics_address()),
              AllOf(HasSubstr("# TYPE lengthwise_trials gauge\n"),
                    HasSubstr("\nlengthwise_trials{state=\"queued\"} 0\n")));
}

// Uses its own server, because it leaves an experiment.
TEST(RequestIdTest, RequestIdIsBoundToItsSpecification) {
  Server server(absl::StrCat(testing::TempDir(), "/request_id"), absl::Seconds(5));
  server.Start();
  const auto create = [&](const std::string& text, v1::CreateExperimentResponse& response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    v1::CreateExperimentRequest request = TextRequest(text);
    request.set_request_id("3f0c");
    return server.experiments().CreateExperiment(&context, request, &response);
  };
  v1::CreateExperimentResponse first, again, other;
  ASSERT_TRUE(create(kTinySpecification, first).ok());
  ASSERT_TRUE(create(kTinySpecification, again).ok());
  EXPECT_EQ(again.experiment().name(), first.experiment().name());
  EXPECT_EQ(create(With("learning_rates: 0.002"), other).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);

  grpc::ClientContext context;
  v1::ListExperimentsResponse list;
  ASSERT_TRUE(server.experiments().ListExperiments(&context, {}, &list).ok());
  EXPECT_THAT(list.experiments(), SizeIs(1));
}

}  // namespace
}  // namespace lengthwise::end_to_end
