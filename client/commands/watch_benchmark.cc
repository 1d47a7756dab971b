// Measures the cost of a live watch. The real program runs in a pseudo-terminal and watches an
// experiment whose trials all train; a server in this process sends the events of a fleet.
//
//   bazel run //client/commands:watch_benchmark -- --trials 300 --seconds 20
//
// Prints the program's CPU share of a core, its output volume, and how often it cleared more than
// the end of a line, which causes flicker.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection/testing/real_server.h"
#include "client/display/testing/pseudo_terminal.h"
#include "command_line/definition.h"

namespace lengthwise::client {
namespace {

constexpr int kTotalSteps = 1000;
// Workers report once a second at different times. Each second is divided into this many reports,
// each of a part of the trials.
constexpr int kReportsPerSecond = 10;

// Every trial runs, and reports progress and a loss point once a second until Stop.
class TrainingServer : public RealServer {
 public:
  explicit TrainingServer(int trials) {
    const std::string experiment = SubmitText(absl::StrCat(
        "name: training\ntasks: bucket_sort\n"
        "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\nencodings: none\n"
        "learning_rates: 0.001\nseeds: 0..",
        trials - 1, "\ntraining: {steps: ", kTotalSteps,
        ", batch_size: 4, lengths: 2}\nevaluation: {lengths: 4, sequences: 8}\n"));
    LeaseTrials(experiment, trials);
    names_ = TrialsOf(experiment);
    training_ = std::thread([this] { Train(); });
  }
  void Stop() {
    stopping_ = true;
    training_.join();
  }

 private:
  void Train() {
    const absl::Time begin = absl::Now();
    for (int64_t report = 0; !stopping_; ++report) {
      const int64_t step = report / kReportsPerSecond % kTotalSteps;
      const float loss = 2.0f / static_cast<float>(1 + step);
      std::vector<v1::Event> events;
      for (size_t i = static_cast<size_t>(report % kReportsPerSecond); i < names_.size();
           i += kReportsPerSecond) {
        v1::TrialProgress progress;
        progress.set_trial(names_[i]);
        progress.set_phase(v1::TrialProgress::TRAINING);
        progress.set_done(step);
        progress.set_total(kTotalSteps);
        progress.set_steps_per_second(38.1 + static_cast<double>(i % 7));
        progress.set_loss(loss);
        progress.set_seconds_left(static_cast<double>(kTotalSteps - step));
        SendProgress({progress});
        v1::Event& event = events.emplace_back();
        event.set_trial(names_[i]);
        v1::TrainingPoints& points = *event.mutable_training_points();
        points.add_steps(step);
        points.add_losses(loss);
        points.add_accuracies(0.5);
        points.add_gradient_norms(1);
        points.add_lengths(2);
      }
      Append(events);
      absl::SleepFor(begin + (report + 1) * absl::Seconds(1) / kReportsPerSecond - absl::Now());
    }
  }

  std::vector<std::string> names_;
  std::atomic<bool> stopping_ = false;
  std::thread training_;
};

// Returns the CPU time of the process so far in seconds, user and kernel mode together.
double ProcessorSeconds(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double kernel = 0;
  fields >> user >> kernel;
  return (user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

int Main(int argc, char** argv) {
  command_line::CommandLine line("watch_benchmark", "Measures the cost of a live watch.");
  int trials = 300;
  int seconds = 20;
  int rows = 60;
  int columns = 160;
  std::string program = "client/lengthwise";
  const command_line::Command root = line.root();
  root.AddOption("--trials N", trials, "Trials that train").ShowDefault();
  root.AddOption("--seconds N", seconds, "Measured seconds, after three seconds of warm-up")
      .ShowDefault();
  root.AddOption("--rows N", rows, "Rows of the terminal").ShowDefault();
  root.AddOption("--columns N", columns, "Columns of the terminal").ShowDefault();
  root.AddOption("--program FILE", program, "Program to measure").ShowDefault();
  const auto help = line.Parse({argv + 1, argv + argc});
  if (!help.ok()) {
    std::cerr << std::string(help.status().message()) << "\n";
    return 2;
  }
  if (!help->empty()) {
    std::cout << *help;
    return 0;
  }
  TrainingServer server(trials);
  PseudoTerminal terminal({program, "watch", "training-1", "--server", server.address()},
                          {{"TERM", "xterm-256color"}, {"LENGTHWISE_CONFIG", ""}},
                          {.width = columns, .height = rows});
  std::string written = terminal.ReadFor(absl::Seconds(3));
  const double before = ProcessorSeconds(terminal.pid());
  const absl::Time begin = absl::Now();
  written = terminal.ReadFor(absl::Seconds(seconds));
  const double wall = absl::ToDoubleSeconds(absl::Now() - begin);
  const double used = ProcessorSeconds(terminal.pid()) - before;
  const bool alive = !terminal.ended();
  kill(terminal.pid(), SIGINT);
  terminal.ReadFor(absl::Seconds(2));
  server.Stop();
  if (!alive) {
    std::cerr << "the watch ended by itself:\n" << written << "\n";
    return 1;
  }
  std::cout << absl::StrFormat(
      "%d trials on %d rows of %d: %.2f %% of one core (%.2f s in %.1f s), %.1f KiB a second, %d "
      "screens or rests of screens cleared\n",
      trials, rows, columns, 100 * used / wall, used, wall,
      static_cast<double>(written.size()) / 1024 / wall,
      Count(written, "\x1b[2J") + Count(written, "\x1b[J"));
  return 0;
}

}  // namespace
}  // namespace lengthwise::client

int main(int argc, char** argv) { return lengthwise::client::Main(argc, argv); }
