#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/catalogue_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/rpc_details.pb.h"
#include "server/api/queries.h"
#include "server/api/rpc_server.h"
#include "server/api/services.h"
#include "server/api/testing/test_server.h"
#include "specification/catalogues.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The entries of a catalogue with one encoding and one task.
std::vector<v1::CatalogueEntry> SomeEntries() {
  models::EncodingEntry encoding;
  encoding.name = "sin_cos";
  encoding.title = "sin/cos";
  encoding.documentation = "Section 3.5.";
  encoding.parameters = {{"randomized", false, "Whether positions are drawn."},
                         {"max_position", int64_t{2048}, "Largest.", 1},
                         {"scale", 0.5, "A factor.", 0, 1},
                         {"mode", std::string("a"), "One of two.", {}, {}, {"a", "b"}}};
  tasks::TaskEntry task;
  task.name = "bucket_sort";
  const models::EncodingEntry* const encodings[] = {&encoding};
  const tasks::TaskEntry* const all_tasks[] = {&task};
  return CatalogueEntries({.tasks = all_tasks, .encodings = encodings});
}

class ExperimentServiceTest : public ::testing::Test {
 protected:
  ExperimentServiceTest() {
    RpcServer::Options options;
    options.catalogue = SomeEntries();
    EXPECT_EQ(server_.AddExperiment("grid", 2), kExperiment);
    server_.Serve(std::move(options));
    channel_ = server_.Connect();
    stub_ = v1::ExperimentService::NewStub(channel_);
  }

  // Calls one unary method of the stub.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::ExperimentService::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return (stub_.get()->*method)(&context, request, &response);
  }

  void AppendPoints(const std::string& trial, int from, int to) {
    v1::Event event;
    event.set_trial(trial);
    for (int i = from; i < to; ++i) {
      event.mutable_training_points()->add_steps(i);
      event.mutable_training_points()->add_losses(static_cast<float>(i));
      event.mutable_training_points()->add_accuracies(0);
      event.mutable_training_points()->add_gradient_norms(0);
      event.mutable_training_points()->add_lengths(1);
    }
    server_.Append(event);
  }
  // Number of experiments.
  int Experiments() { return server_.core().reads().ListExperiments({})->experiments_size(); }

  TestServer server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
};

TEST_F(ExperimentServiceTest, CreateStoresTheExperimentAndAnswers) {
  v1::CreateExperimentRequest request;
  request.set_request_id("r1");
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.001);
  request.mutable_specification()->add_seeds(1);
  v1::CreateExperimentResponse response;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::CreateExperiment, request, response).ok());
  EXPECT_EQ(response.experiment().name(), "experiments/sort-1");
  EXPECT_THAT(response.trial_ids(), ElementsAre("t0"));
  const auto stored = server_.core().reads().GetExperiment("experiments/sort-1");
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->specification().SerializeAsString(),
            request.specification().SerializeAsString());
}

TEST_F(ExperimentServiceTest, DiskUseIsMeasuredUnlessOmitted) {
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.001);
  request.mutable_specification()->add_seeds(1);
  v1::CreateExperimentResponse response;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::CreateExperiment, request, response).ok());
  v1::GetExperimentRequest get;
  get.set_name(response.experiment().name());
  v1::Experiment found;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::GetExperiment, get, found).ok());
  EXPECT_TRUE(found.has_disk_use());
  get.set_omit_disk_use(true);
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::GetExperiment, get, found).ok());
  EXPECT_FALSE(found.has_disk_use());
}

TEST_F(ExperimentServiceTest, LargeSpecificationIsRefusedUnresolved) {
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(std::string(3 << 20, '#'));
  v1::CreateExperimentResponse response;
  const grpc::Status status =
      Call(&v1::ExperimentService::Stub::CreateExperiment, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "text: got 3145728 bytes, expected at most 1048576");
  EXPECT_EQ(Experiments(), 1) << "the fixture's";
}

