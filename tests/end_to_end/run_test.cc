// `lengthwise run`: a whole experiment with one command. It must leave no process behind, however
// it ends.
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// An environment variable that `run` passes to all its children.
constexpr char kMark[] = "LENGTHWISE_TEST_RUN";

// More steps than a test lasts.
constexpr int kForEver = 1'000'000;

// Writes a specification of two trials with `steps` training steps to a file.
std::string WriteSpecification(const std::string& directory, int steps,
                               const std::string& name = "tiny") {
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/" + name + ".yaml";
  std::ofstream(path) << "name: " << name
                      << "\n"
                         "tasks: bucket_sort\n"
                         "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
                         "encodings: [sin_cos, {name: sin_cos, randomized: true}]\n"
                         "learning_rates: 0.001\n"
                         "training: {steps: "
                      << steps
                      << ", batch_size: 16, lengths: {min: 1, max: 8}}\n"
                         "evaluation: {lengths: [4, 8, 12], sequences: 32}\n";
  return path;
}

// Starts a command of the client `program` with `directory`/data. Overwrites the previous command's
// output.
std::unique_ptr<platform::ChildProcess> StartProgram(const std::string& program,
                                                     const std::string& directory,
                                                     std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  arguments.insert(arguments.end(), {"--data_dir", directory + "/data"});
  std::filesystem::remove(directory + "/output");
  auto process =
      platform::ChildProcess::Start({.arguments = std::move(arguments),
                                     .environment = {{"LENGTHWISE_SERVER_BINARY", kServer},
                                                     {"LENGTHWISE_WORKER_BINARY", kWorker},
                                                     {kMark, directory}},
                                     .output_file = directory + "/output"});
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

std::unique_ptr<platform::ChildProcess> StartClient(const std::string& directory,
                                                    std::vector<std::string> arguments) {
  return StartProgram(kClient, directory, std::move(arguments));
}

std::unique_ptr<platform::ChildProcess> StartRun(const std::string& directory, int steps) {
  return StartClient(directory, {"run", WriteSpecification(directory, steps), "--device", "cpu"});
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string Output(const std::string& directory) { return ContentsOf(directory + "/output"); }

// Waits until no process of the run is left. Returns the processes that are left at the deadline.
std::vector<std::string> LeftRunning(const std::string& directory) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  std::vector<std::string> left = ProcessesWithVariable(kMark, directory);
  while (!left.empty() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    left = ProcessesWithVariable(kMark, directory);
  }
  return left;
}

// Returns the ids of the run's workers.
std::vector<pid_t> Workers(const std::string& directory) {
  std::vector<pid_t> workers;
  for (const std::string& process : ProcessesWithVariable(kMark, directory)) {
    // "12: worker/lengthwise_worker --server ...".
    if (absl::StrContains(process, "lengthwise_worker")) workers.push_back(std::stoi(process));
  }
  return workers;
}

// Waits for this many workers or more, which `run` starts after the server.
void WaitForWorkers(const std::string& directory, size_t count) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (Workers(directory).size() < count) {
    ASSERT_LT(absl::Now(), deadline) << Output(directory);
    absl::SleepFor(absl::Milliseconds(20));
  }
}

// Waits until a file contains `text`, while `process` runs.
void WaitForText(platform::ChildProcess& process, const std::string& path,
                 const std::string& text) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!absl::StrContains(ContentsOf(path), text)) {
    ASSERT_LT(absl::Now(), deadline) << ContentsOf(path);
    // Read again after the end.
    if (process.Poll().has_value()) {
      ASSERT_THAT(ContentsOf(path), HasSubstr(text));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

// Runs a command to its end, expects the exit code and returns the output.
std::string RunClient(const std::string& directory, const std::vector<std::string>& arguments,
                      int code = 0) {
  const auto exit = StartClient(directory, arguments)->WaitFor(kDeadline);
  EXPECT_TRUE(exit.has_value() && exit->code == code) << Output(directory);
  return Output(directory);
}

// Counts the lines of a command's output that report a started or resumed trial.
int Started(const std::string& output) {
  const std::vector<std::string> lines = absl::StrSplit(output, '\n');
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, "started on") || absl::StrContains(line, "resumed from step");
  }));
}

