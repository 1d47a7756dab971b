#include "client/commands/experiment_display.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/display/accuracy_summary.h"
#include "client/display/numbers.h"
#include "client/display/records.h"
#include "client/display/terminal.h"
#include "client/watching/experiment_view.h"
#include "client/watching/follower.h"
#include "client/watching/lines.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "proto/trial_counts.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

// Interval for redrawing the live view and for checking Ctrl-C and child processes.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// Line mode: minimum interval between two training lines of a trial.
constexpr absl::Duration kPlainInterval = absl::Seconds(10);

// Interval for checking for added trials.
constexpr absl::Duration kListInterval = absl::Seconds(2);

// One of the three output modes.
class Display {
 public:
  virtual ~Display() = default;
  // `stored`: the event was there before the watch began.
  virtual void Show(const v1::Event& event, bool stored) = 0;
  virtual void Tick(bool caught_up, const absl::Status& connection) = 0;
  // Other output follows, until the next Tick.
  virtual void Pause() {}
};

class JsonDisplay : public Display {
 public:
  explicit JsonDisplay(std::ostream& out) : out_(out) {}
  void Show(const v1::Event& event, bool) override {
    if (const auto json = MessageJson(event); json.ok()) out_ << *json << "\n";
  }
  void Tick(bool, const absl::Status&) override { out_.flush(); }

 private:
  std::ostream& out_;
};

class PlainDisplay : public Display {
 public:
  PlainDisplay(Program& program, const ExperimentView& view, bool news_only)
      : program_(program),
        view_(view),
        news_only_(news_only),
        lines_(kPlainInterval, absl::LocalTimeZone()) {}
  void Show(const v1::Event& event, bool stored) override {
    const auto line = lines_.Line(view_, event);
    if (!line.has_value() || (stored && news_only_)) return;
    program_.out() << *line << "\n";
  }
  void Tick(bool, const absl::Status& connection) override {
    const absl::Time now = absl::Now();
    if (link_.Update(connection, now)) {
      program_.err() << "lengthwise: " << link_.Note(now) << (link_.lost() ? ": " : "")
                     << link_.reason() << "\n";
    }
    program_.out().flush();
  }

 private:
  Program& program_;
  const ExperimentView& view_;
  const bool news_only_;
  PlainLines lines_;
  LinkState link_;
};

class LiveDisplay : public Display {
 public:
  LiveDisplay(Program& program, const ExperimentView& view, const v1::Experiment& experiment)
      : program_(program),
        view_(view),
        title_(ShortName(experiment.name())),
        created_(ToTime(experiment.create_time())),
        region_(program.out()) {}
  ~LiveDisplay() override { region_.Finish(); }

  void Pause() override { region_.Finish(); }
  void Show(const v1::Event& event, bool) override {
    last_event_ = std::max(last_event_, ToTime(event.time()));
  }
  void Tick(bool caught_up, const absl::Status& connection) override {
    // Do not animate the history: draw once it is complete.
    if (!caught_up && connection.ok()) return;
    const TerminalSize size = program_.terminal_size();
    const absl::Time now = absl::Now();
    link_.Update(connection, now);
    // Leaves one line free for the cursor, and one column for terminals that wrap at the last one.
    region_.Update(LiveLines(view_,
                             {.title = title_,
                              .width = std::max(1, size.width - 1),
                              .height = std::max(1, size.height - 1),
                              .elapsed = (view_.all_ended() ? last_event_ : now) - created_,
                              .now = now,
                              .link = link_},
                             program_.palette()),
                   size);
  }

 private:
  Program& program_;
  const ExperimentView& view_;
  const std::string title_;
  const absl::Time created_;
  absl::Time last_event_ = absl::InfinitePast();
  LinkState link_;
  LiveRegion region_;
};

std::unique_ptr<Display> MakeDisplay(Program& program, const ExperimentView& view,
                                     const v1::Experiment& experiment, bool news_only) {
  if (program.output == "json") return std::make_unique<JsonDisplay>(program.out());
  if (program.redraws()) return std::make_unique<LiveDisplay>(program, view, experiment);
  return std::make_unique<PlainDisplay>(program, view, news_only);
}

// Lists the trials again if a response is about one that the view does not know, because it was
// added in the meantime. An error leaves the view unchanged.
absl::Status LearnTrials(Connection& connection, const std::string& experiment,
                         const v1::WatchExperimentResponse& response, ExperimentView& view) {
  const auto& events = response.events();
  const bool known = std::all_of(events.begin(), events.end(), [&](const v1::Event& event) {
    return view.Find(event.trial()) != nullptr;
  });
  if (known) return absl::OkStatus();
  const auto trials = connection.ListTrials(experiment, "");
  if (trials.ok()) view.AddTrials(*trials);
  return trials.status();
}

}  // namespace

