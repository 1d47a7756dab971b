// Kills the real server and worker with SIGKILL in the middle of an experiment. The history and the
// weights must equal those of an undisturbed run exactly.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/example_set.h"
#include "tests/end_to_end/measured_history.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

constexpr char kCrashSpecification[] = R"yaml(
name: crash
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 32}
encodings:
  - sin_cos
  - {name: relative, randomized: true, max_position: 256}
  - name: formula
    label: my_bias
    logits: "-softplus(a) * log1p(softplus(b) * abs(q - k))"
    parameters: {a: {per: head, initial: 1}, b: {per: layer, initial: 0.1}}
learning_rates: 0.001
seeds: 3
training:
  steps: 1200
  batch_size: 32
  lengths: {min: 1, max: 10}
  report_every_steps: 7
  checkpoint_every_steps: 100
evaluation:
  lengths: [5, 10, 15, 20]
  sequences: 64
  every_steps: 250
  attention_lengths: [12]
)yaml";

// A hundred steps of addition take well under a second; evaluating its answers takes seconds.
constexpr char kTextSpecification[] = R"(
name: crash_text
tasks: decimal_addition
networks: {name: causal_decoder, blocks: 1, heads: 2, d_model: 32, d_ff: 64}
encodings: {name: fire, randomized: true, max_position: 512}
learning_rates: 0.003
seeds: 3
training:
  steps: 600
  batch_size: 4
  lengths: {min: 1, max: 2}
  packing: {tokens: 64}
  report_every_steps: 5
  checkpoint_every_steps: 50
evaluation:
  lengths: [1, 2, 10, 20]
  sequences: 1500
  every_steps: 220
  interval_sequences: 20
  attention_lengths: [2]
)";

// The specification above, with the first `trials` of its encodings alone.
std::string CrashSpecification(int trials) {
  std::string specification = kCrashSpecification;
  const size_t rest = specification.find(trials == 1 ? "  - {name: relative" : "  - name: formula");
  return specification.erase(rest, specification.find("learning_rates") - rest);
}

// Reads the whole history as a late watcher.
std::vector<v1::Event> ReadAll(Server& server, const std::string& experiment) {
  Watcher watcher(server, experiment);
  EXPECT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  return watcher.events();
}

v1::Experiment Get(Server& server, const std::string& experiment) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::GetExperimentRequest request;
  request.set_name(experiment);
  v1::Experiment response;
  const grpc::Status status = server.experiments().GetExperiment(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

// The starting step of each attempt of a trial.
std::vector<int64_t> StartsOf(const std::vector<v1::Event>& events) {
  std::vector<int64_t> steps;
  for (const v1::Event& event : events) {
    if (event.has_state_change() && event.state_change().to() == v1::RUNNING) {
      steps.push_back(event.state_change().resumed_from_step());
    }
  }
  return steps;
}

void ExpectPositionsAscend(const std::vector<v1::Event>& events) {
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].position(), events[i].position());
  }
}

// Uploads a file of examples and submits an experiment that trains on it.
std::string SubmitExamples(Server& server) {
  std::string text;
  for (int i = 0; i < 4000; ++i) {
    std::string input, target;
    auto random = static_cast<uint32_t>(i);
    for (int place = 0; place <= i % 20; ++place) {
      random = random * 1664525 + 1013904223;
      const uint32_t symbol = (random >> 16) % 5;
      input += (place == 0 ? "" : ", ") + std::to_string(symbol);
      target += (place == 0 ? "" : ", ") + std::to_string(4 - symbol);
    }
    text += "{\"input\": [" + input + "], \"target\": [" + target + "]}\n";
  }
  const std::string path = ::testing::TempDir() + "/examples.jsonl";
  std::ofstream(path) << text;
  tasks::examples::Problems problems;
  const auto loaded =
      tasks::examples::Load({path, "examples.jsonl"}, {}, {.held_out = 0.2}, problems);
  EXPECT_TRUE(loaded.ok()) << loaded.status();

  EXPECT_EQ(Upload(server, text), loaded->train_sha256);

  std::string specification = CrashSpecification(1);
  const std::string built_in = "tasks: bucket_sort";
  specification.replace(specification.find(built_in), built_in.size(),
                        "tasks: {name: examples, train: examples.jsonl, held_out: 0.2, "
                        "train_sha256: " +
                            loaded->train_sha256 + ", contents: '" +
                            tasks::examples::ToText(tasks::examples::ContentsOf(*loaded)) + "'}");
  return Submit(server, specification);
}

