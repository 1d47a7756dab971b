// What other tools' own packages read of exports is tested in tests/python.
#include "client/export/export.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/connection/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kFirst[] = "experiments/e-1/trials/bucket_sort-none";
constexpr char kSecond[] = "experiments/e-1/trials/bucket_sort-sin_cos";

class ExportTest : public testing::Test {
 protected:
  ExportTest()
      : connection_(server_.address()),
        directory_(testing::TempDir() + "/export_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    server_.AddExperiment("e-1", {"none", "sin_cos"});
  }

  // The history of one trial, which the next watch gets: two points, and one evaluation, with this
  // metric beside accuracy and loss, and these scores.
  void AddHistory(const std::string& trial, const std::string& metric = "",
                  const v1::SequenceScores* scores = nullptr) {
    v1::WatchExperimentResponse response;
    v1::Event& points = *response.add_events();
    points.set_trial(trial);
    points.mutable_time()->set_seconds(1'700'000'001);
    for (int i = 1; i <= 2; ++i) {
      points.mutable_training_points()->add_steps(100 * i);
      points.mutable_training_points()->add_losses(0.1f * static_cast<float>(i));
      points.mutable_training_points()->add_accuracies(0.5f);
      points.mutable_training_points()->add_gradient_norms(2);
      points.mutable_training_points()->add_lengths(3 + i);
    }
    v1::Event& evaluation = *response.add_events();
    evaluation.set_trial(trial);
    evaluation.set_step(200);
    evaluation.mutable_length_accuracies()->set_final(true);
    evaluation.mutable_length_accuracies()->set_sequences(8);
    for (const int length : {2, 4}) {
      evaluation.mutable_length_accuracies()->add_lengths(length);
      evaluation.mutable_length_accuracies()->add_accuracies(1.0 / length);
      evaluation.mutable_length_accuracies()->add_losses(0.25);
    }
    if (!metric.empty()) {
      auto& values = *evaluation.mutable_length_accuracies()->add_metrics();
      values.set_name(metric);
      for (const double value : {0.75, 0.125}) values.add_values(value);
      v1::QueryLengthAccuraciesResponse::Evaluation known;
      known.set_trial(trial);
      *known.mutable_accuracies() = evaluation.length_accuracies();
      server_.AddEvaluation(known);
    }
    if (scores != nullptr) {
      v1::Event& scored = *response.add_events();
      scored.set_trial(trial);
      *scored.mutable_sequence_scores() = *scores;
    }
    response.set_caught_up(true);
    server_.AddWatchScript({{response}, grpc::Status::OK});
  }

  absl::StatusOr<ExportResult> Export(const std::string& name, const std::string& format,
                                      const std::string& out, bool replace = false) {
    return client::Export(connection_, name,
                          {.format = format, .path = Path(out), .replace = replace},
                          [](int, int) { return true; });
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::vector<std::string> Names(const std::string& name = "") const {
    return platform::ListDirectory(Path(name)).value();
  }
  std::vector<std::string> Lines(const std::string& name) const {
    return absl::StrSplit(platform::ReadFile(Path(name)).value_or("none"), '\n', absl::SkipEmpty());
  }

  FakeServer server_;
  Connection connection_;
  const std::string directory_;
};

TEST_F(ExportTest, ADirectoryIsNotNamedLikeAFile) {
  for (const std::string format : {"csv", "npz", "safetensors"}) {
    const std::string file = absl::StrCat("x.", format);
    const absl::Status refused = Export("e", format, file).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(
        std::string(refused.message()),
        AllOf(HasSubstr(absl::StrCat(file, "\" names one file")), HasSubstr("name a directory")))
        << format;
    EXPECT_FALSE(std::filesystem::exists(Path(file)));
  }
}

TEST_F(ExportTest, CsvHasATableOfEachKindWithItsColumnsExplained) {
  AddHistory(kFirst);
  AddHistory(kSecond);
  const auto result = Export("e", "csv", "tables");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->trials, 2);
  EXPECT_THAT(Names("tables"), ElementsAre("columns.json", "export.json", "length_accuracies.csv",
                                           "loss_curves.csv", "trials.csv"));
  EXPECT_THAT(Lines("tables/trials.csv"), SizeIs(3));
  EXPECT_THAT(Lines("tables/loss_curves.csv"),
              ElementsAre("trial,task,network,encoding,learning_rate,weight_seed,data_seed,step,"
                          "loss,accuracy,gradient_norm,length,time",
                          absl::StrCat(kFirst,
                                       ",bucket_sort,encoder,none,0.001,0,0,100,0.1,0.5,2,"
                                       "4,2023-11-14T22:13:21.000Z"),
                          absl::StrCat(kFirst,
                                       ",bucket_sort,encoder,none,0.001,0,0,200,0.2,0.5,2,"
                                       "5,2023-11-14T22:13:21.000Z"),
                          StartsWith(kSecond), StartsWith(kSecond)));
  // Trained on lengths up to 2.
  EXPECT_THAT(Lines("tables/length_accuracies.csv")[1],
              HasSubstr(",none,0.001,0,0,200,true,2,true,0.5,0.25,8,"));
  EXPECT_THAT(Lines("tables/length_accuracies.csv")[2],
              HasSubstr(",none,0.001,0,0,200,true,4,false,0.25,0.25,8,"));
  const auto columns =
      nlohmann::json::parse(platform::ReadFile(Path("tables/columns.json")).value());
  for (const auto& [table, meanings] : columns.items()) {
    const std::vector<std::string> header = absl::StrSplit(Lines("tables/" + table)[0], ',');
    EXPECT_THAT(meanings, SizeIs(header.size())) << table;
    for (const std::string& column : header) {
      EXPECT_FALSE(meanings.value(column, "").empty()) << table << " " << column;
    }
  }
}

TEST_F(ExportTest, JsonIsOneDocumentWithTheSame) {
  AddHistory(kFirst);
  AddHistory(kSecond);
  ASSERT_TRUE(Export("e-1", "json", "e.json").ok());
  const auto json = nlohmann::json::parse(platform::ReadFile(Path("e.json")).value());
  EXPECT_EQ(json["experiment"], "experiments/e-1");
  ASSERT_THAT(json["trials"], SizeIs(2));
  const auto& trial = json["trials"][1];
  EXPECT_EQ(trial["trial"], kSecond);
  EXPECT_EQ(trial["specification"]["task"]["name"], "bucket_sort");
  EXPECT_EQ(trial["loss_curve"]["steps"], (std::vector<int>{100, 200}));
  EXPECT_EQ(trial["loss_curve"]["losses"], (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(trial["evaluations"][0]["accuracies"], (std::vector<double>{0.5, 0.25}));
  EXPECT_TRUE(trial["seen_accuracy"].is_null());
}

TEST_F(ExportTest, OtherMetricsHaveColumnsOfTheirNames) {
  AddHistory(kFirst, "digits_accuracy");
  AddHistory(kSecond);
  ASSERT_TRUE(Export("e", "csv", "tables").ok());
  const std::vector<std::string> lines = Lines("tables/length_accuracies.csv");
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_THAT(lines[0], EndsWith(",training_seconds,digits_accuracy"));
  EXPECT_THAT(lines[1], EndsWith(",0.75"));
  EXPECT_THAT(lines[2], EndsWith(",0.125"));
  EXPECT_THAT(lines[3], EndsWith(",")) << "that trial has none";
  const auto columns =
      nlohmann::json::parse(platform::ReadFile(Path("tables/columns.json")).value());
  EXPECT_THAT(columns["length_accuracies.csv"].value("digits_accuracy", ""),
              HasSubstr("digits accuracy"));

  AddHistory(kFirst, "digits_accuracy");
  ASSERT_TRUE(Export("e-1/0", "json", "t.json").ok());
  const auto json = nlohmann::json::parse(platform::ReadFile(Path("t.json")).value());
  EXPECT_EQ(json["trials"][0]["evaluations"][0]["metrics"],
            (nlohmann::json{{"digits_accuracy", {0.75, 0.125}}}));

  AddHistory(kFirst, "digits_accuracy");
  ASSERT_TRUE(Export("e-1/0", "npz", "t.npz").ok());
  EXPECT_THAT(platform::ReadFile(Path("t.npz")).value(), HasSubstr("final_digits_accuracy.npy"));

  AddHistory(kFirst, "digits_accuracy");
  ASSERT_TRUE(Export("e-1/0", "tensorboard", "logs").ok());
  const std::string run = "logs/" + Names("logs/")[0];
  EXPECT_THAT(platform::ReadFile(Path(run + "/" + Names(run)[0])).value(),
              HasSubstr("final/digits_accuracy_by_length"));
}

TEST_F(ExportTest, JsonHasTheScoresOfSingleSequencesWhereTheyWereAskedFor) {
  v1::SequenceScores scores;
  scores.set_length(4);
  for (const float accuracy : {1.0F, 0.0F}) {
    scores.add_accuracies(accuracy);
    scores.add_losses(0.5F);
  }
  auto& answer = *scores.add_wrong_answers();
  answer.set_sequence(1);
  answer.add_places(0);
  answer.add_places(3);
  answer.set_carry_into_first(true);
  AddHistory(kFirst, "", &scores);
  AddHistory(kSecond);
  ASSERT_TRUE(Export("e-1", "json", "e.json").ok());
  const auto trials = nlohmann::json::parse(platform::ReadFile(Path("e.json")).value())["trials"];
  ASSERT_THAT(trials, SizeIs(2));
  EXPECT_EQ(trials[0]["sequence_scores"], nlohmann::json::parse(R"json([{
    "length": 4, "accuracies": [1.0, 0.0], "losses": [0.5, 0.5],
    "wrong_answers": [{"sequence": 1, "places": [0, 3], "carry_into_first": true}]}])json"));
  EXPECT_FALSE(trials[1].contains("sequence_scores"));
}

TEST_F(ExportTest, ATrialAloneIsItsExperimentWithOneTrial) {
  AddHistory(kSecond);
  const auto result = Export("e-1/1", "json", "t.json");
  ASSERT_TRUE(result.ok()) << result.status();
  const auto json = nlohmann::json::parse(platform::ReadFile(Path("t.json")).value());
  ASSERT_THAT(json["trials"], SizeIs(1));
  EXPECT_EQ(json["trials"][0]["trial"], kSecond);
}

TEST_F(ExportTest, ModelsAreWrittenAsTheyAreStoredAndMissingOnesAreTold) {
  const std::string bytes(1234, 'm');
  server_.SetModel(kSecond, 200, bytes);
  const auto result = Export("e-1", "safetensors", "models");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->trials, 1);
  EXPECT_THAT(result->absent, ElementsAre(HasSubstr("bucket_sort-none has no stored model")));
  EXPECT_THAT(Names("models"), ElementsAre("bucket_sort-sin_cos.safetensors", "export.json"));
  EXPECT_EQ(platform::ReadFile(Path("models/bucket_sort-sin_cos.safetensors")).value(), bytes);

  ASSERT_TRUE(Export("e-1/1", "safetensors", "one.safetensors").ok());
  EXPECT_EQ(platform::ReadFile(Path("one.safetensors")).value(), bytes);
  EXPECT_TRUE(absl::IsNotFound(Export("e-1/0", "safetensors", "none").status()));
}

TEST_F(ExportTest, ADamagedModelIsLeftOutAndTold) {
  server_.SetModel(kFirst, 200, std::string(1000, 'm'), std::string(64, '0'));
  server_.SetModel(kSecond, 200, "whole");
  const auto result = Export("e-1", "safetensors", "models");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->damaged, ElementsAre(HasSubstr("was damaged on its way")));
  EXPECT_THAT(Names("models"), ElementsAre("bucket_sort-sin_cos.safetensors", "export.json"));
  EXPECT_TRUE(absl::IsDataLoss(Export("e-1/0", "safetensors", "one").status()));
  EXPECT_THAT(Names(), ElementsAre("models"));
}

