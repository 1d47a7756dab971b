// `lengthwise plot` as a user types it, against a server in this process. The pictures stay in
// TEST_TMPDIR: run the test outside of Bazel with a directory of your own to look at them.
#include <cmath>
#include <cstring>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/program.h"
#include "client/connection/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kSeenUpTo = 40;

class PlotTest : public testing::Test {
 protected:
  PlotTest()
      : directory_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(platform::CreateDirectories(directory_).ok());
  }

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

  // Draws into a new PNG and returns its bytes.
  std::string Draw(std::vector<std::string> arguments) {
    const std::string path = absl::StrCat(directory_, "/picture", ++pictures_, ".png");
    arguments.insert(arguments.begin(), "plot");
    arguments.insert(arguments.end(), {"-o", path});
    EXPECT_EQ(Run(arguments), kSuccess) << err_;
    EXPECT_EQ(out_, path + "\n");
    return platform::ReadFile(path).value_or("");
  }

  // An experiment of one trial for each specification, named t0, t1, ...
  void AddExperiment(const std::string& id, const std::vector<v1::TrialSpecification>& trials) {
    std::vector<std::string> names;
    for (size_t i = 0; i < trials.size(); ++i) names.push_back(absl::StrCat("t", i));
    server_.AddExperiment(id, names);
    for (size_t i = 0; i < trials.size(); ++i) {
      server_.SetSpecification(Name(id, i), trials[i]);
    }
  }
  static std::string Name(const std::string& id, size_t trial) {
    return absl::StrCat("experiments/", id, "/trials/bucket_sort-t", trial);
  }

  // Accuracy falls beyond the seen lengths, the sooner the smaller `reach` is.
  void Evaluate(const std::string& trial, double reach, double guess) {
    v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
    evaluation.set_trial(trial);
    evaluation.mutable_accuracies()->set_final(true);
    for (int length = 1; length <= 500; ++length) {
      const double beyond = std::max(0, length - kSeenUpTo) / reach;
      evaluation.mutable_accuracies()->add_lengths(length);
      evaluation.mutable_accuracies()->add_accuracies(guess + (1 - guess) * std::exp(-beyond) +
                                                      0.01 * std::sin(0.7 * length + reach) - 0.01);
    }
    server_.AddEvaluation(evaluation);
  }

  FakeServer server_;
  const std::string directory_;
  int pictures_ = 0;
  std::string out_;
  std::string err_;
};

v1::TrialSpecification Specification(const std::string& task, const std::string& encoding,
                                     bool randomized, uint64_t seed) {
  v1::TrialSpecification specification;
  specification.mutable_task()->set_name(task);
  specification.mutable_task()->set_label(task);
  specification.mutable_network()->set_name("encoder");
  v1::Component& component = *specification.mutable_encoding();
  component.set_name(encoding);
  component.set_label(randomized ? "randomized_" + encoding : encoding);
  (*component.mutable_parameters())["randomized"].set_bool_value(randomized);
  specification.set_learning_rate(0.001);
  specification.set_weight_seed(seed);
  specification.mutable_training()->mutable_lengths()->set_min(1);
  specification.mutable_training()->mutable_lengths()->set_max(kSeenUpTo);
  specification.mutable_evaluation()->set_seen_up_to(kSeenUpTo);
  return specification;
}

// Width and height of a PNG, from its header.
std::pair<int, int> SizeOf(const std::string& png) {
  if (!absl::StartsWith(png, "\x89PNG") || png.size() < 24) return {0, 0};
  const auto number = [&](size_t at) {
    int value = 0;
    for (size_t i = at; i < at + 4; ++i) value = 256 * value + static_cast<unsigned char>(png[i]);
    return value;
  };
  return {number(16), number(20)};
}