// Starts a training command, interrupts it once a trial has started, and returns its output.
std::string RunAndInterrupt(const std::string& directory,
                            const std::vector<std::string>& arguments) {
  auto run = StartClient(directory, arguments);
  const absl::Time deadline = absl::Now() + kDeadline;
  while (Started(Output(directory)) == 0) {
    if (absl::Now() > deadline || run->Poll().has_value()) {
      ADD_FAILURE() << Output(directory);
      return "";
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  run->Signal(SIGINT);
  const auto exit = run->WaitFor(kDeadline);
  EXPECT_TRUE(exit.has_value() && exit->code == 130) << Output(directory);
  return Output(directory);
}

// The sum of the checkpoint steps of all trials of an experiment.
int64_t Steps(const std::string& directory, const std::string& experiment) {
  const auto shown = nlohmann::json::parse(
      RunClient(directory, {"show", experiment, "--output", "json"}), nullptr, false);
  int64_t steps = 0;
  for (const auto& trial : shown.value("trials", nlohmann::json::array())) {
    steps += std::stoll(trial.value("checkpoint_step", "0"));
  }
  return steps;
}

TEST(RunTest, TrainsOnlyTheRequestedExperiment) {
  const std::string directory = ::testing::TempDir() + "/asked";
  const std::vector<std::string> big = {"run", WriteSpecification(directory, kForEver, "big"),
                                        "--workers", "1"};
  const std::vector<std::string> mid = {"run", WriteSpecification(directory, kForEver, "mid"),
                                        "--workers", "1"};
  const absl::Time deadline = absl::Now() + kDeadline;
  // Trains until the experiment has more steps than `before`. A trial interrupted before its first
  // step has none.
  const auto train = [&](const std::vector<std::string>& command, const std::string& experiment,
                         int64_t before) {
    std::string output;
    do {
      output = RunAndInterrupt(directory, command);
    } while (Steps(directory, experiment) <= before && absl::Now() < deadline &&
             !::testing::Test::HasFailure());
    EXPECT_GT(Steps(directory, experiment), before);
    return output;
  };
  train(big, "big-1", 0);
  EXPECT_THAT(train(mid, "mid-1", 0), HasSubstr("big-1 also waits here and is not trained now"));
  const int64_t mid_steps = Steps(directory, "mid-1");
  const std::string output = train(big, "big-1", Steps(directory, "big-1"));
  EXPECT_EQ(Steps(directory, "mid-1"), mid_steps) << "big was asked for";
  EXPECT_EQ(Started(output), 1) << output;
  const std::string go_on = "lengthwise run mid-1 --data_dir " + directory + "/data";
  EXPECT_THAT(output, HasSubstr("resume it afterwards: " + go_on + "\n"));
  // Runs the command that the output suggested.
  const int64_t big_steps = Steps(directory, "big-1");
  EXPECT_THAT(train({"run", "mid-1", "--workers", "1"}, "mid-1", mid_steps),
              HasSubstr(go_on + " --workers 1\n"));
  EXPECT_EQ(Steps(directory, "big-1"), big_steps);
}

TEST(RunTest, ExtensionTrainsOnlyNewTrials) {
  const std::string directory = ::testing::TempDir() + "/extended";
  const std::string other = WriteSpecification(directory, kForEver, "other");
  RunAndInterrupt(directory, {"run", other, "--workers", "1"});
  const int64_t others = Steps(directory, "other-1");
  EXPECT_EQ(Started(RunClient(directory, {"run", WriteSpecification(directory, 40)})), 2);
  const std::string output = RunClient(directory, {"extend", "tiny-1", "--seeds", "1"});
  EXPECT_THAT(output, HasSubstr("Estimated time: about "));
  EXPECT_THAT(output, HasSubstr("Added 2 trials to tiny-1"));
  EXPECT_THAT(output, HasSubstr("other-1 also waits here"));
  EXPECT_EQ(Started(output), 2) << "the first two were shown before\n" << output;
  EXPECT_EQ(Steps(directory, "other-1"), others);
  // No trial is left to train.
  EXPECT_THAT(RunClient(directory, {"run", "tiny-1"}), HasSubstr("all of which have ended"));
}

TEST(RunTest, WarnsOfTrainingAFinishedSpecificationAgain) {
  const std::string directory = ::testing::TempDir() + "/again";
  const std::string specification = WriteSpecification(directory, 10);
  const std::string warning =
      "warning: tiny-1 has trained the same specification, and tiny-2 trains "
      "it again; `lengthwise run tiny-1 --data_dir " +
      directory + "/data`";
  EXPECT_THAT(RunClient(directory, {"run", specification}), Not(HasSubstr("warning")));
  EXPECT_THAT(RunClient(directory, {"run", specification}), HasSubstr(warning));
  EXPECT_THAT(RunClient(directory, {"run", specification, "--fresh"}), Not(HasSubstr("warning")));
}

TEST(RunTest, InterruptedExtensionSaysHowToResume) {
  const std::string directory = ::testing::TempDir() + "/interrupted_extension";
  RunAndInterrupt(directory, {"run", WriteSpecification(directory, kForEver), "--workers", "1"});
  const std::string output =
      RunAndInterrupt(directory, {"extend", "tiny-1", "--seeds", "1", "--workers", "1"});
  EXPECT_THAT(output, AnyOf(HasSubstr("Progress up to the last checkpoint is kept"),
                            HasSubstr("no checkpoint yet")));
  EXPECT_THAT(output, HasSubstr("Resume or show it:\n  lengthwise run tiny-1 --data_dir " +
                                directory + "/data --workers 1\n"));
}

TEST(RunTest, LargeExtensionNeedsConfirmation) {
  const std::string directory = ::testing::TempDir() + "/large_extension";
  RunClient(directory, {"run", WriteSpecification(directory, 10)});
  const std::string refused = RunClient(directory, {"extend", "tiny-1", "--seeds", "1..11"}, 1);
  EXPECT_THAT(refused, HasSubstr("this adds 22 trials to tiny-1; estimated time: about "));
  EXPECT_THAT(refused, HasSubstr("`lengthwise extend tiny-1 --seeds 1..11 --data_dir " + directory +
                                 "/data --yes`"));
  EXPECT_THAT(RunClient(directory, {"extend", "tiny-1", "--seeds", "1..11", "--yes"}),
              HasSubstr("Added 22 trials to tiny-1"));
}

// Left queued, every later command in the directory would tell of it.
TEST(RunTest, EvaluationWithoutItsDeviceIsCancelled) {
  const std::string directory = ::testing::TempDir() + "/no_device";
  RunClient(directory, {"run", WriteSpecification(directory, 10)});
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"attention", "tiny-1/0", "--input", "1,2"},
        std::vector<std::string>{"evaluate", "tiny-1/0", "--lengths", "4"}}) {
    std::vector<std::string> wrong = command;
    wrong.insert(wrong.end(), {"--device", "cuda:63"});
    EXPECT_THAT(RunClient(directory, wrong, 1), HasSubstr("the private worker-1 exited"));
    EXPECT_THAT(RunClient(directory, {"show", "tiny_evaluation"}), HasSubstr("1 cancelled"));
  }
}