// Submits one grid of a user's module, with two encodings, and the built-in encoder.
std::string SubmitModules(Server& server) {
  const std::string module = UploadModule(server);
  return Submit(
      server,
      absl::StrReplaceAll(
          kCrashSpecification,
          {{"networks: {name: encoder, blocks: 1, heads: 2, d_model: 32}",
            "networks: [" + module + ", {name: encoder, blocks: 1, heads: 2, d_model: 32}]"},
           {"  - {name: relative, randomized: true, max_position: 256}\n",
            "  - own\n  - {name: own, label: far, randomized: true, "
            "max_position: 256}\n"},
           {"  - name: formula\n    label: my_bias\n"
            "    logits: \"-softplus(a) * log1p(softplus(b) * abs(q - k))\"\n"
            "    parameters: {a: {per: head, initial: 1}, b: {per: layer, "
            "initial: 0.1}}\n",
            ""},
           {"  steps: 1200\n", "  steps: 600\n"},
           {"  attention_lengths: [12]\n", ""}}));
}

// Expects an experiment of `trials` trials with so many steps each. `flags` are the workers', as of
// ModuleFlags.
void ExpectKillsLeaveTheUndisturbedHistory(const std::string& directory,
                                           const std::function<std::string(Server&)>& submit,
                                           int trials, size_t attention_maps, int64_t steps = 1200,
                                           const std::vector<std::string>& flags = {}) {
  std::vector<std::string> server_flags = flags;
  server_flags.resize(std::min<size_t>(flags.size(), 1));
  Server undisturbed(directory + "/undisturbed", absl::Seconds(60), server_flags);
  undisturbed.Start();
  auto steady_worker = StartWorker(undisturbed, directory + "/undisturbed", kWorker, flags);
  const std::string expected_name = submit(undisturbed);
  const std::vector<v1::Event> expected_events = ReadAll(undisturbed, expected_name);
  const History expected = Fold(expected_events);
  EXPECT_EQ(Get(undisturbed, expected_name).trials().succeeded(), trials);
  ASSERT_EQ(expected.loss_curves.size(), static_cast<size_t>(trials));
  // Steps 7, 14, ... and the last one.
  v1::TrainingPoints points;
  ASSERT_TRUE(points.ParseFromString(expected.loss_curves.begin()->second));
  EXPECT_EQ(points.steps_size(), steps / 7 + 1);
  ASSERT_EQ(expected.attention_maps.size(), attention_maps);
  steady_worker.reset();

  Server disturbed(directory + "/disturbed", absl::Seconds(2), server_flags);
  disturbed.Start();
  auto worker = StartWorker(disturbed, directory + "/disturbed", kWorker, flags);
  const std::string name = submit(disturbed);
  Watcher watcher(disturbed, name);

  // The worker dies in the middle of the first trial, between two checkpoints.
  ASSERT_TRUE(watcher.WatchUntil([&](const v1::Event& event) {
    return event.has_training_points() && event.step() > 200 && event.step() < steps - 200;
  }));
  const std::string first_trial = watcher.events().back().trial();
  worker->Signal(SIGKILL);
  ASSERT_TRUE(worker->WaitFor(kDeadline));
  worker = StartWorker(disturbed, directory + "/disturbed", kWorker, flags);

  // The server dies while the second worker trains.
  ASSERT_TRUE(watcher.WatchUntil([&](const v1::Event& event) {
    return event.has_training_points() && event.attempt() == 2 && event.trial() == first_trial;
  }));
  disturbed.Kill();
  disturbed.Start();

  EXPECT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  EXPECT_EQ(Get(disturbed, name).trials().succeeded(), trials);

  // The disturbance took place, and training resumed from a checkpoint.
  int64_t resumed_from = 0;
  for (const v1::Event& event : watcher.events()) {
    if (event.has_state_change() && event.trial() == first_trial && event.attempt() == 2) {
      resumed_from = std::max(resumed_from, event.state_change().resumed_from_step());
    }
  }
  EXPECT_GE(resumed_from, 100);

  // A watcher from the start and a late one both see the history of the undisturbed run.
  EXPECT_TRUE(Fold(watcher.events()) == expected);
  ExpectPositionsAscend(watcher.events());
  const std::vector<v1::Event> late = ReadAll(disturbed, name);
  ExpectPositionsAscend(late);
  EXPECT_TRUE(Fold(late) == expected);
  // Replaced events are gone: there are exactly as many measurements as in the undisturbed run.
  auto measurements = [](const std::vector<v1::Event>& events) {
    int64_t count = 0;
    for (const v1::Event& event : events) {
      count += event.training_points().steps_size() + event.has_length_accuracies() +
               event.has_attention_map() + event.has_checkpoint() + event.has_outcome();
    }
    return count;
  };
  EXPECT_EQ(measurements(late), measurements(expected_events));
}