TEST_F(PlotTest, HelpListsTheFiguresWithExamples) {
  EXPECT_EQ(Run({"plot", "--help"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("Examples:\n  lengthwise plot "));
  for (const std::string figure :
       {"accuracy_by_length", "loss", "attention", "attention_ground_truth", "projection",
        "length_sweep", "accuracy_over_time", "accuracy_over_steps", "accuracy_of_trials",
        "error_places", "error_counts"}) {
    EXPECT_THAT(out_, HasSubstr("\n    " + figure + " "));
  }
  EXPECT_EQ(Run({"--help"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("\n  plot "));
}

TEST_F(PlotTest, MistakesAreToldBeforeAServerIsAsked) {
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plot");
    arguments.insert(arguments.end(), {"--server", "127.0.0.1:1"});
    EXPECT_EQ(Run(arguments), kUsage);
    return err_;
  };
  EXPECT_THAT(refused({"e-1"}), HasSubstr("say what to draw: --figure accuracy_by_length|"));
  EXPECT_THAT(refused({"e-1", "--figure", "atention"}), HasSubstr("did you mean \"attention\"?"));
  EXPECT_THAT(refused({"e-1", "--figure", "loss", "-o", "a.pdf"}),
              HasSubstr("must end with .svg or .png"));
  EXPECT_THAT(refused({"e-1", "--figure", "loss", "--width", "7"}), HasSubstr("100 to 10000"));
  EXPECT_THAT(refused({"e-1", "--figure", "loss", "--layer", "1"}), HasSubstr("attention alone"));
  EXPECT_THAT(refused({"e-1", "--figure", "loss", "--length", "2"}),
              HasSubstr("attention, error_counts and error_places"));
  EXPECT_THAT(refused({"e-1", "--figure", "noise", "--metric", "loss"}),
              HasSubstr("--metric is for the figures accuracy_by_length"));
}

TEST_F(PlotTest, NamesThatAreNotThereGetASuggestion) {
  AddExperiment("e-1", {Specification("bucket_sort", "rope", false, 0)});
  const auto refused = [&](const std::string& experiment, const std::string& option,
                           const std::string& value) {
    EXPECT_EQ(Run({"plot", "--figure", "loss", option, value, experiment}), kFailure);
    return err_;
  };
  EXPECT_THAT(refused("f-1", "--task", "x"), HasSubstr("there is no experiment \"f-1\""));
  EXPECT_THAT(refused("e-1", "--task", "buckt_sort"),
              HasSubstr("e-1 has no task \"buckt_sort\"; did you mean \"bucket_sort\"?"));
  EXPECT_THAT(refused("e-1", "--encoding", "rop"), HasSubstr("did you mean \"rope\"?"));
  EXPECT_THAT(refused("e-1", "--learning_rate", "3"), HasSubstr("no learning rate \"3\""));
  EXPECT_THAT(refused("e-1", "--trial", "t9"), HasSubstr("there is no trial \"t9\""));
  EXPECT_THAT(refused("e-1", "--network", "encoder"), HasSubstr("training.report_every_steps"));
}

TEST_F(PlotTest, DrawsAPanelATaskAndALineAnEncoding) {
  std::vector<v1::TrialSpecification> trials;
  std::vector<std::pair<double, double>> measured;
  for (const tasks::TaskEntry* task : tasks::TaskEntries()) {
    if (task->kind != tasks::TaskKind::kTransduction) continue;
    int number = 0;
    for (const std::string encoding : {"none", "sin_cos", "learned", "relative", "alibi", "rope"}) {
      for (const bool randomized : {false, true}) {
        if (randomized && encoding == "none") continue;
        trials.push_back(Specification(task->name, encoding, randomized, 0));
        measured.emplace_back((randomized ? 300 : 20) + 25 * ++number, task->random_accuracy);
      }
    }
  }
  AddExperiment("e-1", trials);
  for (size_t i = 0; i < trials.size(); ++i) {
    Evaluate(Name("e-1", i), measured[i].first, measured[i].second);
  }
  const std::string png = Draw({"e-1", "--figure", "accuracy_by_length"});
  EXPECT_GT(SizeOf(png).first, 1000);
  Draw({"e-1", "--figure", "accuracy_by_length", "--task", "reverse_string", "--width", "800"});
  Draw({"e-1", "--figure", "accuracy_of_trials", "--task", "reverse_string"});
}

TEST_F(PlotTest, TheAskedSizeAndBothFormatsAndTheScript) {
  AddExperiment("e-1", {Specification("bucket_sort", "rope", false, 0)});
  Evaluate(Name("e-1", 0), 100, 0.2);
  EXPECT_EQ(
      SizeOf(Draw({"e-1", "--figure", "accuracy_by_length", "--width", "500", "--height", "400"})),
      std::make_pair(500, 400));
  const std::string svg = directory_ + "/a.svg";
  const std::string script = directory_ + "/a.gp";
  EXPECT_EQ(Run({"plot", "e-1/0", "--figure", "accuracy_by_length", "-o", svg, "--script", script,
                 "--title", "My title"}),
            kSuccess)
      << err_;
  EXPECT_EQ(out_, script + "\n" + svg + "\n");
  EXPECT_THAT(*platform::ReadFile(svg), HasSubstr("My title"));
  EXPECT_THAT(*platform::ReadFile(script), HasSubstr("set output '" + svg + "'"));
}

TEST_F(PlotTest, DrawsLossesHereAndInTheTerminal) {
  AddExperiment("e-1", {Specification("bucket_sort", "rope", false, 0),
                        Specification("bucket_sort", "rope", false, 1),
                        Specification("bucket_sort", "alibi", false, 0)});
  for (size_t trial = 0; trial < 3; ++trial) {
    v1::QueryLossCurvesResponse::Curve curve;
    curve.set_trial(Name("e-1", trial));
    for (int step = 100; step <= 30'000; step += 100) {
      curve.mutable_points()->add_steps(step);
      curve.mutable_points()->add_losses(
          static_cast<float>(1.6 * std::exp(-step / (2000.0 + 3000 * static_cast<double>(trial))) *
                             (1 + 0.5 * std::sin(step * 0.37))));
    }
    server_.AddLossCurve(curve);
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "loss"})).first, 700);
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "loss", "--terminal"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Training loss: e-1\n\nBucket Sort · cross-entropy, nats\n"));
  EXPECT_THAT(out_, HasSubstr(" RoPE\n"));
}