TEST(RunTest, AdviceNamesTheDirectory) {
  const std::string directory = ::testing::TempDir() + "/advice";
  const std::string option = " --data_dir " + directory + "/data";
  RunAndInterrupt(directory, {"run", WriteSpecification(directory, kForEver), "--workers", "1"});
  EXPECT_THAT(RunClient(directory, {"results", "tiny"}),
              HasSubstr("`lengthwise run tiny-1" + option + "` trains them"));
  RunClient(directory, {"cancel", "tiny-1"});
  EXPECT_THAT(RunClient(directory, {"results", "tiny"}),
              HasSubstr("`lengthwise show tiny-1" + option + "` says why"));
  EXPECT_THAT(RunClient(directory, {"attention", "tiny/0"}, 1),
              HasSubstr("has no attention maps, because the trial was cancelled; `lengthwise show "
                        "tiny/0" +
                        option + "` says why"));
  EXPECT_THAT(RunClient(directory, {"retry", "tiny-1", "--cancelled"}),
              HasSubstr("Train them with\n  lengthwise run tiny-1" + option));
}

TEST(RunTest, CancelledExperimentIsAFailure) {
  const std::string directory = ::testing::TempDir() + "/cancelled";
  auto run = StartRun(directory, kForEver);
  WaitForWorkers(directory, 1);
  // The server's address, as on the worker's command line.
  const std::string processes = absl::StrJoin(ProcessesWithVariable(kMark, directory), "\n");
  const std::string option = "--server ";
  const size_t at = processes.find(option);
  ASSERT_NE(at, std::string::npos) << processes;
  const std::string address = processes.substr(
      at + option.size(), processes.find(' ', at + option.size()) - at - option.size());
  const Result cancelled =
      RunProgram({kClient, "cancel", "tiny-1", "--server", address}, directory + "/cancel_output");
  EXPECT_EQ(cancelled.code, 0) << cancelled.output;
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_EQ(exit->code, 1) << Output(directory);
}

