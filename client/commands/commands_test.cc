// The commands as a user types them, against a server in this process.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "client/commands/program.h"
#include "client/connection/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSpecification[] =
    "name: e\n"
    "tasks: bucket_sort\n"
    "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
    "encodings: [none, sin_cos]\n"
    "learning_rates: 0.001\n"
    "seeds: [0, 1, 2]\n"
    "training: {steps: 10, batch_size: 4, lengths: {min: 1, max: 4}}\n"
    "evaluation: {lengths: [4, 8], sequences: 8}\n";

class CommandsTest : public testing::Test {
 protected:
  // The exit code; what was written is in out_ and err_.
  int Run(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Program program(out, err);
    program.server = server_.address();
    const int code = Main(arguments, program);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  FakeServer server_;
  std::string out_;
  std::string err_;
};

TEST_F(CommandsTest, EveryCommandHasHelpWithAnExample) {
  EXPECT_EQ(Run({"--help"}), kSuccess);
  for (const std::string command :
       {"run",       "validate",  "sample", "tasks",   "encodings", "networks", "optimizers",
        "schedules", "protocols", "submit", "watch",   "results",   "compare",  "attention",
        "evaluate",  "export",    "extend", "list",    "show",      "cancel",   "retry",
        "delete",    "workers",   "logs",   "storage", "backup",    "auth",     "config"}) {
    EXPECT_THAT(out_, HasSubstr("\n  " + command + " "));
    std::ostringstream out;
    Program program(out, out);
    EXPECT_EQ(Main({command, "--help"}, program), kSuccess);
    EXPECT_THAT(out.str(), HasSubstr("Examples:\n  lengthwise " + command)) << command;
  }
}

TEST_F(CommandsTest, ConfigSaysWhereEachSettingComesFrom) {
  EXPECT_EQ(Run({"config", "--output", "json", "--token_file", "/ada.token"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("{\"setting\":\"token_file\",\"value\":\"/ada.token\",\"origin\":"
                              "\"--token_file\"}"));
  EXPECT_THAT(out_, HasSubstr("{\"setting\":\"tls_ca\",\"value\":\"\",\"origin\":\"default\"}"));
}

TEST_F(CommandsTest, ATokenIsNamedByItsFileAndNotReadFromTheCommandLine) {
  EXPECT_EQ(Run({"list", "--token", "lw_secret"}), kUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("unknown option \"--token\""), Not(HasSubstr("lw_secret"))));
  EXPECT_EQ(Run({"list", "--token_file", testing::TempDir() + "/none"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cannot read the token file"));
}

TEST_F(CommandsTest, SuggestsWhatWasMeant) {
  EXPECT_EQ(Run({"sumbit", "x.yaml"}), kUsage);
  EXPECT_EQ(err_,
            "lengthwise: unknown command \"sumbit\"; did you mean \"submit\"?; see `lengthwise "
            "--help`\n");
  EXPECT_EQ(Run({"sample", "bucket_sort", "--lenght", "4"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("unknown option \"--lenght\"; did you mean \"--length\"?"));
  EXPECT_EQ(Run({"tasks", "buckt_sort"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("unknown task \"buckt_sort\"; did you mean \"bucket_sort\"?"));
}

TEST_F(CommandsTest, UnreachableServerSaysWhatToDo) {
  EXPECT_EQ(Run({"list", "--server", "127.0.0.1:1"}), kUnreachable);
  EXPECT_EQ(err_,
            "lengthwise: cannot reach a server at 127.0.0.1:1 (Connection refused); start "
            "`lengthwise_server`, pass --server HOST:PORT, or train here with `lengthwise run "
            "SPEC`\n");
}

TEST_F(CommandsTest, SamplesAreJsonLinesThatSolveToTheirTargets) {
  auto task = tasks::CreateTask("bucket_sort", {});
  ASSERT_TRUE(task.ok());
  const auto& bucket_sort = dynamic_cast<const tasks::TransductionTask&>(**task);
  ASSERT_EQ(Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "7",
                 "--output", "json"}),
            kSuccess);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 20u);
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const std::vector<int32_t> input = json["input"];
    std::vector<int32_t> target(input.size());
    ASSERT_EQ(input.size(), 12u);
    bucket_sort.Solve(input, absl::MakeSpan(target));
    EXPECT_EQ(json["target"].get<std::vector<int32_t>>(), target);
    EXPECT_EQ(json["mask"].size(), target.size());
  }
  const std::string first = out_;
  Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "7", "--output=json"});
  EXPECT_EQ(out_, first);
  Run({"sample", "bucket_sort", "--length", "12", "--count", "20", "--seed", "8", "--output=json"});
  EXPECT_NE(out_, first);
}

TEST_F(CommandsTest, ListsAndExplainsTheCatalogue) {
  EXPECT_EQ(Run({"encodings", "--output", "json"}), kSuccess);
  const nlohmann::json all = nlohmann::json::parse(out_);
  EXPECT_GE(all.size(), 3u);
  EXPECT_EQ(Run({"encodings", "sin_cos"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("max_position (integer, default "));
}

TEST_F(CommandsTest, ValidatesWithoutAServer) {
  EXPECT_EQ(Run({"validate", File("e.yaml", kSpecification), "--server", "x"}), kUsage);
  EXPECT_EQ(Run({"validate", File("e.yaml", kSpecification)}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("is valid, 6 trials in 2 packs"));
  EXPECT_EQ(Run({"validate", File("bad.yaml", "name: e\ntasks: bucket_srt\nencodings: rotery\n")}),
            kUsage);
  EXPECT_THAT(err_, HasSubstr("bad.yaml is not valid:\n  "));
  EXPECT_THAT(err_, HasSubstr("bucket_srt"));
  EXPECT_THAT(err_, HasSubstr("rotery"));
  EXPECT_EQ(Run({"validate", "/nowhere/e.yaml"}), kUsage);
  EXPECT_EQ(err_, "lengthwise: cannot read /nowhere/e.yaml (No such file or directory)\n");
}

TEST_F(CommandsTest, SubmitsTheTextOnceWithARequestId) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Submitted e-1: 6 trials in 2 packs\n  lengthwise watch e-1"));
  const auto requests = server_.create_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].specification_text().text(), kSpecification);
  EXPECT_EQ(requests[0].owner(), "ada");
  EXPECT_EQ(requests[0].request_id().size(), 24u);
}

TEST_F(CommandsTest, ADryRunSubmitsNothing) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--dry-run"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("e: 6 trials in 2 packs; nothing was submitted\n"));
  EXPECT_THAT(out_, HasSubstr("Estimated time: unknown: no trials of the same"));
  EXPECT_TRUE(server_.create_requests().empty());
}

TEST_F(CommandsTest, ListsExperiments) {
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No experiments yet."));
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"list", "--output", "csv"}), kSuccess);
  EXPECT_EQ(out_,
            "name,owner,description,create_time,trials,queued,running,succeeded,failed,cancelled\n"
            "experiments/e-1,ada,,2023-11-14T22:13:20+00:00,2,2,0,0,0,0\n");
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("2 queued"));
  EXPECT_EQ(Run({"list", "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("2 queued"));
  EXPECT_EQ(Run({"list", "--owner", "eve"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("eve has no experiments here"));
}

TEST_F(CommandsTest, ShowsExperimentsAndTrials) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("1  bucket_sort-sin_cos  queued"));
  EXPECT_EQ(Run({"show", "e/1"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("bucket_sort-sin_cos\n"));
  EXPECT_THAT(out_, HasSubstr("history       cannot be read: "));
  EXPECT_EQ(Run({"show", "e-1", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["trials"].size(), 2u);
  EXPECT_EQ(Run({"show", "f-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no experiment \"f-1\""));
}

TEST_F(CommandsTest, ShowsWhoChangedATrialWhenAndWhy) {
  server_.AddExperiment("e-1", {"none"});
  v1::WatchExperimentResponse response;
  v1::Event& event = *response.add_events();
  event.set_trial("experiments/e-1/trials/bucket_sort-none");
  event.mutable_time()->set_seconds(1'700'000'000);
  event.mutable_state_change()->set_from(v1::RUNNING);
  event.mutable_state_change()->set_to(v1::QUEUED);
  event.mutable_state_change()->set_actor("worker n07-1");
  event.mutable_state_change()->set_reason("gave it back");
  response.add_events()->mutable_log_line()->set_text("not a change");
  response.set_caught_up(true);
  for (int i = 0; i < 2; ++i) server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"show", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("queued            user ada      submitted"));
  EXPECT_THAT(out_, HasSubstr("running → queued  worker n07-1  gave it back"));
  EXPECT_THAT(out_, Not(HasSubstr("not a change")));
  EXPECT_EQ(server_.watch_requests()[0].name(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_TRUE(server_.watch_requests()[0].log_only());
  EXPECT_EQ(Run({"show", "e-1/0", "--output", "json"}), kSuccess);
  const nlohmann::json shown = nlohmann::json::parse(out_);
  EXPECT_EQ(shown["name"], "experiments/e-1/trials/bucket_sort-none");
  ASSERT_EQ(shown["history"].size(), 1u);
  EXPECT_EQ(shown["history"][0]["state_change"]["actor"], "worker n07-1");
}

TEST_F(CommandsTest, RetriesWhatFailedAndOnRequestWhatWasCancelled) {
  server_.AddExperiment("e-1", {"none", "sin_cos", "alibi"});
  server_.SetState("experiments/e-1/trials/bucket_sort-none", v1::FAILED);
  server_.SetState("experiments/e-1/trials/bucket_sort-sin_cos", v1::CANCELLED);
  server_.SetState("experiments/e-1/trials/bucket_sort-alibi", v1::SUCCEEDED);
  EXPECT_EQ(Run({"retry", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Queued 1 trial of e-1 again: 1 queued, 1 done, 1 cancelled.\n");
  EXPECT_EQ(Run({"retry", "e-1", "--failed"}), kSuccess);
  EXPECT_EQ(out_, "No trial of e-1 has failed; nothing was queued.\n");
  EXPECT_EQ(Run({"retry", "e-1/2"}), kSuccess);
  EXPECT_EQ(out_,
            "The trial bucket_sort-alibi is not one that has failed or was cancelled; nothing was "
            "queued.\n");
  EXPECT_EQ(Run({"retry", "e-1/1"}), kSuccess);
  EXPECT_EQ(out_, "Queued the trial bucket_sort-sin_cos again: 2 queued, 1 done.\n");
  EXPECT_EQ(Run({"retry", "f-1"}), kFailure);
}

TEST_F(CommandsTest, CancelsAndDeletes) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"delete", "e-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cancel first"));
  EXPECT_EQ(Run({"cancel", "e-1/0"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled the trial bucket_sort-none.\n");
  EXPECT_EQ(Run({"cancel", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled e-1: 2 cancelled.\n");
  EXPECT_EQ(Run({"delete", "e"}), kFailure);  // only by its full name
  EXPECT_TRUE(server_.deleted().empty());
  EXPECT_EQ(Run({"delete", "e-1"}), kSuccess);
  EXPECT_EQ(server_.deleted(), std::vector<std::string>{"experiments/e-1"});
}

TEST_F(CommandsTest, ListsWorkers) {
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No workers yet."));
  v1::Worker worker;
  worker.set_worker_id("n07-cuda0");
  worker.set_alive(true);
  worker.add_trials("experiments/e-1/trials/t");
  worker.set_steps_per_second(38.06);
  server_.AddWorker(worker);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("n07-cuda0  busy"));
  EXPECT_THAT(out_, HasSubstr("38.1"));
}

// A cell of succeeded trials, seen up to length 2.
v1::SummarizeExperimentResponse Summary(const std::string& encoding, int trials, double unseen) {
  v1::SummarizeExperimentResponse summary;
  auto& cell = *summary.add_cells();
  cell.set_task("bucket_sort");
  cell.set_network("encoder");
  cell.set_encoding(encoding);
  cell.set_learning_rate(0.001);
  cell.mutable_trials()->set_succeeded(trials);
  cell.mutable_unseen_accuracy()->set_trials(trials);
  cell.mutable_unseen_accuracy()->set_mean(unseen);
  cell.mutable_unseen_accuracy()->set_deviation(trials > 1 ? 0.05 : 0);
  cell.mutable_unseen_accuracy()->set_max(unseen);
  return summary;
}

TEST_F(CommandsTest, ResultsKeepSeenAndUnseenApart) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  server_.SetState("experiments/e-1/trials/bucket_sort-none", v1::SUCCEEDED);
  v1::SummarizeExperimentResponse summary = Summary("none", 1, 0.292);
  auto& cell = *summary.mutable_cells(0);
  cell.mutable_seen_accuracy()->set_trials(1);
  cell.mutable_seen_accuracy()->set_mean(0.75);
  for (int length = 1; length <= 4; ++length) {
    cell.add_lengths(length);
    cell.add_mean_accuracies(1.0 / length);
  }
  summary.add_cells()->mutable_trials()->set_queued(1);
  server_.SetSummary("experiments/e-1", summary);
  v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
  evaluation.set_trial("experiments/e-1/trials/bucket_sort-none");
  evaluation.mutable_accuracies()->set_final(true);
  evaluation.mutable_accuracies()->set_sequences(500);
  for (int length = 1; length <= 4; ++length) {
    evaluation.mutable_accuracies()->add_lengths(length);
    evaluation.mutable_accuracies()->add_accuracies(1.0 / length);
  }
  server_.AddEvaluation(evaluation);
  EXPECT_EQ(Run({"results", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("none     │ 100.0  50.0  75.0 │ 33.3  25.0  29.2\n"));
  EXPECT_THAT(out_, HasSubstr("1 of 2 trials are not in the table"));
  EXPECT_EQ(Run({"results", "e-1", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr(",4,false,0.25,"));
}

TEST_F(CommandsTest, ResultsStandBesideAPublishedTable) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"results", "e-1", "--compare", "randomized_pe/table_1"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("e-1 beside Table 1 of Ruoss et al. 2023 (ACL)"));
  EXPECT_THAT(out_, HasSubstr("0 of 165 cells run"));
  EXPECT_EQ(Run({"results", "e-1", "--compare", "randomized_pe/table_1", "--output", "csv"}),
            kSuccess);
  EXPECT_THAT(out_, HasSubstr("\nbucket_sort,CS,true,20,rand_alibi,,,0,99.6,,,false,false\n"));
}

TEST_F(CommandsTest, PublishedTablesAreListedWithoutAServer) {
  EXPECT_EQ(Run({"results", "--compare", "list", "--server", "127.0.0.1:1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("randomized_pe/table_1 "));
  EXPECT_EQ(Run({"results", "e", "--compare", "randomised_pe/table_1", "--server", "127.0.0.1:1"}),
            kUsage);
  EXPECT_THAT(err_, HasSubstr("did you mean \"randomized_pe/table_1\"?"));
  EXPECT_EQ(Run({"results"}), kUsage);
}

TEST_F(CommandsTest, ComparesTwoExperimentsCellByCell) {
  server_.AddExperiment("e-1", {"none"});
  server_.AddExperiment("f-1", {"none"});
  server_.SetSummary("experiments/e-1", Summary("none", 3, 0.5));
  server_.SetSummary("experiments/f-1", Summary("none", 1, 0.875));
  EXPECT_EQ(Run({"compare", "e-1", "f-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("none     │ 50.0 ± 5.0  3 │     87.5  1 │ +37.5\n"));
  EXPECT_THAT(out_, HasSubstr("Both were trained and scored alike."));
  EXPECT_EQ(Run({"compare", "e-1", "f-1", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\nbucket_sort,encoder,none,0.001,0.5,0.05,3,0.875,,1,0.375\n"));
  EXPECT_EQ(Run({"compare", "e-1", "g-1"}), kFailure);
}

TEST_F(CommandsTest, ExtendsAnExperimentBySeeds) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"extend", "e", "--seeds", "10..12,20"}), kSuccess);
  EXPECT_EQ(out_, "Added 4 trials to e-1\n");
  const auto requests = server_.extend_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].name(), "experiments/e-1");
  EXPECT_THAT(requests[0].seeds(), testing::ElementsAre(10, 11, 12, 20));
  EXPECT_EQ(Run({"extend", "e"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("extend needs new seeds, such as --seeds 10..19"));
  EXPECT_EQ(Run({"extend", "e", "--seeds", "ten"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--seeds: got \"ten\""));
}

TEST_F(CommandsTest, EvaluatesAStoredModel) {
  server_.AddExperiment("e-1", {"none"});
  server_.AddExperiment("e_evaluation-1", {"none"});
  v1::SummarizeExperimentResponse summary = Summary("none", 1, 0.5);
  summary.mutable_cells(0)->add_lengths(41);
  summary.mutable_cells(0)->add_mean_accuracies(0.5);
  server_.SetSummary("experiments/e_evaluation-1", summary);
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"evaluate", "e-1/0", "--lengths", "41..43", "--sequences", "7"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("Evaluating bucket_sort-none again as e_evaluation-1\n"));
  EXPECT_THAT(out_, HasSubstr("50.0"));
  const auto requests = server_.evaluate_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].trial(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_THAT(requests[0].evaluation().lengths(), testing::ElementsAre(41, 42, 43));
  EXPECT_EQ(requests[0].evaluation().sequences(), 7);
  EXPECT_FALSE(requests[0].evaluation().has_seed());
}

v1::AttentionMap TwoTokens(int input_number) {
  v1::AttentionMap map;
  map.set_length(1);
  map.set_input_number(input_number);
  map.set_layers(1);
  map.set_heads(1);
  map.add_tokens(3);
  map.add_tokens(5);
  const float values[] = {1, 0, 0.25, 0.75};
  map.set_probabilities(values, sizeof(values));
  return map;
}

TEST_F(CommandsTest, ShowsRecordedAttention) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"attention", "e-1/0"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("has no attention maps; record them with"));
  server_.AddAttentionMap("experiments/e-1/trials/bucket_sort-none", TwoTokens(0));
  EXPECT_EQ(Run({"attention", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("│██  │\n├░░▓▓┤\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\n1,1,1,1,0,0.25\n"));
  EXPECT_EQ(Run({"attention", "e-1/0", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["maps"][0]["probabilities"][0][0][1][1], 0.75);
  EXPECT_EQ(Run({"attention", "e-1/0", "--layer", "2"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--layer: got 2, the network has 1 layers"));
}

TEST_F(CommandsTest, ShowsAttentionForTheUsersOwnInput) {
  server_.AddExperiment("e-1", {"none"});
  server_.AddExperiment("e_evaluation-1", {"none"});
  // One that the task sampled is recorded beside it.
  server_.AddAttentionMap("experiments/e_evaluation-1/trials/bucket_sort-none", TwoTokens(0));
  server_.AddAttentionMap("experiments/e_evaluation-1/trials/bucket_sort-none", TwoTokens(1));
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"attention", "e-1/0", "--input", "[3]", "--output", "json"}), kSuccess);
  const nlohmann::json maps = nlohmann::json::parse(out_)["maps"];
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0]["tokens"], nlohmann::json::parse("[3, 5]"));
  const auto requests = server_.evaluate_requests();
  ASSERT_EQ(requests.size(), 1u);
  ASSERT_EQ(requests[0].evaluation().attention_inputs_size(), 1);
  EXPECT_THAT(requests[0].evaluation().attention_inputs(0).tokens(), testing::ElementsAre(3));
}

TEST_F(CommandsTest, AWatchTellsEachEventOnceAndFailsWithItsTrials) {
  server_.AddExperiment("e-1", {"none"});
  v1::WatchExperimentResponse response;
  v1::Event& event = *response.add_events();
  event.set_position(5);
  event.set_trial("experiments/e-1/trials/bucket_sort-none");
  event.mutable_state_change()->set_to(v1::FAILED);
  event.mutable_state_change()->set_reason("the loss is not a number");
  response.set_caught_up(true);
  response.set_next_position(6);
  server_.AddWatchScript({{response}, {grpc::StatusCode::UNAVAILABLE, "restarting"}});
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"watch", "e-1", "--output", "json"}), kFailure);
  EXPECT_EQ(nlohmann::json::parse(out_)["position"], "5");  // one line, so said once
  EXPECT_EQ(server_.watch_requests()[1].start_position(), 6);

  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"watch", "e-1"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("none  failed: the loss is not a number\n"));
  EXPECT_THAT(out_, Not(HasSubstr("\x1b")));
}

v1::Event LogEvent(int64_t position, v1::LogLine::Severity severity, const std::string& text) {
  v1::Event event;
  event.set_position(position);
  event.set_trial("experiments/e-1/trials/bucket_sort-none");
  event.mutable_time()->set_seconds(1'700'000'000 + position);
  event.mutable_log_line()->set_severity(severity);
  event.mutable_log_line()->set_text(text);
  return event;
}

// A trial's log: it started, warned, and failed; and the stream then stays open or ends.
FakeServer::WatchScript Log() {
  v1::WatchExperimentResponse history;
  v1::Event started = LogEvent(1, v1::LogLine::INFO, "");
  started.mutable_state_change()->set_to(v1::RUNNING);
  started.mutable_state_change()->set_worker("n07");
  started.mutable_state_change()->set_resumed_from_step(300);
  started.mutable_state_change()->set_reason("leased");
  started.set_attempt(2);
  *history.add_events() = started;
  *history.add_events() = LogEvent(2, v1::LogLine::WARNING, "another build wrote the checkpoint");
  history.set_caught_up(true);
  history.set_next_position(3);
  v1::WatchExperimentResponse live;
  *live.add_events() = LogEvent(3, v1::LogLine::ERROR, "out of memory\nin layer 3");
  live.set_next_position(4);
  return {.responses = {history, live}, .status = grpc::Status::OK};
}

TEST_F(CommandsTest, LogsSaysWhatHappenedToATrialInPlainLines) {
  setenv("TZ", "UTC", 1);
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  server_.AddWatchScript(Log());
  EXPECT_EQ(Run({"logs", "e-1/0"}), kSuccess) << err_;
  EXPECT_EQ(out_,
            "2023-11-14 22:13:21  state    running on n07, attempt 2, from step 300: leased\n"
            "2023-11-14 22:13:22  warning  another build wrote the checkpoint\n");
  const v1::WatchExperimentRequest request = server_.watch_requests().at(0);
  EXPECT_EQ(request.name(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_TRUE(request.log_only());
}

TEST_F(CommandsTest, LogsFollowsToTheEndAndBeginsWithTheTail) {
  setenv("TZ", "UTC", 1);
  server_.AddExperiment("e-1", {"none"});
  server_.AddWatchScript(Log());
  EXPECT_EQ(Run({"logs", "e-1/0", "--follow", "--tail", "1"}), kSuccess) << err_;
  EXPECT_EQ(out_,
            "2023-11-14 22:13:22  warning  another build wrote the checkpoint\n"
            "2023-11-14 22:13:23  error    out of memory\n    in layer 3\n");
  server_.AddWatchScript(Log());
  EXPECT_EQ(Run({"logs", "e-1/0", "--follow", "--output", "json"}), kSuccess);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(lines[2])["text"], "out of memory\nin layer 3");
  EXPECT_EQ(Run({"logs", "e-1/7"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no trial \"7\""));
}

TEST_F(CommandsTest, ShowsWhatAnExperimentTakesOnTheDisk) {
  server_.AddExperiment("e-1", {"none"});
  v1::DiskUse use;
  use.set_artifact_bytes(3 << 20);
  use.set_artifacts(1);
  use.set_event_bytes(2048);
  use.set_events(1234);
  server_.SetDiskUse("experiments/e-1", use);
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("on disk       3.0 MiB in 1 checkpoint, 2.0 KiB in 1,234 events"));
  EXPECT_EQ(Run({"show", "e"}), kSuccess) << "found by its specification's name";
  EXPECT_THAT(out_, HasSubstr("on disk"));
}

TEST_F(CommandsTest, BacksUpAndShowsTheServersDisk) {
  EXPECT_EQ(Run({"backup", "monday"}), kSuccess);
  EXPECT_EQ(out_,
            "Backed up 2.0 MiB to /data/backups/monday on the server. To go back to it:\n"
            "  lengthwise_server --data_dir NEW --restore /data/backups/monday\n");
  EXPECT_EQ(Run({"backup", "taken"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is a backup \"taken\" already"));
  v1::Storage storage;
  storage.set_data_dir("/data");
  storage.set_database_bytes(5 << 20);
  storage.set_artifact_bytes(int64_t{7} << 30);
  storage.set_artifacts(4950);
  storage.set_free_bytes(int64_t{100} << 30);
  v1::Backup& backup = *storage.add_backups();
  backup.set_name("monday");
  backup.set_bytes(1 << 30);
  server_.SetStorage(storage);
  EXPECT_EQ(Run({"storage"}), kSuccess);
  for (const char* part : {"/data", "5.0 MiB", "7.0 GiB in 4,950", "100.0 GiB", "monday"}) {
    EXPECT_THAT(out_, HasSubstr(part));
  }
  EXPECT_EQ(Run({"storage", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)[3]["name"], "monday");
}

}  // namespace
}  // namespace lengthwise::client
