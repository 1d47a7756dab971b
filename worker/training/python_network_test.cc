// Runs trials of users' PyTorch modules. Skipped without a Python that has PyTorch.
#include "models/python_network/python_network.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/full.h"
#include "ATen/ops/tensor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "c10/core/GradMode.h"
#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "nlohmann/json.hpp"
#include "platform/child_process.h"
#include "platform/sha256.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/recording_session.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Directive = PackSession::Directive;

// Has batch norm's buffers, one of them an integer, dropout, a tied weight, a lazy layer, noise of
// its own and a file of data.
constexpr char kModule[] = R"py(
import os
import random
import torch

with open(os.path.join(os.path.dirname(__file__), "data", "width")) as file:
    WIDTH = int(file.read())

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=WIDTH):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.lstm = torch.nn.LSTM(width, width, batch_first=True)
        self.dropout = torch.nn.Dropout(0.2)
        self.mix = torch.nn.Linear(width, vocabulary, bias=False)
        self.mix.weight = self.embedding.weight
        self.out = torch.nn.LazyLinear(outputs)

    def forward(self, tokens, positions, mask):
        features = self.embedding(tokens) + 0.01 * positions.unsqueeze(-1)
        features = self.norm(features.transpose(1, 2)).transpose(1, 2)
        features = self.dropout(self.lstm(features)[0])
        if self.training:
            features = features + 0.01 * random.random()
        return self.out(self.mix(features))
)py";

std::string Interpreter() {
  const char* chosen = std::getenv("LENGTHWISE_PYTHON_NETWORKS");
  return chosen != nullptr ? chosen : "/usr/bin/python3";
}

// Exit code of warm_python.py if torch cannot be imported.
constexpr int kNoTorch = 77;

// A program that stands for the interpreter and has imported torch (warm_python.py). Empty if torch
// cannot be imported.
const std::string& WarmInterpreter() {
  static const auto& program = *new std::string([]() -> std::string {
    std::string path = absl::StrCat(testing::TempDir(), "/warm_python");
    std::filesystem::remove(path);
    auto started = platform::ChildProcess::Start(
        {.arguments = {Interpreter(), "-B", "models/python_network/testing/warm_python.py", path}});
    if (!started.ok()) return "";
    platform::ChildProcess& server = *started->release();  // serves until this process ends
    while (!std::filesystem::exists(path)) {
      if (const auto exit = server.WaitFor(absl::Milliseconds(10)); exit.has_value()) {
        EXPECT_EQ(exit->code, kNoTorch) << exit->ToString();
        return "";
      }
    }
    return path;
  }());
  return program;
}

// Finds the archives that TrialOf wrote.
class Session : public RecordingSession {
 public:
  absl::StatusOr<std::string> FetchData(int64_t /*trial*/, absl::string_view sha256,
                                        int64_t /*bytes*/) override {
    // As that of a worker whose --data_dir is relative.
    return std::filesystem::relative(absl::StrCat(testing::TempDir(), "/", sha256)).string();
  }
};

class PythonNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (WarmInterpreter().empty()) GTEST_SKIP() << Interpreter() << " has no PyTorch";
  }

  // A trial that trains the class Net of this source, a module of a package.
  v1::TrialSpecification TrialOf(const std::string& source, uint64_t seed = 1) {
    const std::string archive = absl::StrCat(
        models::kPythonArchiveStart, nlohmann::json{{"entry", "__init__.py"},
                                                    {"files",
                                                     {{"__init__.py", "from .net import Net"},
                                                      {"net.py", source},
                                                      {"data/width", {{"base64", "OA=="}}}}}}
                                         .dump()
                                         .substr(1));
    const std::string path = absl::StrCat(testing::TempDir(), "/", platform::Sha256Hex(archive));
    std::ofstream(path) << archive;
    v1::TrialSpecification trial = TinyTrial(seed);
    trial.mutable_network()->set_name("python");
    auto& network = *trial.mutable_network()->mutable_parameters();
    network.clear();
    network["file"].set_string_value("net.py");
    network["class"].set_string_value("Net");
    network["file_sha256"].set_string_value(platform::Sha256Hex(archive));
    network["file_bytes"].set_number_value(static_cast<double>(archive.size()));
    trial.mutable_encoding()->set_name("own");
    trial.mutable_evaluation()->clear_attention_lengths();
    return trial;
  }

  static void Run(const v1::Lease& lease, RecordingSession& session,
                  const std::string& python = WarmInterpreter()) {
    static auto& runners = *new std::map<std::string, std::unique_ptr<PackRunner>>;
    std::unique_ptr<PackRunner>& runner = runners[python];
    if (runner == nullptr) {
      runner =
          CreatePackRunner({.device = "cpu", .threads = 1, .max_pack_size = 8, .python = python})
              .value();
    }
    const absl::Status status = runner->Run(lease, session);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Expects that a trial whose lease is lost when it has asked `lost_at` times ends, resumed, with
  // the history of the undisturbed one.
  static void ExpectSameAfterLoss(const v1::TrialSpecification& trial, int64_t lost_at,
                                  Session& undisturbed) {
    v1::Lease lease = LeaseOf({trial});
    Session session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= lost_at ? Directive::kLost : Directive::kContinue;
    };
    Run(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    Run(lease, session);
    EXPECT_EQ(session.History(0), undisturbed.History(0)) << lost_at;
  }

  std::vector<std::string> HistoryAlone(const v1::TrialSpecification& trial) {
    Session session;
    Run(LeaseOf({trial}), session);
    EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
    return session.History(0);
  }

  v1::Outcome OutcomeOf(const std::string& source, const std::string& python = WarmInterpreter()) {
    Session session;
    Run(LeaseOf({TrialOf(source)}), session, python);
    return session.OutcomeOf(0);
  }

  static void ExpectTheyTrainAlike(std::vector<v1::TrialSpecification> trials,
                                   const std::string& precision);

  static std::string Replaced(const std::string& what, const std::string& by) {
    std::string source = kModule;
    const size_t at = source.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return source.replace(at, what.size(), by);
  }
};