TEST(RunTest, PrintsResultsAndLeavesNoProcess) {
  const std::string directory = ::testing::TempDir() + "/complete";
  auto run = StartRun(directory, 40);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_TRUE(exit->ok()) << exit->ToString() << "\n" << Output(directory);
  EXPECT_THAT(Output(directory), HasSubstr("randomized_sin_cos"));
  EXPECT_THAT(Output(directory), HasSubstr("lengthwise results tiny-1"));
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

TEST(RunTest, ReadingCommandsFindTheRunWithoutOptions) {
  const std::string directory = ::testing::TempDir() + "/found";
  const std::string specification = WriteSpecification(directory, 20);
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"LENGTHWISE_SERVER_BINARY", kServer},
      {"LENGTHWISE_WORKER_BINARY", kWorker},
      {"LENGTHWISE_CONFIG", ""},
      {"LENGTHWISE_SERVER", ""},
      {"XDG_DATA_HOME", directory}};
  const auto client = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kClient);
    return RunProgram(arguments, directory + "/output", environment);
  };
  const Result run = client({"run", specification, "--device", "cpu"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\n  lengthwise results tiny-1\n"));
  for (const char* command : {"results", "show"}) {
    const Result read = client({command, "tiny-1"});
    EXPECT_EQ(read.code, 0) << read.output;
    EXPECT_THAT(read.output, AllOf(HasSubstr("no server is configured, so this reads the runs in " +
                                             directory + "/lengthwise/runs\n"),
                                   HasSubstr("sin_cos")));
  }
  // A command that changes something asks for the directory.
  const Result deleted = client({"delete", "tiny-1", "--yes"});
  EXPECT_EQ(deleted.code, 3) << deleted.output;
  EXPECT_THAT(deleted.output, HasSubstr("of a `lengthwise run` with --data_dir DIR"));
  EXPECT_EQ(client({"results", "tiny-1", "--server", "127.0.0.1:1"}).code, 3);
}

TEST(RunTest, AttentionReadsTextAsInTheFiles) {
  const std::string directory = ::testing::TempDir() + "/text";
  std::filesystem::create_directories(directory);
  std::ofstream train(directory + "/train.jsonl");
  for (const char* input : {"one two", "two three one", "three one"}) {
    train << "{\"input\": \"" << input << "\", \"target\": \"odd\", \"length\": 1}\n";
  }
  train.close();
  std::ofstream(directory + "/text.yaml")
      << "name: text\ntasks: {name: examples, train: train.jsonl, test: train.jsonl, symbols: "
         "words, target_length: any}\nnetworks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
         "encodings: none\nlearning_rates: 0.001\ntraining: {steps: 2, batch_size: 2}\n";
  const auto run = StartClient(directory, {"run", directory + "/text.yaml", "--device", "cpu"});
  ASSERT_TRUE(run->WaitFor(kDeadline)->ok()) << Output(directory);
  const auto attention = [&](const std::string& input) {
    StartClient(directory, {"attention", "text-1/0", "--input", input, "--device", "cpu"})
        ->WaitFor(kDeadline);
    return Output(directory);
  };
  EXPECT_THAT(attention("two one three"), HasSubstr("length 1: 3 input and 1 output tokens"));
  EXPECT_THAT(attention("[2, 0]"), HasSubstr("length 1: 2 input and 1 output tokens"));
  EXPECT_THAT(
      attention("two four"),
      HasSubstr("it has the symbol \"four\", which occurs in no input of the training file"));
}

TEST(RunTest, CommandsWhoseReaderEndedEndQuietly) {
  const std::string directory = ::testing::TempDir() + "/unread";
  auto run = StartRun(directory, 20);
  ASSERT_TRUE(run->WaitFor(kDeadline)->ok()) << Output(directory);
  const std::vector<std::vector<std::string>> commands = {
      {"logs", "tiny-1/0"}, {"results", "tiny-1"}, {"show", "tiny-1"}, {"list"}};
  for (std::vector<std::string> command : commands) {
    std::array<int, 2> ends;
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    close(ends[0]);  // the reader
    command.insert(command.begin(), kClient);
    command.insert(command.end(), {"--data_dir", directory + "/data"});
    std::array<int, 2> errors;
    ASSERT_EQ(pipe2(errors.data(), O_CLOEXEC), 0);
    auto process =
        platform::ChildProcess::Start({.arguments = command,
                                       .environment = {{"LENGTHWISE_SERVER_BINARY", kServer},
                                                       {"LENGTHWISE_WORKER_BINARY", kWorker}},
                                       .output_descriptor = ends[1],
                                       .error_descriptor = errors[1]})
            .value();
    close(ends[1]);
    close(errors[1]);
    const auto exit = process->WaitFor(kDeadline);
    ASSERT_TRUE(exit.has_value());
    // As a shell reports both.
    EXPECT_EQ(exit->signal != 0 ? 128 + exit->signal : exit->code, 128 + SIGPIPE) << command[1];
    char byte = 0;
    EXPECT_EQ(read(errors[0], &byte, 1), 0) << command[1] << " says something";
    close(errors[0]);
  }
}

TEST(RunTest, DataDirectoryOfTheSettingsIsUsed) {
  const std::string directory = ::testing::TempDir() + "/settings";
  const std::string specification = WriteSpecification(directory, 20);
  std::ofstream(directory + "/config.yaml") << "runs_dir: mine\n";
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"LENGTHWISE_SERVER_BINARY", kServer},
      {"LENGTHWISE_WORKER_BINARY", kWorker},
      {"LENGTHWISE_CONFIG", directory + "/config.yaml"},
      {"LENGTHWISE_SERVER", ""}};
  const Result run = RunProgram({kClient, "run", specification, "--device", "cpu"},
                                directory + "/output", environment);
  EXPECT_THAT(run.output, HasSubstr("The results stay in " + directory + "/mine."));
  const Result listed = RunProgram({kClient, "list"}, directory + "/output", environment);
  EXPECT_THAT(listed.output, HasSubstr("tiny-1"));
}

