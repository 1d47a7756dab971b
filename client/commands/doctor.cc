// `lengthwise doctor`: checks an installation and says how to fix it.
#include <cstdlib>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/commands/python_program.h"
#include "client/connection/private_service.h"
#include "client/diagnosis/diagnosis.h"
#include "client/display/numbers.h"
#include "models/python_network/process.h"
#include "platform/version.h"
#include "rpc/token.h"

namespace lengthwise::client {
namespace {

// Short, because the user is looking for a fault and should not wait for a dead server.
constexpr absl::Duration kDiagnosisTimeout = absl::Seconds(5);

struct Look {
  const char* word;
  const char* sign;
  Paint paint;
};

Look LookOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return {"ok", "✓", Paint::kGreen};
    case Verdict::kSkipped:
      return {"skipped", "–", Paint::kDim};
    case Verdict::kWarning:
      return {"warn", "!", Paint::kYellow};
    default:
      return {"fail", "✗", Paint::kRed};
  }
}

ProgramVersion Self() {
  return {.version = platform::kVersion, .revision = platform::kSourceRevision};
}

Findings AskServer(const rpc::Settings& settings) {
  auto connection =
      Connection::Open(rpc::ToChannelOptions(settings), {.timeout = kDiagnosisTimeout,
                                                         .create_timeout = kDiagnosisTimeout,
                                                         .patience = absl::ZeroDuration()});
  // The findings on credentials give the cause; this one gives the consequence.
  if (!connection.ok()) {
    return {{Verdict::kFailure, "server",
             absl::StrCat("not asked: ", std::string(connection.status().message())),
             "correct the settings first"}};
  }
  ServiceAnswers answers;
  answers.address = settings.Value("server");
  const std::string& token = settings.Value("token_file");
  answers.has_web_token = rpc::IsWebToken(rpc::ReadTokenFile(token).value_or(""));
  answers.caller = (*connection)->Call<v1::Caller>(v1::GetCallerRequest());
  if (settings["server"].origin == "default" && NothingListens(answers.caller.status())) {
    return {{Verdict::kSkipped, "server",
             absl::StrCat("none is configured, and none runs at ", answers.address),
             "`lengthwise run` needs none; name another with --server HOST:PORT"}};
  }
  if (answers.caller.ok()) {
    answers.asked = absl::Now();
    answers.server = (*connection)->Call<v1::Server>(v1::GetServerRequest());
    answers.answered = absl::Now();
    // The server's audit log records every call that is denied.
    const v1::Role role = answers.caller->role();
    answers.workers = absl::PermissionDeniedError("this token's role may not see them");
    answers.storage = absl::PermissionDeniedError("");
    if (role != v1::WORKER && role != v1::BACKUP) {
      answers.workers = (*connection)->Call<v1::ListWorkersResponse>(v1::ListWorkersRequest());
    }
    if (role == v1::ADMIN) {
      answers.storage = (*connection)->Call<v1::Storage>(v1::GetStorageRequest());
    }
  }
  return InspectService(answers, Self());
}

// What computes users' PyTorch modules here.
Finding InspectModules() {
  const std::string python = models::DefaultInterpreter();
  const absl::StatusOr<std::string> found =
      models::DescribeInterpreter(python, models::DefaultPythonDevice());
  if (found.ok()) return {Verdict::kOk, "own networks", absl::StrCat(*found, ", ", python)};
  return {Verdict::kSkipped, "own networks", std::string(found.status().message()),
          "for networks of your own, install PyTorch there, or name another Python in "
          "$LENGTHWISE_PYTHON_NETWORKS, or device in $LENGTHWISE_PYTHON_DEVICE"};
}

absl::StatusOr<int> Doctor(Program& program) {
  const absl::StatusOr<rpc::Settings> settings = program.Settings();
  Findings findings = InspectSettings(settings, getenv);
  if (settings.ok()) {
    absl::c_move(InspectCredentials(*settings, absl::Now()), std::back_inserter(findings));
    absl::c_move(AskServer(*settings), std::back_inserter(findings));
  }
  findings.push_back(InspectProgram(
      "server here", FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"),
      Self()));
  findings.push_back(InspectProgram(
      "worker here", FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY"),
      Self()));
  findings.push_back(InspectPython(FindPython()));
  findings.push_back(InspectModules());
  findings.push_back(InspectLocale(getenv));

  int warnings = 0;
  int failures = 0;
  for (const Finding& finding : findings) {
    warnings += finding.verdict == Verdict::kWarning;
    failures += finding.verdict == Verdict::kFailure;
  }
  if (!program.output_is_table()) {
    Records records{.columns = {"verdict", "subject", "found", "advice"}};
    for (const Finding& finding : findings) {
      records.rows.push_back(
          {LookOf(finding.verdict).word, finding.subject, finding.found, finding.advice});
    }
    program.Write(records);
    return failures > 0 ? kFailure : kSuccess;
  }
  const Palette palette = program.palette();
  int widest = 0;
  for (const Finding& finding : findings) {
    widest = std::max(widest, DisplayWidth(finding.subject));
  }
  // Widths of sign, word and subject.
  const int indent = 2 + 7 + 2 + widest + 2;
  for (const Finding& finding : findings) {
    const Look look = LookOf(finding.verdict);
    program.out() << palette(look.paint, absl::StrCat(look.sign, " ", PadRight(look.word, 7)))
                  << "  " << PadRight(finding.subject, widest) << "  "
                  << Wrap(finding.found, program.width(), indent) << "\n";
    if (finding.advice.empty()) continue;
    program.out() << std::string(indent, ' ') << palette(Paint::kBold, "→ ")
                  << Wrap(finding.advice, program.width(), indent + 2) << "\n";
  }
  std::vector<std::string> totals;
  if (failures > 0) totals.push_back(Counted(failures, "failure"));
  if (warnings > 0) totals.push_back(Counted(warnings, "warning"));
  program.out() << "\n"
                << (totals.empty() ? "No faults found." : absl::StrJoin(totals, ", ") + ".")
                << "\n";
  return failures > 0 ? kFailure : kSuccess;
}

}  // namespace

void AddDoctor(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "doctor", "Checks the installation and the server, and says how to fix faults",
      kServerGroup,
      "lengthwise doctor\n"
      "lengthwise doctor --server gpu-head.example.org:7070 --token_file ada.token\n"
      "lengthwise doctor --output json\n"
      "\n"
      "Exits with 1 if a check fails, and with 0 if there are at most warnings.",
      [&program] { return Doctor(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