TEST(ExperimentServiceQueries, CancelledQueryIsNotHandled) {
  TestServer server;
  const std::string experiment = server.AddExperiment("e", 1);
  RpcServer::Options options;
  options.reader_threads = 1;
  server.Serve(std::move(options));
  const auto channel = server.Connect();
  const auto stub = v1::ExperimentService::NewStub(channel);
  const auto query = [&](std::chrono::milliseconds patience) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    v1::QueryLossCurvesRequest request;
    request.set_name(experiment);
    v1::QueryLossCurvesResponse response;
    return stub->QueryLossCurves(&context, request, &response).error_code();
  };
  server.read_gate().Hold();
  const int64_t before = server.read_gate().reads();
  std::thread first([&] { EXPECT_EQ(query(std::chrono::seconds(30)), grpc::StatusCode::OK); });
  ASSERT_TRUE(TestServer::Await([&] { return server.read_gate().reads() > before; }));
  EXPECT_EQ(query(std::chrono::milliseconds(20)), grpc::StatusCode::DEADLINE_EXCEEDED);
  // On the same connection after the end of that call: once this is answered, the server knows.
  const auto access = v1::AccessService::NewStub(channel);
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::Caller caller;
    EXPECT_TRUE(access->GetCaller(&context, {}, &caller).ok());
  }
  server.read_gate().Release();
  first.join();
  EXPECT_EQ(query(std::chrono::seconds(30)), grpc::StatusCode::OK);
  EXPECT_EQ(server.read_gate().reads(), before + 2);
}

TEST_F(ExperimentServiceTest, ClientsFindFieldViolationsInTheDetails) {
  v1::ListTrialsRequest request;
  request.set_parent(kExperiment);
  request.set_page_size(-5);
  v1::ListTrialsResponse response;
  const grpc::Status status = Call(&v1::ExperimentService::Stub::ListTrials, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(status.error_details()));
  google::rpc::BadRequest bad_request;
  ASSERT_EQ(wire.details_size(), 1);
  ASSERT_TRUE(wire.details(0).UnpackTo(&bad_request));
  EXPECT_EQ(bad_request.field_violations(0).field(), "page_size");
}

TEST_F(ExperimentServiceTest, RetryQueuesTrialsAgainAndChecksItsStates) {
  server_.EndTrial(kTrial, v1::FAILED);
  v1::RetryTrialsRequest request;
  request.set_name(kExperiment);
  v1::RetryTrialsResponse response;
  const auto retry = [&] {
    return Call(&v1::ExperimentService::Stub::RetryTrials, request, response);
  };
  EXPECT_EQ(retry().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "no state";
  request.add_states(v1::SUCCEEDED);
  EXPECT_THAT(retry().error_message(), HasSubstr("got SUCCEEDED, expected FAILED, CANCELLED"));
  request.clear_states();
  request.add_states(v1::FAILED);
  ASSERT_TRUE(retry().ok());
  EXPECT_EQ(response.retried_trials(), 1);
  EXPECT_EQ(response.experiment().name(), kExperiment);
  ASSERT_TRUE(retry().ok());
  EXPECT_EQ(response.retried_trials(), 0);
  request.set_name("experiments/none-1");
  EXPECT_EQ(retry().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ExperimentServiceTest, ReadsReturnStoredRecords) {
  v1::GetTrialRequest request;
  request.set_name(kTrial);
  v1::Trial trial;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::GetTrial, request, trial).ok());
  EXPECT_EQ(trial.name(), kTrial);
  request.set_name("experiments/grid-1/trials/t9");
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::GetTrial, request, trial).error_code(),
            grpc::StatusCode::NOT_FOUND);

  v1::ListTrialsRequest list;
  list.set_parent(kExperiment);
  v1::ListTrialsResponse trials;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::ListTrials, list, trials).ok());
  EXPECT_EQ(trials.trials_size(), 2);
}