TEST_F(PythonNetworkTest, PackIsBitIdenticalToItsMembers) {
  const std::vector<v1::TrialSpecification> trials = {TrialOf(kModule, 1), TrialOf(kModule, 2)};
  Session session;
  Run(LeaseOf(trials), session);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(session.History(i), HistoryAlone(trials[i])) << i;
  EXPECT_NE(session.History(0), session.History(1));
}

TEST_F(PythonNetworkTest, LossFalls) {
  v1::TrialSpecification trial = TrialOf(kModule);
  trial.set_learning_rate(1e-2);
  trial.mutable_training()->set_steps(200);
  // Sequences of one symbol: the module learns to copy the token before.
  trial.mutable_training()->mutable_lengths()->set_max(1);
  Session session;
  Run(LeaseOf({trial}), session);
  std::vector<float> losses;
  for (const v1::Event& event : session.events(0)) {
    const auto& points = event.training_points().losses();
    losses.insert(losses.end(), points.begin(), points.end());
  }
  ASSERT_GT(losses.size(), 10);
  EXPECT_LT(losses.back(), 0.1 * losses.front());
  EXPECT_THAT(session.OutcomeOf(0).provenance().kernels(),
              AllOf(StartsWith("network "), HasSubstr("torch "), HasSubstr("Python ")));
}

// The lease is lost at points throughout the run, and the trial resumes in a new process.
TEST_F(PythonNetworkTest, ResumedTrialMatchesUninterrupted) {
  const v1::TrialSpecification trial = TrialOf(kModule);
  Session undisturbed;
  Run(LeaseOf({trial}), undisturbed);
  for (int64_t lost_at = 5; lost_at < undisturbed.asked(); lost_at += 47) {
    ExpectSameAfterLoss(trial, lost_at, undisturbed);
  }
}

// No numbers, one number, a parameter that stays, truth values.
TEST_F(PythonNetworkTest, OddParametersTrainAndResume) {
  const v1::TrialSpecification trial = TrialOf(
      Replaced("        self.dropout =",
               "        self.none = torch.nn.Parameter(torch.zeros(0, 3))\n"
               "        self.scale = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))\n"
               "        self.fixed = torch.nn.Parameter(torch.ones(3), requires_grad=False)\n"
               "        self.register_buffer('seen', torch.zeros(2, 3, dtype=torch.bool))\n"
               "        self.dropout ="));
  Session undisturbed;
  Run(LeaseOf({trial}), undisturbed);
  EXPECT_EQ(undisturbed.OutcomeOf(0).kind(), v1::Outcome::COMPLETED)
      << undisturbed.OutcomeOf(0).reason();
  ExpectSameAfterLoss(trial, undisturbed.asked() / 2, undisturbed);
}

TEST_F(PythonNetworkTest, DrainedTrialEndsWithTheUndisturbedModel) {
  const v1::TrialSpecification trial = TrialOf(kModule);
  Session undisturbed;
  Run(LeaseOf({trial}), undisturbed);
  for (const int64_t drained_at : {0, 7, 33}) {
    v1::Lease lease = LeaseOf({trial});
    Session session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= drained_at ? Directive::kDrain : Directive::kContinue;
    };
    Run(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    Run(lease, session);
    EXPECT_EQ(*session.checkpoints(0).rbegin(), *undisturbed.checkpoints(0).rbegin()) << drained_at;
  }
}

