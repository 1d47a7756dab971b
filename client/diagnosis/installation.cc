#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/diagnosis/diagnosis.h"
#include "platform/child_process.h"
#include "platform/status_macros.h"
#include "rpc/address.h"
#include "rpc/certificates.h"
#include "rpc/token.h"

namespace lengthwise::client {
namespace {

// The worker loads half a gigabyte of LibTorch, possibly from a cold disk.
constexpr absl::Duration kProgramTimeout = absl::Seconds(60);

std::string Of(const char* text) { return text == nullptr ? "" : text; }

std::string FirstLine(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

// A finding for an error. Its message usually contains the advice already.
Finding Failed(const std::string& subject, const absl::Status& status, std::string advice = {}) {
  return {Verdict::kFailure, subject, FirstLine(std::string(status.message())), std::move(advice)};
}

// Parses "lengthwise_worker 0.1.0 (3b42ce7)".
ProgramVersion ParseVersion(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() < 2) return {words[0]};
  if (words.size() < 3) return {words[1]};
  return {words[1], std::string(absl::StripSuffix(absl::StripPrefix(words[2], "("), ")"))};
}

// Returns the output of `PROGRAM --version`. The error says why the program cannot run, such as a
// worker that lacks LibTorch.
absl::StatusOr<std::string> AskVersion(const std::string& path) {
  ASSIGN_OR_RETURN(const platform::ChildProcess::Output said,
                   platform::ChildProcess::Run({path, "--version"}, kProgramTimeout));
  if (said.exit.has_value() && said.exit->ok()) return said.text;
  return absl::FailedPreconditionError(absl::StrCat(path, " does not start: ",
                                                    !said.exit.has_value() ? "no answer in a minute"
                                                    : said.text.empty()    ? said.exit->ToString()
                                                                           : FirstLine(said.text)));
}

// Interprets the output of `--version`.
Finding InspectVersion(const std::string& name, const std::string& path, const std::string& said,
                       const ProgramVersion& client) {
  const std::vector<std::string> lines = absl::StrSplit(said, '\n', absl::SkipWhitespace());
  std::vector<std::string> facts;
  std::string warning;
  for (absl::string_view line : lines) {
    if (absl::ConsumePrefix(&line, "warning: ")) {
      warning = std::string(line);
    } else {
      facts.push_back(std::string(line));
    }
  }
  facts.push_back(path);
  const std::string found = absl::StrJoin(facts, ", ");
  if (!warning.empty()) {
    const size_t end = std::min(warning.rfind("; "), warning.size());
    return {Verdict::kWarning, name, absl::StrCat(found, ": ", warning.substr(0, end)),
            end < warning.size() ? warning.substr(end + 2) : ""};
  }
  if (lines.empty() || !SameBuild(client, ParseVersion(lines[0]))) {
    return {Verdict::kWarning, name, absl::StrCat(found, "; this program is ", VersionText(client)),
            "install the same build of all programs: numbers may differ between builds"};
  }
  return {Verdict::kOk, name, found};
}

}  // namespace

Findings InspectSettings(const absl::StatusOr<rpc::Settings>& settings,
                         const rpc::Environment& environment) {
  const std::string file = rpc::SettingsFile(environment);
  if (!settings.ok()) {
    return {Failed("settings", settings.status(),
                   "correct it; then `lengthwise config` shows the settings in effect")};
  }
  Findings findings;
  if (!settings->file.empty()) {
    findings.push_back({Verdict::kOk, "settings", absl::StrCat("read from ", settings->file)});
    struct stat status;
    if (stat(settings->file.c_str(), &status) == 0 && (status.st_mode & 022) != 0) {
      findings.back().verdict = Verdict::kWarning;
      absl::StrAppend(&findings.back().found, ", which others may change");
      findings.back().advice = absl::StrCat("run `chmod go-w ", settings->file, "`");
    }
  } else {
    findings.push_back({Verdict::kOk, "settings",
                        file.empty() ? "no configuration file is read ($LENGTHWISE_CONFIG is empty)"
                                     : absl::StrCat("there is no configuration file ", file)});
  }
  std::vector<std::string> given;
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    const rpc::Setting& setting = (*settings)[kind.name];
    if (setting.value.empty()) continue;
    // The finding above has named the file.
    const std::string origin =
        setting.origin == settings->file && !settings->file.empty() ? "file" : setting.origin;
    given.push_back(absl::StrCat(kind.name, " ", setting.value, " (", origin, ")"));
  }
  findings.push_back({Verdict::kOk, "in effect", absl::StrJoin(given, ", ")});
  return findings;
}