TEST_F(ExportTest, EachTrialIsARunOfTensorboard) {
  AddHistory(kFirst);
  AddHistory(kSecond);
  ASSERT_TRUE(Export("e-1", "tensorboard", "logs").ok());
  EXPECT_THAT(Names("logs"), ElementsAre("bucket_sort-none", "bucket_sort-sin_cos", "export.json"));
  EXPECT_THAT(Names("logs/bucket_sort-none"), ElementsAre(HasSubstr(".tfevents.")));
}

TEST_F(ExportTest, LatexIsOfExperimentsThatHaveResults) {
  v1::SummarizeExperimentResponse summary;
  auto& cell = *summary.add_cells();
  cell.set_task("bucket_sort");
  cell.set_network("encoder");
  cell.set_encoding("sin_cos");
  cell.mutable_trials()->set_succeeded(2);
  cell.mutable_unseen_accuracy()->set_trials(2);
  cell.mutable_unseen_accuracy()->set_mean(0.25);
  cell.mutable_training_accuracy()->set_trials(2);
  cell.mutable_training_accuracy()->set_mean(0.75);
  cell.add_lengths(2);
  cell.add_lengths(4);
  cell.add_mean_accuracies(0.5);
  cell.add_mean_accuracies(0.25);
  EXPECT_TRUE(absl::IsNotFound(Export("e-1", "latex", "none.tex").status()));
  server_.SetSummary("experiments/e-1", summary);
  // The tables beside published ones are the Python package's; this prints its arguments.
  setenv("LENGTHWISE_PYTHON", "/bin/echo", 1);
  ASSERT_TRUE(Export("e-1", "latex", "e.tex").ok());
  EXPECT_THAT(
      platform::ReadFile(Path("e.tex")).value(),
      EndsWith("\\end{table}\n\n-m lengthwise results experiments/e-1 --compare all --output "
               "latex\n"));
  EXPECT_THAT(platform::ReadFile(Path("e.tex")).value(),
              AllOf(HasSubstr("\\begin{table}"), HasSubstr("\\toprule"), HasSubstr("50.0"),
                    HasSubstr("training set"), HasSubstr("75.0"),
                    HasSubstr("\\caption{e-1: Token accuracy by input length, per cent ("),
                    HasSubstr("\\label{tab:e-1}")));
  const absl::Status trial = Export("e-1/0", "latex", "t.tex").status();
  EXPECT_TRUE(absl::IsInvalidArgument(trial));
  EXPECT_THAT(Names(), ElementsAre("e.tex"));
}