TEST_F(ExperimentServiceTest, CommandsReturnTheCoresAnswers) {
  server_.EndTrial(kTrial, v1::SUCCEEDED);
  v1::CancelTrialRequest cancel;
  cancel.set_name(kTrial);
  v1::Trial trial;
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::CancelTrial, cancel, trial).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);

  v1::DeleteExperimentRequest remove;
  remove.set_name(kExperiment);
  v1::DeleteExperimentResponse removed;
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::DeleteExperiment, remove, removed).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "a trial runs";
  cancel.set_name("experiments/grid-1/trials/t1");
  EXPECT_TRUE(Call(&v1::ExperimentService::Stub::CancelTrial, cancel, trial).ok());
  EXPECT_EQ(trial.state(), v1::CANCELLED);
  EXPECT_TRUE(Call(&v1::ExperimentService::Stub::DeleteExperiment, remove, removed).ok());
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::DeleteExperiment, remove, removed).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ExperimentServiceTest, LossCurvesAreJoinedAndDownSampledPerTrial) {
  AppendPoints(kTrial, 0, 5);
  AppendPoints("experiments/grid-1/trials/t1", 0, 3);
  AppendPoints(kTrial, 5, 8);
  v1::QueryLossCurvesRequest request;
  request.set_name(kExperiment);
  request.set_max_points(4);
  v1::QueryLossCurvesResponse response;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::QueryLossCurves, request, response).ok());
  ASSERT_EQ(response.curves_size(), 2);
  EXPECT_EQ(response.curves(0).trial(), kTrial);
  EXPECT_THAT(response.curves(0).points().losses(), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(response.curves(1).points().losses(), ElementsAre(0, 1, 2));

  request.set_name("experiments/grid-1/trials/t1");
  response.Clear();
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::QueryLossCurves, request, response).ok());
  ASSERT_EQ(response.curves_size(), 1);

  for (int32_t max_points : {1, -1, 100'001}) {
    request.set_max_points(max_points);
    const grpc::Status status =
        Call(&v1::ExperimentService::Stub::QueryLossCurves, request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("max_points: is"));
  }
}

TEST_F(ExperimentServiceTest, OversizedAnswerSaysHowToAskForLess) {
  AppendPoints(kTrial, 0, 1000);
  v1::QueryLossCurvesRequest request;
  request.set_name(kTrial);
  EXPECT_TRUE(LossCurves(server_.core().event_log(), request, 100'000).ok());
  const auto answer = LossCurves(server_.core().event_log(), request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const absl::Status status = LossCurves(server_.core().event_log(), request, 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), absl::StrCat("the answer has ", answer->curves(0).ByteSizeLong(),
                                           " bytes, expected at most 1000; ask for fewer "
                                           "max_points or for one trial at a time"));
}

// Streams find the positions first and read each event when the client is ready for it.
TEST_F(ExperimentServiceTest, PositionThatIsNoLongerTheTrialsIsAborted) {
  const std::string trial = kTrial;
  const std::string other = "experiments/grid-1/trials/t1";
  AppendPoints(trial, 0, 1);
  AppendPoints(other, 0, 1);
  AppendPoints(trial, 1, 2);
  EventLog& log = server_.core().event_log();
  const auto page = log.ReadEvents(kExperiment, 0, 100);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_GE(page->events.size(), 3);
  for (const v1::Event& event : page->events) {
    const auto found = EventAt(log, event.trial(), event.position());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->position(), event.position());
    const absl::Status status =
        EventAt(log, event.trial() == trial ? other : trial, event.position()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  }
}

TEST_F(ExperimentServiceTest, ReturnsIntervalAccuraciesOnRequest) {
  v1::Event event;
  event.set_trial(kTrial);
  event.set_step(500);
  event.mutable_length_accuracies()->add_lengths(3);
  event.mutable_length_accuracies()->add_losses(1);
  event.mutable_length_accuracies()->add_accuracies(0.25);
  server_.Append(event);
  event.set_step(1000);
  event.mutable_length_accuracies()->set_final(true);
  event.mutable_length_accuracies()->set_accuracies(0, 0.75);
  server_.Append(event);

  v1::QueryLengthAccuraciesRequest request;
  request.set_name(kExperiment);
  v1::QueryLengthAccuraciesResponse response;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::QueryLengthAccuracies, request, response).ok());
  ASSERT_EQ(response.evaluations_size(), 1);
  EXPECT_EQ(response.evaluations(0).step(), 1000);
  EXPECT_EQ(response.evaluations(0).accuracies().accuracies(0), 0.75);

  request.set_include_intervals(true);
  response.Clear();
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::QueryLengthAccuracies, request, response).ok());
  EXPECT_EQ(response.evaluations_size(), 2);
}