TEST_F(PlotTest, DrawsTheAttentionOfTheBestTrialOfEachEncoding) {
  std::vector<v1::TrialSpecification> trials;
  for (const bool randomized : {false, true}) {
    trials.push_back(Specification("reverse_string", "relative", randomized, 0));
    trials.back().mutable_evaluation()->add_attention_lengths(40);
    trials.back().mutable_evaluation()->add_attention_lengths(150);
  }
  AddExperiment("e-1", trials);
  for (size_t trial = 0; trial < 2; ++trial) {
    Evaluate(Name("e-1", trial), 100, 0.5);
    for (const int length : {40, 150}) {
      v1::AttentionMap map;
      const int tokens = 2 * length;
      map.set_length(length);
      map.set_layers(5);
      map.set_heads(2);
      for (int i = 0; i < tokens; ++i) map.add_tokens(i < length ? 0 : 2);
      std::vector<float> values;
      for (int layer = 0; layer < 5; ++layer) {
        for (int head = 0; head < 2; ++head) {
          for (int query = 0; query < tokens; ++query) {
            for (int key = 0; key < tokens; ++key) {
              // Output place q looks at its mirror image; trial 0 at long inputs less so.
              const double far = std::abs(query + key - tokens + 1) /
                                 (trial == 0 ? length / 20.0 : 2.0) / (5 - layer);
              values.push_back(static_cast<float>(0.9 * std::exp(-far) / (1 + 4 * head)));
            }
          }
        }
      }
      std::string bytes(values.size() * sizeof(float), '\0');
      std::memcpy(bytes.data(), values.data(), bytes.size());
      map.set_probabilities(bytes);
      server_.AddAttentionMap(Name("e-1", trial), map);
    }
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "attention"})).second, 700);
  Draw({"e-1", "--figure", "attention", "--length", "40", "--layer", "2", "--head", "1"});
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "attention", "--length", "41"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("no attention maps of length 41; recorded: 40, 150"));
}