TEST_F(PythonNetworkTest, DoublePrecisionTrains) {
  v1::TrialSpecification trial = TrialOf(kModule);
  trial.mutable_training()->set_precision("float64");
  EXPECT_NE(HistoryAlone(trial), HistoryAlone(TrialOf(kModule)));
}

// The built-in encoder with sin_cos, whose parameters have the same names.
std::string EncoderCopy() {
  std::ifstream file("models/python_network/testing/encoder_copy.py");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Trains the built-in encoder and its copy from the same weights. In double precision they stay as
// close as measurements in float32 can be. In float32 their rounding differs, which grows with the
// steps, and in gradients more than in losses.
void PythonNetworkTest::ExpectTheyTrainAlike(std::vector<v1::TrialSpecification> trials,
                                             const std::string& precision) {
  SCOPED_TRACE(precision);
  const bool is_double = precision == "float64";
  std::vector<training::Blueprint> blueprints;  // outlive the models
  std::vector<std::unique_ptr<training::PackModel>> models;
  for (v1::TrialSpecification& trial : trials) {
    trial.mutable_training()->set_steps(50);
    trial.mutable_training()->set_precision(precision);
    blueprints.push_back(training::MakeBlueprint(trial, [](absl::string_view sha256, int64_t) {
                           return absl::StrCat(testing::TempDir(), "/", sha256);
                         }).value());
  }
  training::Device device;
  device.python = WarmInterpreter();
  for (const training::Blueprint& blueprint : blueprints) {
    models.push_back(
        training::CreatePackModel(blueprint, {{.weight_seed = 1, .data_seed = 1}}, device).value());
  }
  const std::string initial = models[0]->Save(0, {.fingerprint = "same"});
  ASSERT_TRUE(models[1]->Load(0, initial, "same").ok());
  for (int64_t step = 1; step <= 50; ++step) {
    const auto ours = training::TrainStep(*models[0], step, {0}, {1e-3}).at(0);
    const auto copied = training::TrainStep(*models[1], step, {0}, {1e-3}).at(0);
    EXPECT_NEAR(copied.loss, ours.loss, is_double ? 1e-6 : step == 1 ? 1e-5 : 1e-4) << step;
    if (!is_double && step > 1) continue;
    EXPECT_NEAR(copied.gradient_norm / ours.gradient_norm, 1, is_double ? 1e-6 : 1e-4) << step;
  }
}

TEST_F(PythonNetworkTest, CopyOfTheEncoderTrainsAlike) {
  for (const std::string precision : {"float64", "float32"}) {
    ExpectTheyTrainAlike({TinyTrial(1), TrialOf(EncoderCopy())}, precision);
  }
}

// The encoding's own parameters train, too, by the gradient that the module returns.
TEST_F(PythonNetworkTest, BiasOfAnEncodingTrainsAlike) {
  for (const std::string encoding : {"kerple_log", "alibi", "fire", "t5", "formula"}) {
    SCOPED_TRACE(encoding);
    std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TrialOf(EncoderCopy())};
    (*trials[1].mutable_network()->mutable_parameters())["heads"].set_number_value(2);
    for (v1::TrialSpecification& trial : trials) {
      SetEncoding(encoding, trial);
      if (encoding != "formula") continue;
      auto& formula = *trial.mutable_encoding()->mutable_parameters();
      formula.erase("embedding");
      formula.erase("angle");
      formula.erase("scale");
      formula.erase("magnitude");
      formula["logits"].set_string_value("-a * abs(q - k)");
      formula["parameters"].set_string_value("a per head = 0.5");
    }
    for (const std::string precision : {"float64", "float32"}) {
      ExpectTheyTrainAlike(trials, precision);
    }
  }
}

TEST_F(PythonNetworkTest, BiasOfEachSequenceTrainsAlike) {
  for (const std::string encoding : {"alibi", "fire", "t5"}) {
    SCOPED_TRACE(encoding);
    std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TrialOf(EncoderCopy())};
    (*trials[1].mutable_network()->mutable_parameters())["heads"].set_number_value(2);
    for (v1::TrialSpecification& trial : trials) {
      SetEncoding(encoding, trial);
      (*trial.mutable_encoding()->mutable_parameters())["draws"].set_string_value("per_sequence");
    }
    ExpectTheyTrainAlike(trials, "float64");
  }
}