TEST_F(ExperimentServiceTest, StreamsAttentionMapsOneByOneByLength) {
  for (int length : {10, 20, 10}) {
    v1::Event event;
    event.set_trial(kTrial);
    event.mutable_attention_map()->set_length(length);
    event.mutable_attention_map()->set_layers(1);
    event.mutable_attention_map()->set_heads(250'000);
    event.mutable_attention_map()->add_tokens(1);
    event.mutable_attention_map()->add_positions(0);
    event.mutable_attention_map()->set_probabilities(std::string(1'000'000, 'p'));
    server_.Append(event);
  }
  const auto lengths = [&](const std::string& name, int length, grpc::StatusCode expected) {
    v1::QueryAttentionMapsRequest request;
    request.set_name(name);
    request.set_length(length);
    grpc::ClientContext context;
    const auto reader = stub_->QueryAttentionMaps(&context, request);
    std::vector<int> result;
    v1::AttentionMap map;
    while (reader->Read(&map)) result.push_back(map.length());
    EXPECT_EQ(reader->Finish().error_code(), expected);
    return result;
  };
  EXPECT_THAT(lengths(kTrial, 0, grpc::StatusCode::OK), ElementsAre(10, 20, 10));
  EXPECT_THAT(lengths(kTrial, 10, grpc::StatusCode::OK), ElementsAre(10, 10));
  EXPECT_THAT(lengths("experiments/grid-1/trials/t1", 0, grpc::StatusCode::OK), ElementsAre());
  EXPECT_THAT(lengths("experiments/grid-1/trials/t9", 0, grpc::StatusCode::NOT_FOUND),
              ElementsAre());
  EXPECT_THAT(lengths(kExperiment, 0, grpc::StatusCode::INVALID_ARGUMENT), ElementsAre());
}

TEST_F(ExperimentServiceTest, ExtensionsAndEvaluationsAddTrials) {
  v1::ExtendExperimentRequest extend;
  extend.set_name(kExperiment);
  v1::ExtendExperimentResponse extended;
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::ExtendExperiment, extend, extended).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  extend.add_seeds(7);
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::ExtendExperiment, extend, extended).ok());
  EXPECT_EQ(extended.added_trials(), 1);
  EXPECT_EQ(extended.experiment().name(), kExperiment);
  extend.set_name("experiments/none-1");
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::ExtendExperiment, extend, extended).error_code(),
            grpc::StatusCode::NOT_FOUND);

  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial(kExperiment);
  v1::CreateExperimentResponse evaluated;
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::EvaluateTrial, evaluate, evaluated).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  evaluate.set_trial(kTrial);
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::EvaluateTrial, evaluate, evaluated).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "it has no model yet";
  server_.EndTrial(kTrial, v1::SUCCEEDED);
  evaluate.mutable_evaluation()->add_lengths(500);
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::EvaluateTrial, evaluate, evaluated).ok());
  EXPECT_EQ(evaluated.trial_count(), 1);
  EXPECT_EQ(evaluated.experiment().specification().evaluated_trial(), kTrial);
}