TEST_F(PlotTest, DrawsAttentionBesideTheCellsThatSettleAPuzzle) {
  AddExperiment("e-1", {Specification("latin_square", "learned", false, 1),
                        Specification("latin_square", "sin_cos_2d", false, 1)});
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "attention_ground_truth"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("no trial that has succeeded has attention maps; record them with"));
  for (const size_t trial : {0, 1}) {
    server_.SetState(Name("e-1", trial), v1::SUCCEEDED);
    // Every cell of the row asked for, and the later the puzzle the more of its own.
    for (int target = 0; target < 16; ++target) {
      v1::AttentionMap map;
      map.set_length(1);
      map.set_sequence(target);
      map.set_layers(2);
      map.set_heads(1);
      const int row = target / 4 * 4;
      for (int cell = 0; cell < 16; ++cell) {
        const bool in_row = cell / 4 * 4 == row;
        map.add_tokens(cell == target ? 5 : in_row ? 1 + cell % 4 : 0);
      }
      std::vector<float> probabilities(2 * 256, 1.0F / 16);
      for (int key = 0; key < 16; ++key) {
        probabilities[static_cast<size_t>(256 + 16 * target + key)] =
            key / 4 * 4 == row ? 0.25F : 0.0F;
      }
      map.set_probabilities(probabilities.data(), probabilities.size() * sizeof(float));
      server_.AddAttentionMap(Name("e-1", trial), map);
    }
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "attention_ground_truth"})).first, 600);
  const std::string svg = absl::StrCat(directory_, "/truth.svg");
  ASSERT_EQ(Run({"plot", "e-1", "--figure", "attention_ground_truth", "-o", svg}), kSuccess)
      << err_;
  const std::string picture = platform::ReadFile(svg).value_or("");
  EXPECT_THAT(picture, HasSubstr("ground truth (even: 18.8 %)")) << "three cells of sixteen";
  EXPECT_THAT(picture, HasSubstr("layer 1: 18.8 %"));
  EXPECT_THAT(picture, HasSubstr("layer 2: 75.0 %"));
}

TEST_F(PlotTest, DrawsProjections) {
  std::vector<v1::TrialSpecification> trials;
  for (const bool randomized : {false, true}) {
    trials.push_back(Specification("reverse_string", "relative", randomized, 0));
    trials.back().mutable_evaluation()->mutable_projection()->set_sequences(30);
  }
  AddExperiment("e-1", trials);
  for (size_t trial = 0; trial < 2; ++trial) {
    Evaluate(Name("e-1", trial), 100, 0.5);
    for (const int length : {40, 150}) {
      v1::Projection projection;
      projection.set_fitted_length(40);
      projection.set_length(length);
      projection.set_sequences(30);
      projection.set_tokens(length);
      projection.set_depths(6);
      std::vector<float> values;
      for (int depth = 0; depth < 6; ++depth) {
        projection.add_explained_variance(0.6 - 0.05 * depth);
        projection.add_explained_variance(0.1);
        for (int point = 0; point < 30 * length; ++point) {
          const double angle = point * 2.4 + depth;
          const double radius = std::sqrt(point % 97 + 1.0);
          const double shift = length == 40 ? 0 : (trial == 0 ? 9 : 1) * depth;
          values.push_back(static_cast<float>(radius * std::cos(angle) + shift));
          values.push_back(static_cast<float>(0.4 * radius * std::sin(angle)));
        }
      }
      std::string bytes(values.size() * sizeof(float), '\0');
      std::memcpy(bytes.data(), values.data(), bytes.size());
      projection.set_coordinates(bytes);
      server_.AddProjection(Name("e-1", trial), projection);
    }
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "projection"})).first, 1000);
}