TEST_F(PythonNetworkTest, LearnsNumbers) {
  v1::TrialSpecification trial = TrialOf(R"py(
import torch

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, tokens):
        assert tokens.is_floating_point()
        return torch.cumsum(tokens, 1).unsqueeze(-1) * self.scale
)py");
  trial.mutable_task()->set_name("cumulative_sum");
  trial.set_learning_rate(1e-2);
  trial.mutable_training()->set_steps(300);
  trial.mutable_training()->mutable_lengths()->set_min(4);
  trial.mutable_training()->mutable_lengths()->set_max(4);
  Session session;
  Run(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  // The right scale is 1, whose error is 0.
  for (const v1::Event& event : session.events(0)) {
    if (!event.has_length_accuracies() || !event.length_accuracies().final()) continue;
    EXPECT_LT(event.length_accuracies().losses(0), 1e-3);
  }
}

// A causal module, on texts of several lengths in a step.
constexpr char kTextModule[] = R"py(
import torch

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=16):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.dropout = torch.nn.Dropout(0.1)
        self.gru = torch.nn.GRU(width, width, batch_first=True)
        self.out = torch.nn.Linear(width, outputs)

    def forward(self, tokens):
        return self.out(self.gru(self.dropout(self.embedding(tokens)))[0])
)py";

v1::TrialSpecification TextTrialOf(const v1::TrialSpecification& module) {
  v1::TrialSpecification trial = TinyTextTrial(1);
  *trial.mutable_network() = module.network();
  *trial.mutable_encoding() = module.encoding();
  trial.mutable_evaluation()->clear_attention_lengths();
  return trial;
}

TEST_F(PythonNetworkTest, LearnsTextAndResumes) {
  v1::TrialSpecification trial = TextTrialOf(TrialOf(kTextModule));
  trial.set_learning_rate(1e-2);
  trial.mutable_training()->set_steps(100);
  Session undisturbed;
  Run(LeaseOf({trial}), undisturbed);
  ASSERT_EQ(undisturbed.OutcomeOf(0).kind(), v1::Outcome::COMPLETED)
      << undisturbed.OutcomeOf(0).reason();
  std::vector<float> losses;
  for (const v1::Event& event : undisturbed.events(0)) {
    const auto& points = event.training_points().losses();
    losses.insert(losses.end(), points.begin(), points.end());
  }
  EXPECT_LT(losses.back(), 0.9 * losses.front());
  for (const int64_t lost_at : {undisturbed.asked() / 3, undisturbed.asked() / 2}) {
    ExpectSameAfterLoss(trial, lost_at, undisturbed);
  }
}

// A model of one member that continues text, of the class Net of a trial's network.
struct TextModel {
  static constexpr int64_t kVocabulary = 7;

  explicit TextModel(const v1::TrialSpecification& trial) {
    catalogue::Parameters parameters;
    for (const auto& [name, value] : trial.network().parameters()) {
      if (value.kind_case() == google::protobuf::Value::kStringValue) {
        parameters.Set(name, value.string_value());
      }
    }
    parameters.Set("arguments", std::string());
    parameters.Set("heads", int64_t{2});
    catalogue::Parameters encoding;
    std::vector<catalogue::Problem> problems;
    for (const models::EncodingEntry* entry : models::EncodingEntries()) {
      if (entry->name == "alibi") encoding = catalogue::Resolve(*entry, {}, "", problems);
    }
    const std::string archive =
        absl::StrCat(testing::TempDir(), "/", parameters.String("file_sha256"));
    auto network = std::make_unique<models::PythonNetwork>(
        models::PythonNetwork::Options{.interpreter = WarmInterpreter(),
                                       .archive = archive,
                                       .precision = "float32",
                                       .weight_seeds = {1}},
        parameters, "alibi", encoding,
        models::NetworkShape{
            .input_columns = kVocabulary, .output_columns = kVocabulary, .longest_sequence = 9},
        layout);
    arena = std::make_unique<models::ParameterArena>(layout, 1, at::kFloat, at::kCPU,
                                                     network->Allocator());
    network->Bind(*arena);
    model = std::make_unique<models::PythonLanguageModel>(std::move(network));
  }

  // Continues prompts by the likeliest tokens. Returns the logits of each, [1, B, V].
  std::vector<at::Tensor> Continue(at::Tensor next, int64_t tokens) const {
    const auto cache = model->StartDecoding(positions);
    std::vector<at::Tensor> logits;
    for (int64_t i = 0; i < tokens; ++i) {
      logits.push_back(model->Decode(Members(), next, *cache));
      next = logits.back().argmax(-1).unsqueeze(-1);
    }
    return logits;
  }
  models::ParameterSet Members() const { return arena->Members(0, 1); }

  const at::Tensor positions = at::arange(9).view({1, 1, 9});
  // The arena needs the layout.
  models::ParameterLayout layout;
  std::unique_ptr<models::ParameterArena> arena;
  std::unique_ptr<models::PythonLanguageModel> model;
};