TEST(CrashTest, KillsLeaveTheUndisturbedHistory) {
  ExpectKillsLeaveTheUndisturbedHistory(
      ::testing::TempDir(), [](Server& server) { return Submit(server, kCrashSpecification); },
      /*trials=*/3, /*attention_maps=*/3);
}

TEST(CrashTest, KillsWithExamplesLeaveTheUndisturbedHistory) {
  // The workers' cache of files.
  setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1);
  ExpectKillsLeaveTheUndisturbedHistory(::testing::TempDir() + "/examples", SubmitExamples,
                                        /*trials=*/1, /*attention_maps=*/1);
}

// The worker's death ends the process that computes the module.
TEST(CrashTest, KillsWithModulesLeaveTheUndisturbedHistory) {
  const std::vector<std::string> flags = ModuleFlags();
  if (flags.empty()) GTEST_SKIP() << "no Python here has PyTorch";
  setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1);
  ExpectKillsLeaveTheUndisturbedHistory(::testing::TempDir() + "/modules", SubmitModules,
                                        /*trials=*/3, /*attention_maps=*/0, /*steps=*/600, flags);
}

TEST(CrashTest, KilledLanguageModelHasTheUndisturbedHistory) {
  const std::string directory = ::testing::TempDir() + "/text";
  Server undisturbed(directory + "/undisturbed", absl::Seconds(60));
  undisturbed.Start();
  auto worker = StartWorker(undisturbed, directory + "/undisturbed");
  const std::string expected_name = Submit(undisturbed, kTextSpecification);
  const std::vector<v1::Event> expected_events = ReadAll(undisturbed, expected_name);
  const History expected = Fold(expected_events);
  ASSERT_EQ(Get(undisturbed, expected_name).trials().succeeded(), 1);
  EXPECT_EQ(StartsOf(expected_events), std::vector<int64_t>{0});
  ASSERT_EQ(expected.answer_errors.size(), 1U);
  worker.reset();

  Server disturbed(directory + "/disturbed", absl::Seconds(2));
  disturbed.Start();
  worker = StartWorker(disturbed, directory + "/disturbed");
  const std::string name = Submit(disturbed, kTextSpecification);
  Watcher watcher(disturbed, name);
  const auto kill_worker = [&] {
    worker->Signal(SIGKILL);
    ASSERT_TRUE(worker->WaitFor(kDeadline));
    worker = StartWorker(disturbed, directory + "/disturbed");
  };

  ASSERT_TRUE(watcher.WatchUntil([](const v1::Event& event) {
    return event.has_training_points() && event.step() > 100 && event.step() < 500;
  }));
  kill_worker();
  // Only the final evaluation follows the last checkpoint.
  ASSERT_TRUE(watcher.WatchUntil(
      [](const v1::Event& event) { return event.has_checkpoint() && event.step() == 600; }));
  kill_worker();
  EXPECT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  EXPECT_EQ(Get(disturbed, name).trials().succeeded(), 1);

  const std::vector<int64_t> starts = StartsOf(watcher.events());
  ASSERT_EQ(starts.size(), 3U);
  EXPECT_GE(starts[1], 100);
  EXPECT_LT(starts[1], 600);
  EXPECT_EQ(starts[2], 600) << "killed when nothing but answers was missing";
  EXPECT_TRUE(Fold(watcher.events()) == expected);
  EXPECT_TRUE(Fold(ReadAll(disturbed, name)) == expected);
}