TEST_F(ExportTest, AnInterruptedOrRefusedExportLeavesNothing) {
  AddHistory(kFirst);
  AddHistory(kSecond);
  int calls = 0;
  const auto interrupted = client::Export(
      connection_, "e-1", {.format = "csv", .path = Path("tables")}, [&calls](int done, int all) {
        EXPECT_EQ(all, 2);
        ++calls;
        return done < 1;
      });
  EXPECT_TRUE(absl::IsCancelled(interrupted.status()));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(Export("e-1", "parquet", "x").status()));
  EXPECT_TRUE(absl::IsNotFound(Export("nothing", "csv", "x").status()));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(ExportTest, ALargeModelCanBeInterrupted) {
  server_.SetModel(kFirst, 200, std::string(3 << 20, 'm'));
  int calls = 0;
  const auto interrupted =
      client::Export(connection_, "e-1/0", {.format = "safetensors", .path = Path("model")},
                     [&calls](int done, int) {
                       EXPECT_EQ(done, 0);
                       return ++calls < 2;
                     });
  EXPECT_TRUE(absl::IsCancelled(interrupted.status()));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(ExportTest, WhatIsThereIsNotReplacedUnasked) {
  AddHistory(kFirst);
  ASSERT_TRUE(Export("e-1/0", "json", "t.json").ok());
  const absl::Status refused = Export("e-1/0", "json", "t.json").status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--force"));
  AddHistory(kFirst);
  EXPECT_TRUE(Export("e-1/0", "json", "t.json", /*replace=*/true).ok());
}

TEST_F(ExportTest, TrialsCannotBeNamedOutOfTheDirectory) {
  server_.AddExperiment("hostile-1", {"/.."});
  for (const ExportFormat& format : ExportFormats()) {
    const auto result = Export("hostile-1", format.name, "inside");
    EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition) << format.name;
    EXPECT_THAT(result.status().message(),
                HasSubstr("\"experiments/hostile-1/trials/bucket_sort-/..\", which no file"));
    EXPECT_THAT(Names(), testing::IsEmpty()) << format.name;
  }
}

}  // namespace
}  // namespace lengthwise::client
