// `lengthwise completion bash|zsh|fish`, and the hidden command that its scripts call.

#include "command_line/completion.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/watching/lines.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/optimizers/catalogue.h"
#include "models/schedules/catalogue.h"
#include "nlohmann/json.hpp"
#include "specification/catalogues.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

using command_line::Candidate;
using command_line::CommandDescription;
using command_line::Completion;
using command_line::ValueKind;

// Short, because a user waits at the prompt.
constexpr absl::Duration kLookUpTimeout = absl::Milliseconds(800);
constexpr size_t kMostExperiments = 200;

template <typename Entries>
void AddEntries(const Entries& entries, std::vector<Candidate>& candidates) {
  for (const auto* entry : entries) candidates.push_back({entry->name, entry->title});
}

std::unique_ptr<Connection> Connect(const Completion& completion, const Program& program) {
  // Reading names from a data directory would start a private server.
  if (completion.given.count("--data_dir") > 0) return nullptr;
  std::map<std::string, std::string> flags;
  flags["server"] = program.server;
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    const auto given = completion.given.find(absl::StrCat("--", kind.name));
    if (given != completion.given.end()) flags[kind.name] = given->second;
  }
  const auto settings = rpc::ResolveSettings(flags, getenv);
  if (!settings.ok()) return nullptr;
  auto connection =
      Connection::Open(rpc::ToChannelOptions(*settings), {.timeout = kLookUpTimeout,
                                                          .create_timeout = kLookUpTimeout,
                                                          .patience = absl::ZeroDuration()});
  return connection.ok() ? *std::move(connection) : nullptr;
}

void AddExperiments(Connection& connection, const char* end, std::vector<Candidate>& candidates) {
  const auto experiments = connection.ListExperiments(kMostExperiments);
  if (!experiments.ok()) return;
  for (const v1::Experiment& experiment : *experiments) {
    candidates.push_back(
        {absl::StrCat(ShortName(experiment.name()), end), DescribeCounts(experiment.trials())});
  }
}

// Adds "E/0" and so on if `prefix` is "E/" with optional digits; otherwise the trials' ids.
void AddTrials(Connection& connection, const std::string& prefix,
               std::vector<Candidate>& candidates) {
  const std::string experiment = prefix.substr(0, prefix.find('/'));
  const std::string begun = prefix.substr(experiment.size() + 1);
  const auto found = FindExperiment(connection, experiment);
  if (!found.ok()) return;
  const auto trials = connection.ListTrials(found->name(), "");
  if (!trials.ok()) return;
  const bool by_index = begun.find_first_not_of("0123456789") == std::string::npos;
  for (const v1::Trial& trial : *trials) {
    const std::string id = ShortName(trial.name());
    candidates.push_back(
        {absl::StrCat(experiment, "/", by_index ? absl::StrCat(trial.index()) : id),
         by_index ? id : absl::StrCat("trial ", trial.index())});
  }
}

// Sets `more` if a candidate is only the beginning of a value.
std::vector<Candidate> LookUp(const Completion& completion, const CommandDescription& whole,
                              const Program& program, bool& more) {
  std::vector<Candidate> candidates;
  switch (completion.kind) {
    case ValueKind::kTask:
      AddEntries(tasks::TaskEntries(), candidates);
      break;
    case ValueKind::kEncoding:
      AddEntries(models::EveryEncodingEntry(), candidates);
      break;
    case ValueKind::kNetwork:
      AddEntries(models::EveryNetworkEntry(), candidates);
      break;
    case ValueKind::kOptimizer:
      AddEntries(models::OptimizerEntries(), candidates);
      break;
    case ValueKind::kSchedule:
      AddEntries(models::ScheduleEntries(), candidates);
      break;
    case ValueKind::kProtocol:
      AddEntries(specification::ProtocolEntries(), candidates);
      break;
    case ValueKind::kCommand:
      for (const CommandDescription& one : whole.commands) {
        candidates.push_back({one.name, one.help});
      }
      break;
    case ValueKind::kFigure:
      for (const std::string& name : FigureNames()) candidates.push_back({name});
      break;
    case ValueKind::kPublishedTable:
      candidates = PublishedKeys();
      break;
    case ValueKind::kExperiment:
    case ValueKind::kTrial:
    case ValueKind::kExperimentOrTrial:
      if (const auto connection = Connect(completion, program); connection != nullptr) {
        if (completion.kind != ValueKind::kExperiment &&
            absl::StrContains(completion.prefix, "/")) {
          AddTrials(*connection, completion.prefix, candidates);
        } else {
          more = completion.kind == ValueKind::kTrial;
          AddExperiments(*connection, more ? "/" : "", candidates);
        }
      }
      break;
    default:
      break;
  }
  std::vector<Candidate> begun;
  for (Candidate& candidate : candidates) {
    if (!absl::StartsWith(candidate.text, completion.prefix)) continue;
    candidate.text = completion.lead + candidate.text;
    begun.push_back(std::move(candidate));
  }
  return begun;
}

}  // namespace

int PrintCompletion(Command root, Program& program, std::vector<std::string> words) {
  const CommandDescription whole = root.Describe();
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  Completion completion = Complete(whole, words);
  if (completion.kind == ValueKind::kFile || completion.kind == ValueKind::kDirectory) {
    program.out() << (completion.kind == ValueKind::kFile ? ":files\n" : ":directories\n");
    return kSuccess;
  }
  bool more = false;
  for (Candidate& found : LookUp(completion, whole, program, more)) {
    completion.candidates.push_back(std::move(found));
  }
  program.out() << (more ? ":words/\n" : ":words\n");
  for (const Candidate& candidate : completion.candidates) {
    program.out() << candidate.text << "\t" << candidate.help << "\n";
  }
  program.out().flush();
  return kSuccess;
}

void AddCompletion(Command root, Program& program) {
  auto shell = std::make_shared<std::string>();
  const Command command = program.AddCommand(
      root, "completion", "Prints a shell completion script", kOfflineGroup,
      "lengthwise completion bash > ~/.local/share/bash-completion/completions/lengthwise\n"
      "lengthwise completion zsh > ~/.zfunc/_lengthwise    # with fpath+=~/.zfunc before compinit\n"
      "lengthwise completion fish > ~/.config/fish/completions/lengthwise.fish\n"
      "source <(lengthwise completion bash)                # in this shell only",
      [&program, shell]() -> absl::StatusOr<int> {
        program.out() << (*shell == "bash"  ? command_line::kBashCompletion
                          : *shell == "zsh" ? command_line::kZshCompletion
                                            : command_line::kFishCompletion);
        return kSuccess;
      });
  command.AddOption("shell", *shell, "Shell to complete for").OneOf({"bash", "zsh", "fish"});
}

std::vector<Candidate> PublishedKeys() {
  std::vector<Candidate> keys;
  for (const PublishedFile& file : PublishedFiles()) {
    const auto table = nlohmann::json::parse(file.json.begin(), file.json.end(), /*cb=*/nullptr,
                                             /*allow_exceptions=*/false);
    if (!table.is_object()) continue;
    const std::string paper = table.value("paper", "");
    // A file's name consists of its paper and its table.
    if (file.name.size() <= paper.size() + 1) continue;
    const absl::string_view own = file.name.substr(paper.size() + 1);
    keys.push_back({absl::StrCat(paper, "/", std::string(own)), table.value("title", "")});
  }
  std::sort(keys.begin(), keys.end(),
            [](const Candidate& a, const Candidate& b) { return a.text < b.text; });
  return keys;
}

}  // namespace lengthwise::client