// Prompts are continued with what the module says next: after each token it wants the one above.
TEST_F(PythonNetworkTest, AnswersAreDecodedTokenByToken) {
  const TextModel text(TrialOf(R"py(
import torch

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.outputs = outputs

    def forward(self, tokens):
        return self.scale * torch.nn.functional.one_hot((tokens + 1) % self.outputs, self.outputs)
)py"));
  const c10::NoGradGuard no_gradients;
  const std::vector<at::Tensor> logits = text.Continue(at::arange(4).view({1, 2, 2}), 5);
  for (int64_t i = 0; i < 5; ++i) {
    const at::Tensor next = logits[i].argmax(-1).flatten();
    EXPECT_EQ(next[0].item<int64_t>(), (2 + i) % TextModel::kVocabulary);
    EXPECT_EQ(next[1].item<int64_t>(), (4 + i) % TextModel::kVocabulary);
  }
}

// Attention with the bias of an encoding, whose keys and values the cache keeps.
constexpr char kCachedModule[] = R"py(
import torch

class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs, width=8):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, outputs)

    def forward(self, tokens, positions, attention_bias, cache=None):
        features = self.embedding(tokens) + 0.1 * positions.unsqueeze(-1)
        q, k, v = (x.unflatten(-1, (2, 4)).transpose(1, 2) for x in self.qkv(features).chunk(3, -1))
        if cache is not None:
            if cache:
                assert tokens.shape[1] == 1, "the cache has the tokens before"
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache.update(k=k, v=v)
        before = k.shape[2] - q.shape[2]
        logits = q @ k.transpose(-1, -2) / 2 + attention_bias
        later = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1 + before)
        self.weights = logits.masked_fill(later, float("-inf")).softmax(-1)
        return self.out((self.weights @ v).transpose(1, 2).flatten(2))

    def attention(self):
        return [self.weights, self.weights.flip(1)]
)py";

std::string WithoutCache() {
  std::string source = kCachedModule;
  const std::string argument = ", cache=None";
  return source.replace(source.find(argument), argument.size(), "")
      .replace(source.find("        if cache is not None"), 8, "        cache = None\n        ");
}

TEST_F(PythonNetworkTest, CacheChangesNoAnswer) {
  const TextModel cached(TrialOf(kCachedModule)), plain(TrialOf(WithoutCache()));
  const c10::NoGradGuard no_gradients;
  for (const at::Tensor& prompts : {at::arange(6).view({1, 2, 3}), at::arange(4).view({1, 4, 1})}) {
    const std::vector<at::Tensor> ours = cached.Continue(prompts, 6);
    const std::vector<at::Tensor> expected = plain.Continue(prompts, 6);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(ours[i].sub(expected[i]).abs().max().item<double>(), 1e-5) << i;
    }
  }
}

// Together in training and in decoding, texts get the logits that each gets alone.
TEST_F(PythonNetworkTest, EachTextHasTheBiasOfItsPositions) {
  const TextModel text(TrialOf(kCachedModule));
  const c10::NoGradGuard no_gradients;
  const at::Tensor places = at::tensor({0., 2., 5., 9., 1., 1., 7., 8.}).view({1, 1, 2, 4});
  const at::Tensor tokens = at::arange(8).remainder(TextModel::kVocabulary).view({1, 2, 4});
  const at::Tensor together = text.model->Forward(text.Members(),
                                                  {.tokens = tokens.flatten(1, 2),
                                                   .groups = {{.examples = 2, .length = 4}},
                                                   .own_positions = true},
                                                  places.flatten(2, 3), nullptr, nullptr);
  const auto cache = text.model->StartDecoding(places);
  (void)text.model->Decode(text.Members(), tokens.narrow(2, 0, 3), *cache);
  const at::Tensor next = text.model->Decode(text.Members(), tokens.narrow(2, 3, 1), *cache);
  for (int64_t i = 0; i < 2; ++i) {
    const at::Tensor alone = text.model->Forward(
        text.Members(), {.tokens = tokens.select(1, i), .groups = {{.examples = 1, .length = 4}}},
        places.select(2, i), nullptr, nullptr);
    EXPECT_LT(together.narrow(1, 4 * i, 4).sub(alone).abs().max().item<double>(), 1e-5) << i;
    EXPECT_LT(next.select(1, i).sub(alone.select(1, 3)).abs().max().item<double>(), 1e-5) << i;
  }
}