// Failover: the server's machine dies, and another one starts the server on the replicated volume.
TEST(CrashTest, WorkerAndWatcherFollowAFailover) {
  const std::string directory = ::testing::TempDir() + "/failover";
  Server server(directory, absl::Seconds(60));
  const std::string port = ":" + std::to_string(FreePort({"127.0.0.1", "127.0.0.2"}));
  server.MoveTo("127.0.0.1" + port);
  server.Start();
  const std::string addresses = "localhost" + port + ",127.0.0.2" + port;
  auto worker = StartWorkerFor(addresses, directory);
  const std::string specification = CrashSpecification(2);
  const std::string name = Submit(server, specification);
  Result watched;
  std::thread user([&] {
    watched = RunProgram({kClient, "watch", name, "--server", addresses}, directory + "/watch.log",
                         {{"LENGTHWISE_CONFIG", ""}});
  });
  Watcher watcher(server, name);
  EXPECT_TRUE(watcher.WatchUntil([](const v1::Event& event) {
    return event.has_training_points() && event.step() > 200 && event.step() < 1000;
  }));
  server.Kill();
  server.MoveTo("127.0.0.2" + port);
  server.Start();

  EXPECT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  user.join();
  EXPECT_EQ(watched.code, 0) << watched.output;
  EXPECT_EQ(Get(server, name).trials().succeeded(), 2);
  EXPECT_EQ(StartsOf(watcher.events()), std::vector<int64_t>({0, 0}))
      << "the worker kept its leases through the failover";
  EXPECT_TRUE(Fold(watcher.events()) == Fold(ReadAll(server, Submit(server, specification))))
      << "the history of a run without a failover";
}

TEST(CrashTest, LateWatcherSeesTheSameEvents) {
  const std::string directory = ::testing::TempDir() + "/watchers";
  Server server(directory, absl::Seconds(60));
  server.Start();
  auto worker = StartWorker(server, directory);
  const std::string name = Submit(server, CrashSpecification(1));
  Watcher first(server, name);
  Watcher second(server, name);
  // The first watcher leaves and rejoins in the middle.
  ASSERT_TRUE(first.WatchUntil([](const v1::Event& event) { return event.has_training_points(); }));
  EXPECT_FALSE(second.WatchUntil([](const v1::Event&) { return false; }));
  EXPECT_FALSE(first.WatchUntil([](const v1::Event&) { return false; }));
  auto positions = [](const std::vector<v1::Event>& events) {
    std::vector<int64_t> result;
    for (const v1::Event& event : events) result.push_back(event.position());
    return result;
  };
  EXPECT_EQ(positions(first.events()), positions(second.events()));
  EXPECT_EQ(positions(ReadAll(server, name)), positions(second.events()));
}

}  // namespace
}  // namespace lengthwise::end_to_end
