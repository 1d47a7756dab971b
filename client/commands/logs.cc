// `lengthwise logs TRIAL`: shows the log lines of workers and server about a trial.
#include <deque>

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

bool IsShown(const v1::Event& event) { return event.has_log_line() || event.has_state_change(); }

void Write(Program& program, const v1::Event& event) {
  const absl::Time time = ToTime(event.time());
  const v1::LogLine& log = event.log_line();
  const std::string text =
      event.has_log_line() ? log.text() : DescribeChange(event.state_change(), event.attempt());
  const std::string severity = !event.has_log_line()                    ? "state"
                               : log.severity() == v1::LogLine::ERROR   ? "error"
                               : log.severity() == v1::LogLine::WARNING ? "warning"
                                                                        : "info";
  if (program.output == "json") {
    WriteJsonLine({"time", "severity", "text"},
                  {absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()), severity, text},
                  program.out());
    return;
  }
  const Paint paint = severity == "error"     ? Paint::kRed
                      : severity == "warning" ? Paint::kYellow
                      : severity == "state"   ? Paint::kCyan
                                              : Paint::kPlain;
  // Indents continuation lines, so that a multi-line text stays one entry.
  program.out() << FormatLocalTime(time) << "  " << program.palette()(paint, PadRight(severity, 7))
                << "  " << absl::StrReplaceAll(text, {{"\n", "\n    "}}) << "\n";
}

absl::StatusOr<int> Logs(Program& program, const Options& options) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  ASSIGN_OR_RETURN(const auto found, connection->Find(options.trial, Connection::FindRequest::READ,
                                                      Connection::FindRequest::TRIAL));
  const v1::Trial& trial = found.trial();
  // A log on a full disk cannot say that it is full.
  const bool has_ended = trial.state() != v1::QUEUED && trial.state() != v1::RUNNING;
  v1::Event fault;
  fault.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  if (!has_ended) fault.mutable_log_line()->set_text(found.experiment().storage_fault());
  InterruptGuard interrupt;
  v1::WatchExperimentRequest request;
  request.set_name(trial.name());
  request.set_log_only(true);
  Follower follower(*connection, request);
  std::deque<v1::Event> history;  // buffered until it is complete
  bool caught_up = false;
  while (interrupt.count() == 0) {
    const Follower::Update update = follower.Next(absl::Milliseconds(100));
    if (update.response) {
      for (const v1::Event& event : update.response->events()) {
        if (!IsShown(event)) continue;
        if (caught_up || options.tail < 0) {
          Write(program, event);
          continue;
        }
        history.push_back(event);
        if (static_cast<int64_t>(history.size()) > options.tail) history.pop_front();
      }
      if (update.response->caught_up()) caught_up = true;
    }
    if (caught_up || update.end) {
      for (const v1::Event& event : history) Write(program, event);
      history.clear();
      if (!fault.log_line().text().empty()) {
        *fault.mutable_time() = ToTimestamp(absl::Now());
        Write(program, fault);
        fault.Clear();
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
