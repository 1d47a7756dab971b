#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/diagnosis/diagnosis.h"
#include "client/display/numbers.h"
#include "proto/role_name.h"
#include "proto/timestamps.h"

namespace lengthwise::client {
namespace {

// A token that expires within this time gets a warning.
constexpr absl::Duration kSoon = absl::Hours(7 * 24);
constexpr int64_t kLittleDisk = int64_t{10} << 30;
constexpr int64_t kNoDisk = int64_t{1} << 30;
constexpr size_t kMostNames = 5;

std::string Message(const absl::Status& status) {
  const std::string text(status.message());
  return text.substr(0, text.find('\n'));
}

std::string Names(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNames);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

Finding Caller(const v1::Caller& caller, absl::Time now, bool is_renewed) {
  const std::string who = absl::StrCat(caller.principal(), ", ", RoleName(caller.role()));
  if (!caller.has_expire_time()) {
    return {Verdict::kOk, "access", absl::StrCat(who, ": the server requires no tokens")};
  }
  const absl::Time end = ToTime(caller.expire_time());
  const std::string until = absl::StrCat(who, ", until ", FormatLocalTime(end));
  if (end - now < kSoon && !is_renewed) {
    return {Verdict::kWarning, "access", until,
            "ask an administrator for a new token, made with `lengthwise auth create-token`"};
  }
  return {Verdict::kOk, "access", until};
}

// Compares the server's clock with this machine's. The server read its clock at some moment between
// request and answer.
Finding Clock(const ServiceAnswers& answers) {
  const absl::Duration uncertain = (answers.answered - answers.asked) / 2;
  const absl::Duration ahead = ToTime(answers.server->time()) - (answers.asked + uncertain);
  const double seconds = absl::ToDoubleSeconds(ahead);
  // With a wrong clock, ages in tables and expiry times of tokens mislead.
  if (absl::AbsDuration(ahead) < kWrongClock + uncertain) {
    return {Verdict::kOk, "clock",
            absl::StrFormat("within %.1f s of the server's",
                            std::fabs(seconds) + absl::ToDoubleSeconds(uncertain))};
  }
  return {Verdict::kWarning, "clock",
          absl::StrCat("the server's is ", FormatClockDifference(ahead), " this machine's"),
          "set both by NTP: `timedatectl set-ntp true`"};
}

void Server(const ServiceAnswers& answers, const ProgramVersion& client, Findings& findings) {
  const v1::Server& server = *answers.server;
  const ProgramVersion program = {server.program_version(), server.source_revision()};
  const std::string text = VersionText(program);
  findings.push_back(
      {Verdict::kOk, "server",
       absl::StrCat(answers.address, ", up for ",
                    FormatClock(ToTime(server.time()) - ToTime(server.start_time())))});
  if (SameBuild(client, program)) {
    findings.push_back({Verdict::kOk, "versions", absl::StrCat("client and server are ", text)});
  } else {
    findings.push_back({Verdict::kWarning, "versions",
                        absl::StrCat("the client is ", VersionText(client), ", the server ", text),
                        "install the same build of both"});
  }
  findings.push_back(Clock(answers));
}

// "cpu AVX512, LibTorch 2.11.0".
std::string DescribeDevice(const v1::Worker& worker) {
  const v1::Provenance& provenance = worker.provenance();
  std::string text = provenance.device().empty() ? "unknown device" : provenance.device();
  if (!provenance.instruction_set().empty() && provenance.device() == "cpu") {
    absl::StrAppend(&text, " ", provenance.instruction_set());
  }
  if (!provenance.libtorch_version().empty()) {
    absl::StrAppend(&text, ", LibTorch ", provenance.libtorch_version());
  }
  if (!provenance.cuda_version().empty()) {
    absl::StrAppend(&text, ", CUDA ", provenance.cuda_version());
  }
  return text;
}

void Workers(const ServiceAnswers& answers, const ProgramVersion& client, Findings& findings) {
  if (!answers.workers.ok()) {
    findings.push_back({Verdict::kSkipped, "workers", Message(answers.workers.status())});
    return;
  }
  std::map<std::string, int> devices;
  std::vector<std::string> silent;
  std::vector<std::string> different;
  int alive = 0;
  for (const v1::Worker& worker : answers.workers->workers()) {
    if (worker.stopped()) continue;
    if (!worker.alive()) {
      silent.push_back(worker.worker_id());
      continue;
    }
    ++alive;
    ++devices[DescribeDevice(worker)];
    const v1::Provenance& provenance = worker.provenance();
    // A long list describes not all workers.
    if (worker.has_provenance() &&
        !SameBuild(client, {provenance.program_version(), provenance.source_revision()})) {
      different.push_back(worker.worker_id());
    }
  }
  if (alive == 0) {
    findings.push_back({Verdict::kWarning, "workers", "none is alive: submitted trials wait",
                        absl::StrCat("start one: `lengthwise_worker --server ", answers.address,
                                     " --device auto`")});
  }
  for (const auto& [device, count] : devices) {
    findings.push_back({Verdict::kOk, "workers", absl::StrCat(count, " on ", device)});
  }
  if (const std::string& pause = answers.workers->queue_pause(); !pause.empty()) {
    findings.push_back({Verdict::kWarning, "queue", absl::StrCat("is ", pause, ": no trial starts"),
                        "an administrator ends that with `lengthwise queue resume`"});
  }
  if (!silent.empty()) {
    findings.push_back({Verdict::kWarning, "workers",
                        absl::StrCat("no heartbeat from ", Names(silent), " recently"),
                        "check their logs or restart them; other workers take over their trials"});
  }
  if (!different.empty()) {
    findings.push_back(
        {Verdict::kWarning, "versions",
         absl::StrCat("another build than the client's: ", Names(different)),
         "install the same build on all machines: numbers may differ between builds"});
  }
}

Finding Disk(const absl::StatusOr<v1::Storage>& storage) {
  if (absl::IsPermissionDenied(storage.status())) {
    return {Verdict::kSkipped, "server's disk", "only administrators may see it"};
  }
  if (!storage.ok()) return {Verdict::kWarning, "server's disk", Message(storage.status())};
  std::string text =
      absl::StrCat(FormatBytes(storage->free_bytes()), " free at ", storage->data_dir());
  int64_t least = storage->free_bytes();
  if (storage->has_elsewhere_free_bytes()) {
    least = std::min(least, storage->elsewhere_free_bytes());
    absl::StrAppend(&text, ", ", FormatBytes(storage->elsewhere_free_bytes()), " free at ",
                    storage->checkpoints_elsewhere());
  }
  absl::StrAppend(&text, ", ", FormatBytes(storage->database_bytes() + storage->artifact_bytes()),
                  " used");
  const std::string advice =
      "delete experiments that are not needed (`lengthwise delete EXPERIMENT`) or old backups "
      "there";
  if (least < kNoDisk) return {Verdict::kFailure, "server's disk", text, advice};
  if (least < kLittleDisk) return {Verdict::kWarning, "server's disk", text, advice};
  return {Verdict::kOk, "server's disk", text};
}

}  // namespace

Findings InspectService(const ServiceAnswers& answers, const ProgramVersion& client) {
  Findings findings;
  const absl::Status& caller = answers.caller.status();
  if (absl::IsUnavailable(caller) || absl::IsDeadlineExceeded(caller)) {
    return {{Verdict::kFailure, "server", Message(caller),
             "start `lengthwise_server` there, or name another one with --server HOST:PORT"}};
  }
  if (absl::IsUnauthenticated(caller)) {
    return {{Verdict::kOk, "server", absl::StrCat(answers.address, " answers")},
            {Verdict::kFailure, "access", Message(caller),
             "ask an administrator for a token and name its file as token_file"}};
  }
  if (!caller.ok()) return {{Verdict::kFailure, "server", Message(caller)}};
  if (answers.server.ok()) {
    Server(answers, client, findings);
  } else {
    findings.push_back({Verdict::kWarning, "versions", Message(answers.server.status()),
                        "install the same build of client and server"});
  }
  findings.push_back(Caller(*answers.caller, answers.answered, answers.has_web_token));
  Workers(answers, client, findings);
  findings.push_back(Disk(answers.storage));
  return findings;
}

}  // namespace lengthwise::client
