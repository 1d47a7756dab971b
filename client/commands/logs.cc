// `lengthwise logs TRIAL`: shows the log lines of workers and server about a trial.
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/terminal.h"
#include "client/watching/follower.h"
#include "client/watching/lines.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"

namespace lengthwise::client {
namespace {

struct Options {
  std::string trial;
  bool follow = false;
  int64_t tail = -1;  // all
};

struct Line {
  absl::Time time;
  std::string severity;
  std::string text;
};

// Describes a state change: "failed (attempt 2): the loss was nan at step 12".
std::string DescribeChange(const v1::StateChange& change, int32_t attempt) {
  std::string text = StateWord(change.to());
  if (!change.worker().empty()) absl::StrAppend(&text, " on ", change.worker());
  if (attempt > 0) absl::StrAppend(&text, ", attempt ", attempt);
  if (change.resumed_from_step() > 0) {
    absl::StrAppend(&text, ", from step ", change.resumed_from_step());
  }
  if (!change.reason().empty()) absl::StrAppend(&text, ": ", change.reason());
  return text;
}

std::optional<Line> ToLine(const v1::Event& event) {
  Line line;
  line.time = ToTime(event.time());
  if (event.has_log_line()) {
    const v1::LogLine& log = event.log_line();
    line.severity = log.severity() == v1::LogLine::ERROR     ? "error"
                    : log.severity() == v1::LogLine::WARNING ? "warning"
                                                             : "info";
    line.text = log.text();
  } else if (event.has_state_change()) {
    line.severity = "state";
    line.text = DescribeChange(event.state_change(), event.attempt());
  } else {
    return std::nullopt;
  }
  return line;
}

void Write(Program& program, const Line& line) {
  if (program.output == "json") {
    WriteJsonLine({"time", "severity", "text"},
                  {absl::FormatTime(absl::RFC3339_full, line.time, absl::UTCTimeZone()),
                   line.severity, line.text},
                  program.out());
    return;
  }
  const Paint paint = line.severity == "error"     ? Paint::kRed
                      : line.severity == "warning" ? Paint::kYellow
                      : line.severity == "state"   ? Paint::kCyan
                                                   : Paint::kPlain;
  // Indents continuation lines, so that a multi-line text stays one entry.
  program.out() << FormatLocalTime(line.time) << "  "
                << program.palette()(paint, PadRight(line.severity, 7)) << "  "
                << absl::StrReplaceAll(line.text, {{"\n", "\n    "}}) << "\n";
}

absl::StatusOr<int> Logs(Program& program, const Options& options) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  ASSIGN_OR_RETURN(const auto found, connection->Find(options.trial, Connection::FindRequest::READ,
                                                      Connection::FindRequest::TRIAL));
  const v1::Trial& trial = found.trial();
  // A log on a full disk cannot say that it is full.
  const bool has_ended = trial.state() != v1::QUEUED && trial.state() != v1::RUNNING;
  std::string fault = has_ended ? "" : found.experiment().storage_fault();
  InterruptGuard interrupt;
  Follower follower(*connection,
                    {.experiment = trial.name(), .include_progress = false, .log_only = true});
  std::deque<Line> history;  // buffered until it is complete
  bool caught_up = false;
  while (interrupt.count() == 0) {
    const Follower::Update update = follower.Next(absl::Milliseconds(100));
    if (update.response) {
      for (const v1::Event& event : update.response->events()) {
        std::optional<Line> line = ToLine(event);
        if (!line) continue;
        if (caught_up || options.tail < 0) {
          Write(program, *line);
          continue;
        }
        history.push_back(*std::move(line));
        if (static_cast<int64_t>(history.size()) > options.tail) history.pop_front();
      }
      if (update.response->caught_up()) caught_up = true;
    }
    if (caught_up || update.end) {
      for (const Line& line : history) Write(program, line);
      history.clear();
      if (!fault.empty()) {
        Write(program, Line{absl::Now(), "warning", std::exchange(fault, "")});
      }
      program.out().flush();
      if (!options.follow && caught_up) return kSuccess;
    }
    if (update.end) {
      if (!update.end->ok()) return *update.end;
      return kSuccess;
    }
    if (!update.connection.ok()) {
      RETURN_IF_ERROR(program.CheckServer());
    }
  }
  return kInterrupted;
}

}  // namespace

void AddLogs(Command root, Program& program) {
  const auto [command, options] =
      program.AddCommand(root, "logs", "Shows the log of a trial", kServerGroup,
                         "lengthwise logs quickstart-1/0\n"
                         "lengthwise logs quickstart-1/0 --tail 20 --follow",
                         Logs);
  command.AddOption("trial", options->trial, "EXPERIMENT/TRIAL or EXPERIMENT/INDEX of the trial");
  command.AddFlag("--follow,-f", options->follow, "Follows the log until the trial ends");
  command.AddOption("--tail N", options->tail, "Shows only the last N existing lines")
      .NonNegative();
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command, {"table", "json"});
}

}  // namespace lengthwise::client