TEST_F(PlotTest, DrawsASweep) {
  std::vector<v1::TrialSpecification> trials;
  for (const std::string task : {"reverse_string", "missing_duplicate_string"}) {
    for (const int positions : {1024, 2048, 4096, 8192}) {
      for (uint64_t seed = 0; seed < 5; ++seed) {
        trials.push_back(Specification(task, "relative", true, seed));
        v1::Component& encoding = *trials.back().mutable_encoding();
        encoding.set_label(absl::StrCat("randomized_relative_max_position=", positions));
        (*encoding.mutable_parameters())["max_position"].set_number_value(positions);
      }
    }
  }
  AddExperiment("e-1", trials);
  for (size_t i = 0; i < trials.size(); ++i) {
    Evaluate(Name("e-1", i), 60.0 + 37 * static_cast<double>(i * 7 % 11), 0.5);
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "length_sweep"})).first, 700);
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "length_sweep", "--terminal"}), kUsage);
}

// As Figures F.4 to F.7 of the paper on decimal addition: lengths are learned one after another, by
// some seeds late.
TEST_F(PlotTest, DrawsEveryTrialOverSteps) {
  std::vector<v1::TrialSpecification> trials;
  for (const std::string encoding : {"fire", "rope"}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      trials.push_back(Specification("decimal_addition", encoding, false, seed));
    }
  }
  AddExperiment("e-1", trials);
  for (size_t trial = 0; trial < trials.size(); ++trial) {
    for (int step = 1000; step <= 50'000; step += 1000) {
      v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
      evaluation.set_trial(Name("e-1", trial));
      evaluation.set_step(step);
      for (const int digits : {30, 50, 70, 90}) {
        const double late =
            200.0 * digits + 1500 * static_cast<double>(trial % 10) + (trial < 10 ? 0 : 12'000);
        evaluation.mutable_accuracies()->add_lengths(digits);
        evaluation.mutable_accuracies()->add_accuracies(1 / (1 + std::exp((late - step) / 2000)));
      }
      server_.AddEvaluation(evaluation);
    }
  }
  EXPECT_GT(SizeOf(Draw({"e-1", "--figure", "accuracy_over_steps"})).second, 600);
  Draw({"e-1", "--figure", "accuracy_over_steps", "--encoding", "fire", "--length", "90"});
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "accuracy_over_steps", "--terminal"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Exact match over training: e-1\n\n30 digits, seen in training · "
                               "exact match\n"));
  EXPECT_EQ(Run({"plot", "e-1", "--figure", "accuracy_over_steps", "--metric", "digits"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("no evaluation of e-1 has \"digits\"; there are accuracy, loss"));
}

TEST_F(PlotTest, DrawsSeveralExperimentsOverTime) {
  for (const std::string id : {"long-1", "randomized-1"}) {
    AddExperiment(id, {Specification("missing_duplicate_string", "relative", id[0] == 'r', 0),
                       Specification("missing_duplicate_string", "relative", id[0] == 'r', 1)});
    for (size_t trial = 0; trial < 2; ++trial) {
      for (int i = 1; i <= 20; ++i) {
        v1::QueryLengthAccuraciesResponse::Evaluation evaluation;
        evaluation.set_trial(Name(id, trial));
        evaluation.set_step(1000 * i);
        const double rate = id[0] == 'l' ? 0.02 : 0.2;
        evaluation.mutable_accuracies()->set_training_seconds((id[0] == 'l' ? 900.0 : 300.0) * i);
        evaluation.mutable_accuracies()->add_lengths(200);
        evaluation.mutable_accuracies()->add_accuracies(
            1 - 0.5 * std::exp(-rate * i * (1 + 0.3 * static_cast<double>(trial))));
        server_.AddEvaluation(evaluation);
      }
    }
  }
  Draw({"long-1", "randomized-1", "--figure", "accuracy_over_time"});
  EXPECT_EQ(Run({"plot", "long-1", "randomized-1", "--figure", "accuracy_over_time", "--terminal"}),
            kSuccess)
      << err_;
  EXPECT_THAT(out_, HasSubstr("randomized-1: Randomized Relati"));
}

}  // namespace
}  // namespace lengthwise::client