absl::StatusOr<int> WatchExperiment(Program& program, Connection& connection,
                                    const WatchOptions& options) {
  if (program.output == "csv") {
    return absl::InvalidArgumentError("a watch is printed as table or json, not csv");
  }
  ASSIGN_OR_RETURN(auto experiment, connection.GetExperiment(options.experiment));
  ASSIGN_OR_RETURN(auto trials, connection.ListTrials(options.experiment, ""));

  InterruptGuard interrupts;
  ExperimentView view(trials, options.from <= 1);
  const std::unique_ptr<Display> display =
      MakeDisplay(program, view, experiment, options.news_only);
  v1::WatchExperimentRequest request;
  request.set_name(options.experiment);
  request.set_start_position(options.from);
  request.set_include_progress(true);
  Follower follower(connection, request);
  bool caught_up = false;
  std::optional<absl::Status> end;
  // Received, but not shown until its trials are known.
  std::optional<v1::WatchExperimentResponse> response;
  absl::Time listed = absl::Now();
  // The server's disk fails.
  bool waits = false;
  while (!end.has_value()) {
    const absl::Time next_tick = absl::Now() + kTick;
    absl::Status broken;
    // Takes all buffered responses, then waits until the next tick at most.
    for (absl::Duration left = kTick; left > absl::ZeroDuration() && !end.has_value();
         left = next_tick - absl::Now()) {
      if (!response.has_value()) {
        Follower::Update update = follower.Next(left);
        broken = update.connection;
        end = update.end;
        response = std::move(update.response);
        if (!response.has_value()) continue;
      }
      broken = LearnTrials(connection, options.experiment, *response, view);
      // The stream will also break and reconnect.
      if (absl::IsUnavailable(broken) || absl::IsDeadlineExceeded(broken)) {
        absl::SleepFor(next_tick - absl::Now());
        break;
      }
      RETURN_IF_ERROR(broken);
      for (const v1::Event& event : response->events()) {
        if (view.Apply(event)) display->Show(event, !caught_up);
      }
      for (const v1::TrialProgress& progress : response->progress()) view.Apply(progress);
      if (response->caught_up() && !caught_up) {
        caught_up = true;
        if (options.caught_up) {
          RETURN_IF_ERROR(options.caught_up());
        }
      }
      response.reset();
      if (interrupts.count() > 0) break;
    }
    // The stream sends nothing about added trials that are queued.
    if (caught_up && !end.has_value() && broken.ok() && absl::Now() - listed > kListInterval) {
      listed = absl::Now();
      const auto current = connection.GetExperiment(options.experiment);
      if (current.ok() && current->storage_fault().empty() == waits) {
        waits = !waits;
        display->Pause();
        program.err() << program.Wrapped(absl::StrCat(
                             waits ? "warning: " : "", ShortName(experiment.name()), " ",
                             waits ? current->storage_fault()
                                   : "goes on: the server can store its progress again"))
                      << std::endl;
      }
      if (current.ok() && AllTrials(current->trials()) != AllTrials(view.Counts())) {
        if (const auto all = connection.ListTrials(options.experiment, ""); all.ok()) {
          view.AddTrials(*all);
        }
      }
    }
    display->Tick(caught_up || end.has_value(), broken);
    if (interrupts.count() > 0) return kInterrupted;
    // The server of a run ends soon after the experiment.
    if (options.check && !end.has_value()) {
      RETURN_IF_ERROR(options.check());
    }
    if (options.warnings) {
      for (const std::string& warning : options.warnings()) {
        display->Pause();
        program.err() << "warning: " << platform::PrintableText(warning) << std::endl;
      }
    }
    if (options.until_running && caught_up && (view.Counts().running() > 0 || view.all_ended())) {
      return kSuccess;
    }
  }
  RETURN_IF_ERROR(*end);
  return view.Counts().failed() + view.Counts().cancelled() > 0 ? kFailure : kSuccess;
}

namespace {

constexpr size_t kMostCurves = 6;
constexpr int kChartHeight = 11;
constexpr int kChartWidth = 100;

// All tasks of a specification are of one kind.
bool LearnsText(const v1::ExperimentSpecification& specification) {
  const tasks::TaskEntry* task =
      specification.tasks().empty() ? nullptr : tasks::FindTask(specification.tasks(0).name());
  return task != nullptr && task->kind == tasks::TaskKind::kText;
}

}  // namespace

absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals,
                          const std::string& select) {
  std::ostream& out = program.out();
  if (program.output == "json" || program.output == "csv") {
    ASSIGN_OR_RETURN(auto trials, connection.ListTrials(experiment.name(), ""));
    ASSIGN_OR_RETURN(auto accuracies,
                     connection.QueryLengthAccuracies(experiment.name(), with_intervals));
    std::vector<v1::Event> analyses;
    if (LearnsText(experiment.specification())) {
      ASSIGN_OR_RETURN(analyses, connection.QueryAnalyses(experiment.name()));
    }
    const bool csv = program.output == "csv";
    WriteAccuracies(trials, accuracies, analyses, csv ? RecordFormat::kCsv : RecordFormat::kJson,
                    out);
    return absl::OkStatus();
  }
  v1::SummarizeExperimentRequest request;
  request.set_name(experiment.name());
  request.set_select(select);
  ASSIGN_OR_RETURN(auto cells, connection.Call<v1::SummarizeExperimentResponse>(request));
  const AccuracySummary summary = Summarize(cells);
  const Palette palette = program.palette();
  const std::string name = ShortName(experiment.name());
  const bool one_task = absl::c_all_of(
      summary.rows, [&](const AccuracyRow& row) { return row.task() == summary.rows[0].task(); });
  out << palette(Paint::kBold, name)
      << (one_task && !summary.rows.empty() ? absl::StrCat(" · ", summary.rows[0].task()) : "")
      << " · " << DescribeCounts(experiment.trials()) << "\n\n";
  if (summary.rows.empty()) {
    if (UnendedTrials(experiment.trials()) == 0) {
      out << "No trial succeeded; `lengthwise show " << name << program.WhereArguments()
          << "` says why.\n";
    } else if (program.serves_alone()) {
      // Nothing trains in a directory that no other process uses.
      out << "No trial has been evaluated in full yet; `lengthwise run " << name
          << program.WhereArguments() << "` trains them.\n";
    } else {
      out << "No trial has been evaluated in full yet; `lengthwise watch " << name
          << program.WhereArguments() << "` shows how far they are.\n";
    }
    return absl::OkStatus();
  }
  out << program.Wrapped(summary.heading.caption()) << "\n\n"
      << MakeAccuracyTable(summary, program.width(), /*with_sparklines=*/true)
             .Render(program.width(), palette);
  const std::string& guess = summary.heading.random_guess();
  if (!guess.empty()) out << program.Wrapped(guess) << "\n";
  out << "\n";
  if (summary.lengths.size() > 1) {
    if (summary.rows.size() > kMostCurves) {
      const v1::Evaluation& evaluation = experiment.specification().evaluation();
      const char* lengths = (select.empty() ? evaluation.select() : select) == "unseen" ? "unseen"
                            : evaluation.has_validation() ? "validation"
                                                          : "seen";
      const bool ranked = absl::c_any_of(
          summary.rows, [](const AccuracyRow& row) { return row.selection().trials() > 0; });
      out << "The "
          << (ranked ? absl::StrCat(kMostCurves, " best on ", lengths, " lengths, of ")
                     : absl::StrCat("first ", kMostCurves, " of "))
          << summary.rows.size() << (one_task ? ":\n" : ", task by task:\n");
    }
    out << MakeAccuracyChart(summary, kMostCurves)
               .Render(std::min(program.width() - 1, kChartWidth), kChartHeight, palette);
  }
  if (summary.missing_trials > 0) {
    out << "\n"
        << FormatCount(summary.missing_trials) << " of "
        << Counted(AllTrials(experiment.trials()), "trial")
        << (summary.missing_trials == 1 ? " is not in the table: it has"
                                        : " are not in the table: they have")
        << " not succeeded.\n";
  }
  const bool unchosen = absl::c_any_of(summary.rows, [](const AccuracyRow& row) {
    return row.trials().succeeded() > 1 && row.best_trial().empty() &&
           row.seen_accuracy().trials() == 0 && row.unseen_accuracy().trials() > 0;
  });
  if (unchosen) {
    out << "\n"
        << program.Wrapped(
               "Nothing chooses between learning rates or seeds: no evaluated length counts as "
               "seen. Give evaluation.validation or a seen length in the specification, or choose "
               "by the unseen lengths themselves: --select unseen")
        << "\n";
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