// The bias depends on the ids of digits, which the module writes itself in evaluations.
TEST_F(PythonNetworkTest, TextWithIdsTrainsAndResumes) {
  v1::TrialSpecification module = TrialOf(kCachedModule);
  (*module.mutable_network()->mutable_parameters())["heads"].set_number_value(2);
  module.mutable_encoding()->clear_parameters();
  SetEncoding("fire", module);
  auto& encoding = *module.mutable_encoding()->mutable_parameters();
  encoding["positions"].set_string_value("data");
  encoding["max_position"].set_number_value(64);
  v1::TrialSpecification trial = TextTrialOf(module);
  auto& task = *trial.mutable_task()->mutable_parameters();
  task["index_hints"].set_bool_value(false);
  task["coupling"].set_string_value("digits");
  Session undisturbed;
  Run(LeaseOf({trial}), undisturbed);
  ASSERT_EQ(undisturbed.OutcomeOf(0).kind(), v1::Outcome::COMPLETED)
      << undisturbed.OutcomeOf(0).reason();
  ExpectSameAfterLoss(trial, undisturbed.asked() / 2, undisturbed);
}

TEST_F(PythonNetworkTest, TwoTextsDoNotShareACache) {
  const TextModel text(TrialOf(kCachedModule));
  const c10::NoGradGuard no_gradients;
  const auto prompt = [](int64_t token) { return at::full({1, 1, 2}, token, at::kLong); };
  const at::Tensor third = at::full({1, 1, 1}, 3, at::kLong);
  const auto alone = text.model->StartDecoding(text.positions);
  (void)text.model->Decode(text.Members(), prompt(1), *alone);
  const at::Tensor expected = text.model->Decode(text.Members(), third, *alone);
  const auto first = text.model->StartDecoding(text.positions);
  const auto second = text.model->StartDecoding(text.positions);
  (void)text.model->Decode(text.Members(), prompt(1), *first);
  (void)text.model->Decode(text.Members(), prompt(2), *second);
  const at::Tensor ours = text.model->Decode(text.Members(), third, *first);
  EXPECT_LT(ours.sub(expected).abs().max().item<double>(), 1e-5);
}

// As on a GPU, the tensors of the device "cpu:0" are copies of the worker's numbers.
TEST_F(PythonNetworkTest, DeviceWithItsOwnMemoryTrainsAndResumesAlike) {
  v1::TrialSpecification biased = TrialOf(kCachedModule);
  SetEncoding("fire", biased);
  (*biased.mutable_network()->mutable_parameters())["heads"].set_number_value(2);
  const auto runner = CreatePackRunner({.device = "cpu",
                                        .threads = 1,
                                        .max_pack_size = 8,
                                        .python = Interpreter(),
                                        .python_device = "cpu:0"})
                          .value();
  EXPECT_THAT(runner->provenance().kernels(), EndsWith(", on cpu:0"));
  for (const v1::TrialSpecification& trial : {TrialOf(kModule), biased}) {
    v1::Lease lease = LeaseOf({trial});
    Session session;
    session.directive = [](int64_t, int64_t asked) {
      return asked >= 30 ? Directive::kLost : Directive::kContinue;
    };
    ASSERT_TRUE(runner->Run(lease, session).ok());
    session.directive = nullptr;
    session.Rewind(lease);
    ASSERT_TRUE(runner->Run(lease, session).ok());
    EXPECT_THAT(session.OutcomeOf(0).provenance().kernels(), HasSubstr(", on cpu:0"));
    std::vector<std::string> history = session.History(0);
    for (std::string& line : history) absl::StrReplaceAll({{", on cpu:0", ""}}, &line);
    EXPECT_EQ(history, HistoryAlone(trial));
  }
}

TEST_F(PythonNetworkTest, MissingDeviceLeavesTheTrialToOthers) {
  const auto runner =
      CreatePackRunner(
          {.device = "cpu", .threads = 1, .python = Interpreter(), .python_device = "cuda:99"})
          .value();
  Session session;
  ASSERT_TRUE(runner->Run(LeaseOf({TrialOf(kModule)}), session).ok());
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(),
              AllOf(HasSubstr("cannot compute on cuda:99: "), HasSubstr("--python_device")));
}

TEST_F(PythonNetworkTest, AttentionMapsAreRecorded) {
  v1::TrialSpecification trial = TrialOf(kCachedModule);
  SetEncoding("alibi", trial);
  (*trial.mutable_network()->mutable_parameters())["heads"].set_number_value(2);
  trial.mutable_evaluation()->add_attention_lengths(3);
  trial.mutable_evaluation()->set_attention_sequences(1);
  Session session;
  Run(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  std::vector<v1::AttentionMap> maps;
  for (const v1::Event& event : session.events(0)) {
    if (event.has_attention_map()) maps.push_back(event.attention_map());
  }
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].layers(), 2);
  EXPECT_EQ(maps[0].heads(), 2);
  const auto tokens = static_cast<size_t>(maps[0].tokens_size());
  std::vector<float> weights(4 * tokens * tokens);
  ASSERT_EQ(maps[0].probabilities().size(), weights.size() * sizeof(float));
  std::memcpy(weights.data(), maps[0].probabilities().data(), maps[0].probabilities().size());
  // Each query's weights have the sum 1, and the first token sees itself alone.
  for (size_t row = 0; row < 4 * tokens; ++row) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(row * tokens);
    EXPECT_NEAR(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(tokens), 0.0), 1, 1e-5);
  }
  EXPECT_EQ(weights[0], 1);
  // The second layer has the heads of the first the other way round.
  EXPECT_EQ(weights[tokens], weights[3 * tokens * tokens + tokens]);
}