namespace {

// A certificate or authority that can be used, perhaps not for long.
Finding Usable(const std::string& check, const std::string& found, absl::string_view pem,
               absl::Time now) {
  const std::string soon = rpc::ExpiresSoon(found, pem, now);
  if (soon.empty()) return {Verdict::kOk, check, found};
  return {Verdict::kWarning, check, soon, "replace the file; running programs read the new one"};
}

}  // namespace

Findings InspectCredentials(const rpc::Settings& settings, absl::Time now) {
  Findings findings;
  const std::string& server = settings.Value("server");
  if (const std::string& token = settings.Value("token_file"); token.empty()) {
    findings.push_back({Verdict::kOk, "token file", "none is set; calls carry no token"});
  } else if (const auto text = rpc::ReadTokenFile(token); !text.ok()) {
    findings.push_back(Failed("token file", text.status()));
  } else {
    findings.push_back({Verdict::kOk, "token file", absl::StrCat(token, ", readable by you only")});
  }
  const std::string& authority = settings.Value("tls_ca");
  if (authority.empty()) {
    if (rpc::IsLoopback(server)) {
      findings.push_back({Verdict::kOk, "encryption", "none, and not needed on this machine"});
    } else {
      findings.push_back(
          {Verdict::kWarning, "encryption",
           absl::StrCat("none: anyone on the network path to ", server, " can read the traffic"),
           "set tls_ca to the authority (CA) of the server's certificate"});
    }
    return findings;
  }
  if (authority == "system") {
    findings.push_back(
        {Verdict::kOk, "encryption", "TLS, with the authority of the operating system"});
  } else if (const auto read = rpc::ReadAuthorities(authority); read.ok()) {
    findings.push_back(
        Usable("encryption", absl::StrCat("TLS, with the authority ", authority), *read, now));
  } else {
    findings.push_back(Failed("encryption", read.status()));
    return findings;
  }
  if (const std::string& path = settings.Value("tls_certificate"); !path.empty()) {
    const auto certificate = rpc::ReadCertificate(path, now);
    const absl::Status key =
        certificate.ok() ? rpc::ReadPrivateKey(settings.Value("tls_key"), *certificate).status()
                         : certificate.status();
    findings.push_back(key.ok() ? Usable("certificate", path, *certificate, now)
                                : Failed("certificate", key));
  }
  return findings;
}

Finding InspectProgram(const std::string& name, const absl::StatusOr<std::string>& path,
                       const ProgramVersion& client) {
  if (!path.ok()) {
    return {Verdict::kWarning, name, "not found, so `lengthwise run` cannot train here",
            FirstLine(std::string(path.status().message()))};
  }
  const absl::StatusOr<std::string> said = AskVersion(*path);
  if (!said.ok()) {
    return Failed(name, said.status(),
                  "install the wheel again, or in a checkout run deploy/install.sh and build");
  }
  return InspectVersion(name, *path, *said, client);
}

std::string DescribeWorker(const absl::StatusOr<std::string>& path) {
  const absl::StatusOr<std::string> said = path.ok() ? AskVersion(*path) : path.status();
  if (!said.ok()) {
    return absl::StrCat("no worker: ", FirstLine(std::string(said.status().message())));
  }
  return std::string(absl::StripAsciiWhitespace(*said));
}

Finding InspectPython(const absl::StatusOr<std::string>& python) {
  constexpr char kNeededBy[] =
      "`plot`, `report`, `analyze`, `export`, `compare` and `results --compare` run in it";
  constexpr char kAdvice[] =
      "install the wheel again, in a checkout run deploy/install.sh, or set LENGTHWISE_PYTHON to a "
      "Python with the package lengthwise";
  if (!python.ok()) {
    return {Verdict::kWarning, "python", absl::StrCat("not found: ", kNeededBy), kAdvice};
  }
  if (::access(python->c_str(), X_OK) != 0) {
    return {Verdict::kWarning, "python", absl::StrCat(*python, " cannot be executed: ", kNeededBy),
            kAdvice};
  }
  return {Verdict::kOk, "python", *python};
}

Finding InspectLocale(const rpc::Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = Of(environment(name));
    if (value.empty()) continue;
    const std::string lower = absl::AsciiStrToLower(value);
    if (absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8")) {
      return {Verdict::kOk, "terminal", absl::StrCat(name, "=", value)};
    }
    return {Verdict::kWarning, "terminal",
            absl::StrCat(name, "=", value, " is not UTF-8, in which tables and charts are drawn"),
            "run `export LC_ALL=C.UTF-8`"};
  }
  return {Verdict::kWarning, "terminal", "no locale is set; tables and charts are drawn in UTF-8",
          "run `export LC_ALL=C.UTF-8` if they look wrong"};
}

}  // namespace lengthwise::client