TEST(RunTest, DryRunMeasuresAndKeepsNothing) {
  const std::string directory = ::testing::TempDir() + "/dry";
  const std::string specification = WriteSpecification(directory, kForEver);
  std::filesystem::create_directories(directory + "/temporary");
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"LENGTHWISE_SERVER_BINARY", kServer},
      {"LENGTHWISE_WORKER_BINARY", kWorker},
      {"TMPDIR", directory + "/temporary"}};
  const Result told = RunProgram({kClient, "run", specification, "--device", "cpu", "--dry_run",
                                  "--data_dir", directory + "/data"},
                                 directory + "/output", environment);
  EXPECT_EQ(told.code, 0) << told.output;
  EXPECT_THAT(told.output, AllOf(HasSubstr("tiny: 2 trials in 2 packs; nothing is trained"),
                                 HasSubstr("Steps: 2,000,000 in all"),
                                 HasSubstr(" on this machine with "), HasSubstr(" of 2 kinds")));
  const Result json = RunProgram({kClient, "run", specification, "--device", "cpu", "--dry_run",
                                  "--output", "json", "--data_dir", directory + "/data"},
                                 directory + "/output", environment);
  const nlohmann::json trials = nlohmann::json::parse(json.output);
  ASSERT_EQ(trials.size(), 2u);
  // A step takes more than 10 us and less than 10 ms on any machine.
  for (const nlohmann::json& trial : trials) {
    EXPECT_GT(trial["estimated_seconds"].get<double>(), 1e-5 * kForEver);
    EXPECT_LT(trial["estimated_seconds"].get<double>(), 1e-2 * kForEver);
  }
  EXPECT_FALSE(std::filesystem::exists(directory + "/data"));
  EXPECT_TRUE(std::filesystem::is_empty(directory + "/temporary"));
}

TEST(RunTest, InstalledSpecificationRunsByItsName) {
  // The layout of an installation, as deploy/wheel.sh creates it.
  const std::string directory = testing::TempDir() + "/installed";
  std::filesystem::create_directories(directory + "/bin");
  const std::string client = directory + "/bin/lengthwise";
  std::filesystem::copy_file(kClient, client, std::filesystem::copy_options::overwrite_existing);
  const std::string specifications = directory + "/share/lengthwise/experiments/papers";
  WriteSpecification(specifications, 20);
  for (const char* once_or_again : {"tiny-1", "tiny-2"}) {
    const auto exit = StartProgram(client, directory, {"run", "papers/tiny", "--device", "cpu"})
                          ->WaitFor(kDeadline);
    ASSERT_TRUE(exit.has_value() && exit->code == 0) << Output(directory);
    EXPECT_THAT(Output(directory), HasSubstr(once_or_again));
  }
  const Result validated =
      RunProgram({client, "validate", "papers/tiny"}, directory + "/validated");
  EXPECT_THAT(validated.output, HasSubstr("/experiments/papers/tiny.yaml is valid, 2 trials"));
  const auto unknown = StartProgram(client, directory, {"run", "papers/tin"})->WaitFor(kDeadline);
  EXPECT_TRUE(unknown.has_value() && unknown->code != 0);
}