TEST_F(ExperimentServiceTest, SummariesMayOmitLengths) {
  v1::Event event;
  event.set_trial(kTrial);
  event.set_step(1000);
  v1::LengthAccuracies& accuracies = *event.mutable_length_accuracies();
  accuracies.set_final(true);
  for (int length = 1; length <= 1000; ++length) {
    accuracies.add_lengths(length);
    accuracies.add_accuracies(0.5);
    accuracies.add_losses(1);
  }
  server_.Append(event);
  server_.EndTrial(kTrial, v1::SUCCEEDED);
  v1::SummarizeExperimentRequest request;
  request.set_name(kExperiment);
  v1::SummarizeExperimentResponse response;
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::SummarizeExperiment, request, response).ok());
  ASSERT_EQ(response.cells_size(), 1);
  EXPECT_EQ(response.cells(0).lengths_size(), 1000);
  EXPECT_EQ(response.cells(0).mean_accuracies(999), 0.5);
  EXPECT_EQ(Summary(server_.core().reads(), request, 1000).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Summary(server_.core().reads(), request, 1000).status().message()),
              HasSubstr("set omit_lengths"));
  request.set_omit_lengths(true);
  ASSERT_TRUE(Call(&v1::ExperimentService::Stub::SummarizeExperiment, request, response).ok());
  EXPECT_EQ(response.cells(0).task(), "bucket_sort");
  EXPECT_EQ(response.cells(0).lengths_size(), 0);

  request.set_name("experiments/none-1");
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::SummarizeExperiment, request, response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  request.set_name(kTrial);
  EXPECT_EQ(Call(&v1::ExperimentService::Stub::SummarizeExperiment, request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExperimentServiceTest, StreamsProjectionsOneByOne) {
  for (int length : {40, 150}) {
    v1::Event event;
    event.set_trial(kTrial);
    event.mutable_projection()->set_length(length);
    event.mutable_projection()->set_fitted_length(length);
    event.mutable_projection()->set_depths(1);
    event.mutable_projection()->set_sequences(125'000);
    event.mutable_projection()->set_tokens(1);
    event.mutable_projection()->add_explained_variance(0.5);
    event.mutable_projection()->add_explained_variance(0.25);
    event.mutable_projection()->set_coordinates(std::string(1'000'000, 'p'));
    server_.Append(event);
  }
  const auto lengths = [&](const std::string& name, grpc::StatusCode expected) {
    v1::QueryProjectionsRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    const auto reader = stub_->QueryProjections(&context, request);
    std::vector<int> result;
    v1::Projection projection;
    while (reader->Read(&projection)) result.push_back(projection.length());
    EXPECT_EQ(reader->Finish().error_code(), expected);
    return result;
  };
  EXPECT_THAT(lengths(kTrial, grpc::StatusCode::OK), ElementsAre(40, 150));
  EXPECT_THAT(lengths("experiments/grid-1/trials/t1", grpc::StatusCode::OK), ElementsAre());
  EXPECT_THAT(lengths("experiments/grid-1/trials/t9", grpc::StatusCode::NOT_FOUND), ElementsAre());
  EXPECT_THAT(lengths(kExperiment, grpc::StatusCode::INVALID_ARGUMENT), ElementsAre());
}

TEST_F(ExperimentServiceTest, StreamsAnalysesByKind) {
  v1::Event errors;
  errors.set_trial(kTrial);
  errors.mutable_answer_errors()->set_length(3);
  v1::Event scores;
  scores.set_trial("experiments/grid-1/trials/t1");
  scores.mutable_sequence_scores()->set_length(2);
  v1::Event answer;
  answer.set_trial(kTrial);
  answer.mutable_answer()->set_length(3);
  server_.Append(answer);
  server_.Append(errors);
  server_.Append(scores);
  const auto kinds = [&](const std::string& name, grpc::StatusCode expected) {
    v1::QueryAnalysesRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    const auto reader = stub_->QueryAnalyses(&context, request);
    std::vector<int> result;
    v1::Event event;
    while (reader->Read(&event)) result.push_back(event.fact_case());
    EXPECT_EQ(reader->Finish().error_code(), expected);
    return result;
  };
  EXPECT_THAT(
      kinds(kExperiment, grpc::StatusCode::OK),
      ElementsAre(v1::Event::kSequenceScores, v1::Event::kAnswerErrors, v1::Event::kAnswer));
  EXPECT_THAT(kinds(kTrial, grpc::StatusCode::OK),
              ElementsAre(v1::Event::kAnswerErrors, v1::Event::kAnswer));
  EXPECT_THAT(kinds("experiments/grid-1/trials/t9", grpc::StatusCode::NOT_FOUND), ElementsAre());
}

TEST_F(ExperimentServiceTest, ResolvingStoresNothing) {
  const auto stub = v1::CatalogueService::NewStub(channel_);
  const auto resolve = [&](const std::string& yaml, v1::ExperimentSpecification& resolved) {
    v1::ResolveSpecificationRequest request;
    request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
    request.mutable_specification_text()->set_text(yaml);
    v1::ResolveSpecificationResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->ResolveSpecification(&context, request, &response);
    resolved = response.specification();
    return status;
  };
  v1::ExperimentSpecification resolved;
  ASSERT_TRUE(resolve("name: x\nprotocol: latin_square\nseeds: [1]\n", resolved).ok());
  // Ito et al., section 3: 8,000 puzzles in batches of 128, 4,001 times.
  EXPECT_EQ(resolved.training().steps(), 4001 * 63);
  EXPECT_EQ(resolved.training().examples(), 8000);
  EXPECT_EQ(resolved.seeds_size(), 1);

  const grpc::Status wrong = resolve("name: x\nprotocol: latin_squares\n", resolved);
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(wrong.error_message(), HasSubstr("latin_squares"));
  EXPECT_FALSE(wrong.error_details().empty());
  EXPECT_EQ(resolve(std::string(3 << 20, '#'), resolved).error_message(),
            "text: got 3145728 bytes, expected at most 1048576");
  EXPECT_EQ(Experiments(), 1) << "the fixture's";
}

TEST_F(ExperimentServiceTest, CatalogueListsTypesDefaultsAndLimits) {
  const auto stub = v1::CatalogueService::NewStub(channel_);
  v1::ListCatalogueEntriesRequest request;
  v1::ListCatalogueEntriesResponse response;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->ListCatalogueEntries(&context, request, &response).ok());
    EXPECT_EQ(response.entries_size(), 2);
  }
  request.set_kind(v1::ENCODING);
  response.Clear();
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->ListCatalogueEntries(&context, request, &response).ok());
  }
  ASSERT_EQ(response.entries_size(), 1);
  const v1::CatalogueEntry& entry = response.entries(0);
  EXPECT_EQ(entry.name(), "sin_cos");
  EXPECT_EQ(entry.title(), "sin/cos");
  ASSERT_EQ(entry.parameters_size(), 4);
  EXPECT_EQ(entry.parameters(0).type(), "bool");
  EXPECT_TRUE(entry.parameters(0).default_value().has_bool_value());
  EXPECT_EQ(entry.parameters(1).type(), "integer");
  EXPECT_EQ(entry.parameters(1).default_value().number_value(), 2048);
  EXPECT_EQ(entry.parameters(1).minimum(), 1);
  EXPECT_FALSE(entry.parameters(1).has_maximum());
  EXPECT_EQ(entry.parameters(2).type(), "number");
  EXPECT_EQ(entry.parameters(2).maximum(), 1);
  EXPECT_EQ(entry.parameters(3).type(), "string");
  EXPECT_THAT(entry.parameters(3).allowed(), ElementsAre("a", "b"));
}