TEST_F(PythonNetworkTest, MissingMapsLeaveATrialThatSucceeds) {
  for (const auto& [source, reason] : std::vector<std::pair<std::string, std::string>>{
           {kModule, "no maps, because the network has no method `attention`"},
           {std::string(kModule) + "    def attention(self):\n        return self.maps\n",
            "no attention map: net.py:28: AttributeError: "}}) {
    v1::TrialSpecification trial = TrialOf(source);
    trial.mutable_evaluation()->add_attention_lengths(3);
    trial.mutable_evaluation()->set_attention_sequences(1);
    Session session;
    Run(LeaseOf({trial}), session);
    EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
    std::string log;
    for (const v1::Event& event : session.events(0)) log += event.log_line().text();
    EXPECT_THAT(log, HasSubstr(reason));
  }
}

TEST_F(PythonNetworkTest, WrongModuleFailsItsTrialWithItsLine) {
  const v1::Outcome outcome = OutcomeOf(Replaced("LSTM(width, width", "LSTM(width + 1, width"));
  EXPECT_EQ(outcome.kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(outcome.reason(), StartsWith("net.py:23: RuntimeError: "));
}

TEST_F(PythonNetworkTest, ModuleThatEndsItsProcessFailsItsTrial) {
  const v1::Outcome outcome =
      OutcomeOf(Replaced("        if self.training:\n",
                         "        if self.training:\n            import os\n"
                         "            print('so long', flush=True)\n"
                         "            os._exit(3)\n"),
                Interpreter());
  EXPECT_EQ(outcome.kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_EQ(outcome.reason(), "the network's process exited with code 3");
}

// As the kernel does when memory runs out. The next attempt ends as if nothing had happened.
TEST_F(PythonNetworkTest, KilledProcessFailsTemporarilyAndResumes) {
  const std::string was_killed = absl::StrCat(testing::TempDir(), "/was_killed");
  std::filesystem::remove(was_killed);
  const v1::TrialSpecification trial = TrialOf(Replaced(
      "        if self.training:\n",
      absl::StrCat("        if self.training and self.norm.num_batches_tracked == 30 and not "
                   "os.path.exists('",
                   was_killed, "'):\n            open('", was_killed,
                   "', 'w').close()\n            os.kill(os.getpid(), 9)\n"
                   "        if self.training:\n")));
  v1::Lease lease = LeaseOf({trial});
  Session session;
  Run(lease, session, Interpreter());
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(),
              StartsWith("the network's process was killed by signal 9"));
  session.Rewind(lease);
  EXPECT_GT(lease.trials(0).checkpoint_step(), 0);
  Run(lease, session, Interpreter());
  EXPECT_EQ(session.History(0), HistoryAlone(trial));
}

TEST_F(PythonNetworkTest, EveryWrongFileGetsAnAnswerAndTheWorkerLivesOn) {
  const std::string in_training = "        if self.training:\n";
  for (const auto& [source, reason] : std::vector<std::pair<std::string, std::string>>{
           {"import torch\nclass Net(:\n", "net.py:2: SyntaxError: "},
           {"class Nat:\n    pass\n", "__init__.py:1: ImportError: cannot import name 'Net'"},
           {Replaced("self.out(self.mix(features))", "self.out(self.mix(features))[0]"),
            "; expected [8, "},
           {Replaced("return self.out", "torch.zeros(10**13)\n        return self.out"),
            "RuntimeError: "},
           {Replaced(in_training, in_training + "            raise SystemExit(3)\n"),
            "the module ended the program with exit code 3"}}) {
    const v1::Outcome outcome = OutcomeOf(source);
    EXPECT_EQ(outcome.kind(), v1::Outcome::FAILED_PERMANENTLY) << reason;
    EXPECT_THAT(outcome.reason(), HasSubstr(reason));
  }
  // Neither breaks the protocol.
  const v1::Outcome outcome = OutcomeOf(
      Replaced(in_training, "        print('x' * 2**21)\n        os.fork()\n" + in_training));
  EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
  HistoryAlone(TrialOf(kModule));
}

TEST_F(PythonNetworkTest, ParameterWithTheNameOfTheEncodingsIsRefused) {
  v1::TrialSpecification trial =
      TrialOf(Replaced("        self.dropout =",
                       "        self.encoding = torch.nn.ParameterDict({'table': "
                       "torch.nn.Parameter(torch.zeros(2))})\n"
                       "        self.dropout ="));
  (*trial.mutable_network()->mutable_parameters())["heads"].set_number_value(2);
  SetEncoding("t5", trial);
  Session session;
  Run(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("both have a parameter `encoding.table`"));
}

// Nothing of the worker's environment that may hold a token, and a process group that ends with it.
TEST_F(PythonNetworkTest, ModuleSeesNoTokensAndLeavesNoProcess) {
  const std::string copy = absl::StrCat(testing::TempDir(), "/copy");
  std::filesystem::remove(copy);
  setenv("LENGTHWISE_TOKEN", "secret", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const v1::Outcome outcome = OutcomeOf(
      Replaced("class Net",
               absl::StrCat(
                   "assert 'secret' not in os.environ.values(), sorted(os.environ)\n"
                   "assert os.getpgrp() == os.getpid() != os.getppid(), 'in the worker\\'s group'\n"
                   "if (pid := os.fork()) == 0:\n"
                   "    import time\n"
                   "    time.sleep(3600)\n"
                   "with open('",
                   copy, "', 'w') as file:\n    file.write(str(pid))\n\nclass Net")),
      Interpreter());
  unsetenv("LENGTHWISE_TOKEN");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
  std::string pid;
  std::ifstream(copy) >> pid;
  ASSERT_NE(pid, "");
  // A process that was killed has no command line, also before somebody waits for it.
  const auto command = [&] {
    std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!command().empty() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(command(), "");
}

TEST_F(PythonNetworkTest, EndlessLoopEndsAtTheLimit) {
  const auto runner = CreatePackRunner({.device = "cpu",
                                        .threads = 1,
                                        .python = Interpreter(),
                                        .python_limit = absl::Seconds(2)})
                          .value();
  Session session, next;
  ASSERT_TRUE(runner->Run(LeaseOf({TrialOf("while True: pass")}), session).ok());
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("did not answer for 2s"));
  ASSERT_TRUE(runner->Run(LeaseOf({TinyTrial()}), next).ok());
  EXPECT_EQ(next.OutcomeOf(0).kind(), v1::Outcome::COMPLETED);
}

TEST_F(PythonNetworkTest, InfiniteLossNamesTheFirstParameter) {
  Session session;
  Run(LeaseOf({TrialOf(Replaced("self.mix.weight = self.embedding.weight",
                                "self.embedding.weight.data[0] = float('inf')"))}),
      session);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("nan"));
  std::vector<std::string> lines;
  for (const v1::Event& event : session.events(0)) {
    if (event.has_log_line()) lines.push_back(event.log_line().text());
  }
  EXPECT_THAT(lines, Contains(HasSubstr("\"embedding.weight\" is the first parameter")));
}

TEST_F(PythonNetworkTest, WorkerSaysWhatComputesModules) {
  for (const std::string& python : {Interpreter(), WarmInterpreter()}) {
    const auto runner = CreatePackRunner({.device = "cpu", .threads = 1, .python = python});
    EXPECT_THAT((*runner)->provenance().kernels(),
                AllOf(StartsWith("networks of users: torch "), HasSubstr(", Python 3."),
                      EndsWith(", on the CPU")));
  }
}

TEST_F(PythonNetworkTest, PythonWithoutTorchLeavesTheTrialToOthers) {
  const std::string python = absl::StrCat(testing::TempDir(), "/python");
  std::ofstream(python) << "#!/bin/sh\nexec " << Interpreter() << " -S \"$@\"\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  Session session;
  const auto runner = CreatePackRunner({.device = "cpu", .threads = 1, .python = python}).value();
  EXPECT_EQ(runner->provenance().kernels(), "");
  ASSERT_TRUE(runner->Run(LeaseOf({TrialOf(kModule)}), session).ok());
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("cannot import PyTorch"));
}

TEST(PythonNetworkPermissionTest, WorkerWithoutPermissionLeavesTheTrialToOthers) {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_network()->set_name("python");
  auto& network = *trial.mutable_network()->mutable_parameters();
  network.clear();
  network["file"].set_string_value("net.py");
  network["class"].set_string_value("Net");
  network["file_sha256"].set_string_value(std::string(64, 'a'));
  trial.mutable_encoding()->set_name("own");
  trial.mutable_evaluation()->clear_attention_lengths();
  Session session;
  const auto runner = CreatePackRunner({.device = "cpu", .threads = 1}).value();
  ASSERT_TRUE(runner->Run(LeaseOf({trial}), session).ok());
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("--allow_python_networks"));
}

}  // namespace
}  // namespace lengthwise::worker