TEST(RunTest, EndsItsProcessesWhenInterrupted) {
  const std::string directory = ::testing::TempDir() + "/interrupted";
  auto run = StartRun(directory, kForEver);
  WaitForWorkers(directory, 1);
  run->Signal(SIGINT);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_EQ(exit->code, 130) << exit->ToString() << "\n" << Output(directory);
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

// The first step of the module writes the id of its process into a file.
TEST(RunTest, InterruptedModuleKeepsItsSteps) {
  const std::vector<std::string> flags = ModuleFlags();
  if (flags.empty()) GTEST_SKIP() << "no Python here has PyTorch";
  setenv("LENGTHWISE_PYTHON_NETWORKS", flags.back().c_str(), 1);
  const std::string directory = ::testing::TempDir() + "/interrupted_module";
  setenv("XDG_CACHE_HOME", directory.c_str(), 1);
  const std::string specification = WriteSpecification(directory, kForEver);
  std::string text = ContentsOf(specification);
  absl::StrReplaceAll({{"{name: encoder, blocks: 1, heads: 2, d_model: 16}",
                        "{name: python, file: net.py, class: Net}"},
                       {"[sin_cos, {name: sin_cos, randomized: true}]", "own"}},
                      &text);
  std::ofstream(specification) << text;
  const std::string trains = directory + "/trains";
  std::ofstream(directory + "/net.py")
      << "import os, torch\n"
         "class Net(torch.nn.Module):\n"
         "    def __init__(self, vocabulary, outputs):\n"
         "        super().__init__()\n"
         "        self.out = torch.nn.Embedding(vocabulary, outputs)\n"
         "    def forward(self, tokens):\n"
         "        if self.training and not os.path.exists('"
      << trains << "'):\n            with open('" << trains
      << ".new', 'w') as file:\n                file.write(str(os.getpid()))\n"
      << "            os.rename('" << trains << ".new', '" << trains << "')\n"
      << "        return self.out(tokens)\n";
  auto run = StartClient(directory, {"run", specification, "--device", "cpu", "--workers", "1"});
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!std::filesystem::exists(trains)) {
    ASSERT_TRUE(absl::Now() < deadline && !run->Poll().has_value()) << Output(directory);
    absl::SleepFor(absl::Milliseconds(20));
  }
  run->Signal(SIGINT);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_EQ(exit->code, 130) << exit->ToString() << "\n" << Output(directory);
  EXPECT_THAT(LeftRunning(directory), IsEmpty());
  // Its environment lacks kMark. A process that has ended has no command line.
  const std::string command = "/proc/" + ContentsOf(trains) + "/cmdline";
  while (!ContentsOf(command).empty() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(ContentsOf(command), "");
  EXPECT_GT(Steps(directory, "tiny-1"), 0);
}

TEST(RunTest, EndedReaderOfTheOutputCostsNoProgress) {
  const std::string directory = ::testing::TempDir() + "/piped";
  const std::string specification = WriteSpecification(directory, kForEver);
  // The first program of the pipe decides on the exit code, because the other one succeeds.
  auto pipe =
      StartProgram("/bin/bash", directory,
                   {"-o", "pipefail", "-c",
                    R"("$@" | while read -r line; do [[ $line == *started* ]] && break; done)",
                    "bash", kClient, "run", specification, "--workers", "1"});
  const auto exit = pipe->WaitFor(kDeadline);
  ASSERT_TRUE(exit.has_value()) << Output(directory);
  EXPECT_EQ(exit->code, 130) << exit->ToString() << "\n" << Output(directory);
  EXPECT_THAT(
      Output(directory),
      HasSubstr("Stopped, because nothing reads the output any more. Progress up to the last "
                "checkpoint is kept. Resume or show it:\n  lengthwise run tiny-1 "));
  EXPECT_GT(Steps(directory, "tiny-1"), 0);
  EXPECT_THAT(LeftRunning(directory), IsEmpty());
}

TEST(RunTest, GoesOnWithoutAKilledWorker) {
  const std::string directory = ::testing::TempDir() + "/killed_worker";
  auto run = StartClient(directory, {"run", WriteSpecification(directory, kForEver), "--device",
                                     "cpu", "--workers", "2"});
  WaitForWorkers(directory, 2);
  ASSERT_EQ(Workers(directory).size(), 2u) << Output(directory);
  kill(Workers(directory)[0], SIGKILL);
  WaitForText(*run, directory + "/output", "The other workers go on");
  EXPECT_THAT(Output(directory), HasSubstr("was killed by signal 9 (Killed), often because memory "
                                           "ran out (--workers 1 needs less)"));
  EXPECT_FALSE(run->Poll().has_value()) << Output(directory);
  ASSERT_EQ(Workers(directory).size(), 1u);
  kill(Workers(directory)[0], SIGKILL);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit.has_value()) << Output(directory);
  EXPECT_EQ(exit->code, 1) << exit->ToString() << "\n" << Output(directory);
  EXPECT_THAT(Output(directory), HasSubstr("Resume or show it:\n  lengthwise run tiny-1 "
                                           "--data_dir " +
                                           directory + "/data --device cpu --workers 2\n"));
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

TEST(RunTest, LostDirectoryKeepsNothing) {
  const std::string directory = ::testing::TempDir() + "/lost";
  auto run = StartRun(directory, kForEver);
  WaitForText(*run, directory + "/output", "started on");
  std::filesystem::rename(directory + "/data", directory + "/moved");
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit.has_value()) << Output(directory);
  EXPECT_EQ(exit->code, 1) << Output(directory);
  EXPECT_THAT(Output(directory), HasSubstr(directory + "/data is gone"));
  EXPECT_THAT(Output(directory), Not(HasSubstr("is kept")));
  EXPECT_EQ(LeftRunning(directory), std::vector<std::string>());
}