class ModelDownload {
 public:
  ModelDownload(v1::ExperimentService::Stub& stub, const std::string& trial) {
    v1::DownloadModelRequest request;
    request.set_name(trial);
    const auto reader = stub.DownloadModel(&context_, request);
    v1::DownloadModelResponse response;
    while (reader->Read(&response)) responses_.push_back(response);
    status_ = reader->Finish();
  }
  const grpc::Status& status() const { return status_; }
  const std::vector<v1::DownloadModelResponse>& responses() const { return responses_; }

 private:
  grpc::ClientContext context_;
  grpc::Status status_;
  std::vector<v1::DownloadModelResponse> responses_;
};

TEST_F(ExperimentServiceTest, ModelComesInChunksAfterItsDescription) {
  std::string bytes((2 << 20) + 5, 'x');
  bytes[1 << 20] = 'y';
  server_.PutModel(kTrial, 40, bytes);
  const ModelDownload download(*stub_, kTrial);
  ASSERT_TRUE(download.status().ok()) << download.status().error_message();
  ASSERT_FALSE(download.responses().empty());
  EXPECT_EQ(download.responses()[0].step(), 40);
  EXPECT_EQ(download.responses()[0].checkpoint().size_bytes(), (2 << 20) + 5);
  std::string back;
  for (const v1::DownloadModelResponse& response : download.responses()) {
    EXPECT_LE(response.data().size(), 1u << 20);
    back += response.data();
  }
  EXPECT_EQ(back, bytes);
}

TEST_F(ExperimentServiceTest, DownloadNeedsATrialWithAModel) {
  EXPECT_EQ(ModelDownload(*stub_, kTrial).status().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ModelDownload(*stub_, kExperiment).status().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExperimentServiceTest, NetworkOfATrialNeedsFiles) {
  const grpc::Status built_in = ModelDownload(*stub_, absl::StrCat(kTrial, "/network")).status();
  EXPECT_EQ(built_in.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(built_in.error_message(), HasSubstr("has no files: it is the built-in"));
  EXPECT_EQ(ModelDownload(*stub_, absl::StrCat(kExperiment, "/network")).status().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExperimentServiceTest, AbandonedDownloadsFreeTheirThreads) {
  server_.PutModel(kTrial, 1, std::string(32 << 20, 'x'));
  v1::DownloadModelRequest request;
  request.set_name(kTrial);
  // More downloads than threads: each thread must be freed.
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    const auto reader = stub_->DownloadModel(&context, request);
    v1::DownloadModelResponse response;
    ASSERT_TRUE(reader->Read(&response));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

}  // namespace
}  // namespace lengthwise::server