TEST(RunTest, OtherCommandsAskARunningRun) {
  const std::string directory = ::testing::TempDir() + "/looked_at";
  const std::string data = directory + "/data";
  auto run = StartRun(directory, kForEver);
  WaitForText(*run, directory + "/output", "started on");
  const Result shown =
      RunProgram({kClient, "show", "tiny-1", "--data_dir", data}, directory + "/shown");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("running"));
  const Result results =
      RunProgram({kClient, "results", "tiny-1", "--data_dir", data}, directory + "/results");
  EXPECT_EQ(results.code, 0) << results.output;
  EXPECT_THAT(results.output,
              HasSubstr("`lengthwise watch tiny-1 --data_dir " + data + "` shows how far"));
  // A second run, which trains beside the first one and ends before it.
  const Result second = RunProgram({kClient, "run", WriteSpecification(directory + "/second", 20),
                                    "--data_dir", data, "--device", "cpu", "--workers", "1"},
                                   directory + "/beside", {{"LENGTHWISE_WORKER_BINARY", kWorker}});
  EXPECT_EQ(second.code, 0) << second.output;

  // A watcher learns of the end of the run that it asks.
  auto watcher =
      platform::ChildProcess::Start({.arguments = {kClient, "watch", "tiny-1", "--data_dir", data},
                                     .output_file = directory + "/watched"});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  WaitForText(**watcher, directory + "/watched", "started on");
  run->Signal(SIGKILL);
  ASSERT_TRUE(run->WaitFor(kDeadline));
  const auto end = (*watcher)->WaitFor(kDeadline);
  ASSERT_TRUE(end.has_value()) << ContentsOf(directory + "/watched");
  EXPECT_EQ(end->code, 3) << ContentsOf(directory + "/watched");
  EXPECT_THAT(ContentsOf(directory + "/watched"),
              HasSubstr("the server that this command asked has ended: lengthwise_server"));
  EXPECT_THAT(RunClient(directory, {"watch", "tiny-1"}, 1), HasSubstr("nothing trains tiny-1 now"));
}

// As in a container, or in a job with a /tmp of its own.
TEST(RunTest, PrivateTemporaryDirectoryDoesNotHideARun) {
  const std::string directory = ::testing::TempDir() + "/own_tmp";
  const std::vector<std::string> own_tmp = {"--map-root-user", "--mount", "sh", "-c",
                                            "mount -t tmpfs none /tmp && exec \"$0\" \"$@\""};
  std::vector<std::string> arguments = {"unshare"};
  arguments.insert(arguments.end(), own_tmp.begin(), own_tmp.end());
  arguments.emplace_back("true");
  if (absl::StartsWith(directory, "/tmp/") ||
      RunProgram(arguments, ::testing::TempDir() + "/unshared").code != 0) {
    GTEST_SKIP() << "needs a mount namespace, and its files outside of /tmp";
  }
  // Leaves its socket in /tmp.
  auto killed = StartRun(directory, kForEver);
  WaitForText(*killed, directory + "/output", "started on");
  killed->Signal(SIGKILL);
  EXPECT_THAT(LeftRunning(directory), IsEmpty());
  arguments = own_tmp;
  arguments.insert(arguments.end(), {kClient, "run", "tiny-1", "--device", "cpu"});
  auto run = StartProgram("unshare", directory, arguments);
  const absl::Time deadline = absl::Now() + kDeadline;
  while (Started(Output(directory)) == 0) {
    ASSERT_LT(absl::Now(), deadline) << Output(directory);
    absl::SleepFor(absl::Milliseconds(20));
  }
  const Result shown = RunProgram({kClient, "show", "tiny-1", "--data_dir", directory + "/data"},
                                  directory + "/shown");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("running"));
}

TEST(RunTest, CleanedTemporaryDirectoryDoesNotEndARun) {
  const std::string directory = ::testing::TempDir() + "/cleaned";
  std::string temporary = "/tmp/run_test.XXXXXX";
  ASSERT_NE(mkdtemp(temporary.data()), nullptr);
  setenv("TMPDIR", temporary.c_str(), 1);
  auto run = StartRun(directory, kForEver);
  unsetenv("TMPDIR");
  WaitForText(*run, directory + "/output", "started on");
  {
    // A trial that is interrupted before its first step has no checkpoint.
    const auto watcher =
        platform::ChildProcess::Start({.arguments = {kClient, "watch", "tiny-1", "--output", "json",
                                                     "--data_dir", directory + "/data"},
                                       .output_file = directory + "/watched"});
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    WaitForText(**watcher, directory + "/watched", "training_points");
    (*watcher)->Signal(SIGKILL);
    ASSERT_TRUE((*watcher)->WaitFor(kDeadline));
  }
  EXPECT_TRUE(std::filesystem::exists(absl::StrCat(temporary, "/lengthwise-", geteuid())));
  std::filesystem::remove_all(temporary);
  const Result shown = RunProgram({kClient, "show", "tiny-1", "--data_dir", directory + "/data"},
                                  directory + "/shown");
  EXPECT_EQ(shown.code, 1) << shown.output;
  EXPECT_THAT(shown.output, AllOf(HasSubstr("lengthwise_server (process "),
                                  HasSubstr(" is gone, for example because the temporary"),
                                  HasSubstr("(a run can be resumed)")));
  run->Signal(SIGINT);
  const auto exit = run->WaitFor(kDeadline);
  ASSERT_TRUE(exit) << Output(directory);
  EXPECT_EQ(exit->code, 130) << Output(directory);
  EXPECT_GT(Steps(directory, "tiny-1"), 0) << "the worker's checkpoint reached the server";
  EXPECT_THAT(LeftRunning(directory), IsEmpty());
}

TEST(RunTest, ManyCommandsShareOneDirectory) {
  const std::string directory = ::testing::TempDir() + "/shared";
  RunClient(directory,
            {"run", WriteSpecification(directory, 20), "--device", "cpu", "--workers", "1"});
  std::vector<std::string> failures(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < failures.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 13; ++n) {
        const Result result =
            RunProgram({kClient, "results", "tiny-1", "--data_dir", directory + "/data"},
                       absl::StrCat(directory, "/results-", i),
                       {{"LENGTHWISE_SERVER_BINARY", kServer}, {kMark, directory}});
        if (result.code != 0) absl::StrAppend(&failures[i], result.output);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, testing::Each(IsEmpty()));
  EXPECT_THAT(LeftRunning(directory), IsEmpty());
}

TEST(RunTest, ResumesAtOnceAfterItWasKilled) {
  const std::string directory = ::testing::TempDir() + "/resumed";
  auto run = StartRun(directory, kForEver);
  WaitForText(*run, directory + "/output", "started on");
  run->Signal(SIGKILL);
  ASSERT_TRUE(run->WaitFor(kDeadline));
  EXPECT_TRUE(LeftRunning(directory).empty());
  RunAndInterrupt(directory, {"run", "tiny-1", "--device", "cpu", "--workers", "1"});
  const std::string shown = RunClient(directory, {"show", "tiny-1/0", "--output", "json"});
  EXPECT_THAT(shown, HasSubstr("was released when the server started"));
  EXPECT_THAT(shown, Not(HasSubstr("without a heartbeat")));
}

TEST(RunTest, EndsItsProcessesWhenKilled) {
  const std::string directory = ::testing::TempDir() + "/killed";
  auto run = StartRun(directory, kForEver);
  WaitForWorkers(directory, 1);
  run->Signal(SIGKILL);
  ASSERT_TRUE(run->WaitFor(kDeadline));
  const std::vector<std::string> left = LeftRunning(directory);
  EXPECT_TRUE(left.empty()) << absl::StrJoin(left, "\n");
}

}  // namespace
}  // namespace lengthwise::end_to_end
