// `lengthwise show EXPERIMENT|TRIAL`: shows everything known about one of them.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "client/watching/experiment_view.h"
#include "client/watching/lines.h"
#include "nlohmann/json.hpp"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

// Enough of a hash to tell files apart.
constexpr int kHashColumns = 14;
// Columns of a list of trials, beside the trial's name, that always stay.
constexpr int kOtherColumns = 49;

std::string FormatTimestamp(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "–";
  return FormatLocalTime(absl::FromUnixSeconds(time.seconds()));
}

// Returns "sin_cos (max_position=2048, randomized=true)", sorted by name to make trials comparable.
std::string DescribeComponent(const v1::Component& component) {
  const std::map<std::string, google::protobuf::Value> sorted(component.parameters().begin(),
                                                              component.parameters().end());
  std::string parameters;
  for (const auto& [name, value] : sorted) {
    // The contents of a file, for programs.
    if (name == "contents" && tasks::examples::IsExamples(component.name())) continue;
    const std::string text = MessageJson(value).value_or("?");
    absl::StrAppend(&parameters, parameters.empty() ? "" : ", ", name, "=",
                    absl::EndsWith(name, "_sha256") ? Truncate(text, kHashColumns) : text);
  }
  return parameters.empty() ? component.name()
                            : absl::StrCat(component.name(), " (", parameters, ")");
}

// The value is absl::StrCat of the rest.
template <typename... Text>
void Field(Program& program, const char* name, const Text&... parts) {
  const std::string value = absl::StrCat(parts...);
  if (value.empty()) return;
  program.out() << "  " << PadRight(name, 14) << Wrap(value, std::max(40, program.width()), 16)
                << "\n";
}

// Final mean losses of trials whose task is compared by loss, by the trial's name.
using Losses = std::map<std::string, TrialView::Accuracy>;

// Trials without losses have no value in the columns of losses.
Records TrialRecords(const std::vector<v1::Trial>& trials, const Losses& losses) {
  Records records{.columns = {"trial", "state", "reason", "attempt", "worker", "checkpoint_step",
                              "seen_accuracy", "unseen_accuracy", "training_seconds", "seen_loss",
                              "unseen_loss"}};
  for (const v1::Trial& trial : trials) {
    const v1::Outcome& outcome = trial.outcome();
    const auto found = losses.find(trial.name());
    const TrialView::Accuracy loss = found == losses.end() ? TrialView::Accuracy() : found->second;
    const auto score = [&](double value) {
      return OrNothing(trial.has_outcome() && value >= 0 ? std::optional(value) : std::nullopt);
    };
    records.rows.push_back({trial.name(), StateWord(trial.state()), trial.reason(),
                            int64_t{trial.attempt()}, trial.worker(), trial.checkpoint_step(),
                            score(outcome.seen_accuracy()), score(outcome.unseen_accuracy()),
                            score(outcome.training_seconds()), OrNothing(loss.seen),
                            OrNothing(loss.unseen)});
  }
  return records;
}

// Returns the losses of an experiment's trials, or of one trial (full name). Empty if the task is
// not compared by loss.
absl::StatusOr<Losses> FinalLosses(Connection& connection, const std::string& name,
                                   const v1::TrialSpecification& specification) {
  Losses losses;
  if (LossTitle(specification).empty()) return losses;
  ASSIGN_OR_RETURN(const auto measured, connection.QueryLengthAccuracies(name, false));
  for (const auto& evaluation : measured.evaluations()) {
    losses[evaluation.trial()] = MeansOf(evaluation.accuracies(), /*by_loss=*/true);
  }
  return losses;
}

absl::StatusOr<int> ShowExperiment(Program& program, Connection& connection,
                                   const std::string& name) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, connection.GetExperiment(name));
  ASSIGN_OR_RETURN(auto trials, connection.ListTrials(experiment.name(), ""));
  // All tasks of an experiment are compared by the same measure.
  const bool by_loss = !trials.empty() && !LossTitle(trials[0].specification()).empty();
  Losses losses;
  if (by_loss && program.output != "json") {
    ASSIGN_OR_RETURN(losses, FinalLosses(connection, experiment.name(), trials[0].specification()));
  }
  if (program.output == "csv") {
    return program.Write(TrialRecords(trials, losses));
  }
  if (program.output == "json") {
    ASSIGN_OR_RETURN(const auto json, MessageJson(experiment));
    program.out() << "{\"experiment\":" << json << ",\n\"trials\":[";
    for (size_t i = 0; i < trials.size(); ++i) {
      ASSIGN_OR_RETURN(const auto trial, MessageJson(trials[i]));
      program.out() << (i > 0 ? ",\n " : "\n ") << trial;
    }
    program.out() << "\n]}\n";
    return kSuccess;
  }
  program.out() << program.palette()(Paint::kBold, ShortName(experiment.name())) << "\n";
  Field(program, "description", experiment.specification().description());
  Field(program, "owner", experiment.owner());
  Field(program, "protocol", experiment.specification().protocol());
  Field(program, "created", FormatTimestamp(experiment.create_time()));
  if (experiment.has_end_time()) Field(program, "ended", FormatTimestamp(experiment.end_time()));
  Field(program, "trials", DescribeCounts(experiment.trials()));
  Field(program, "warning", experiment.storage_fault());
  if (experiment.has_disk_use()) {
    const v1::DiskUse& use = experiment.disk_use();
    Field(program, "on disk", FormatBytes(use.artifact_bytes()), " in ",
          Counted(use.artifacts(), "checkpoint"), ", ", FormatBytes(use.event_bytes()), " in ",
          Counted(use.events(), "event"));
  }
  program.out() << "\n";
  const bool narrow = program.is_terminal;
  const bool any_reason = std::any_of(trials.begin(), trials.end(), [](const v1::Trial& trial) {
    return trial.state() != v1::SUCCEEDED && !trial.reason().empty();
  });
  Table table({{.header = "#", .align = Table::Align::kRight},
               {.header = "trial"},
               {.header = "state"},
               {.header = "steps", .align = Table::Align::kRight},
               {.header = by_loss ? "seen" : "seen %", .align = Table::Align::kRight},
               {.header = by_loss ? "unseen" : "unseen %", .align = Table::Align::kRight},
               {.header = "trained", .align = Table::Align::kRight, .may_go = narrow},
               {.header = "worker", .shrinks_to = 8, .may_go = narrow},
               {.header = "reason", .shrinks_to = 12, .may_go = narrow && !any_reason}});
  // Where ids do not fit, the coordinates in which the trials differ.
  const ExperimentView view(trials, /*from_beginning=*/false);
  const int room = std::max(10, program.width() - kOtherColumns);
  const LabelFit fit(view.trials(), room, room);
  const bool fits = std::all_of(trials.begin(), trials.end(), [&](const v1::Trial& trial) {
    return DisplayWidth(ShortName(trial.name())) <= room;
  });
  for (const v1::Trial& trial : trials) {
    const v1::Outcome& outcome = trial.outcome();
    const bool scored = trial.has_outcome();
    const bool succeeded = trial.state() == v1::SUCCEEDED;
    std::string seen = "–", unseen = "–";
    if (by_loss) {
      const TrialView::Accuracy& loss = losses[trial.name()];
      if (loss.seen) seen = FormatLoss(*loss.seen);
      if (loss.unseen) unseen = FormatLoss(*loss.unseen);
    } else if (scored) {
      if (outcome.seen_accuracy() >= 0) seen = FormatPercent(outcome.seen_accuracy());
      if (outcome.unseen_accuracy() >= 0) unseen = FormatPercent(outcome.unseen_accuracy());
    }
    table.AddRow(
        {absl::StrCat(trial.index()),
         Table::Cell(fits || !narrow ? ShortName(trial.name()) : fit(*view.Find(trial.name())),
                     Paint::kBold),
         StateWord(trial.state()),
         FormatCount(succeeded && outcome.training_steps() > 0 ? outcome.training_steps()
                     : succeeded ? trial.specification().training().steps()
                                 : trial.checkpoint_step()),
         seen, unseen, scored ? FormatClock(absl::Seconds(outcome.training_seconds())) : "–",
         trial.worker(), succeeded ? "" : trial.reason()});
  }
  return program.Write(table);
}

// Prints one line for each state change: time, state, worker and reason.
void ShowHistory(Program& program, Connection& connection, const v1::Trial& trial) {
  const auto changes = connection.ListStateChanges(trial.name());
  if (!changes.ok()) {
    Field(program, "history", "cannot be read: ", changes.status().message());
    return;
  }
  program.out() << "\n";
  Table table({{.header = "when"},
               {.header = "state"},
               {.header = "by", .shrinks_to = 10},
               {.header = "why", .shrinks_to = 12}});
  const auto experiment =
      connection.GetExperiment(trial.name().substr(0, trial.name().find("/trials/")));
  if (experiment.ok()) {
    table.AddRow({FormatTimestamp(trial.create_time()), "queued",
                  absl::StrCat("user ", experiment->owner()), "submitted"});
  }
  for (const v1::Event& event : *changes) {
    const v1::StateChange& change = event.state_change();
    table.AddRow({FormatTimestamp(event.time()),
                  absl::StrCat(StateWord(change.from()), " → ", StateWord(change.to())),
                  change.actor(), change.reason()});
  }
  program.Write(table);
}

absl::StatusOr<int> ShowTrial(Program& program, Connection& connection, const v1::Trial& trial) {
  if (program.output == "csv") {
    ASSIGN_OR_RETURN(const Losses losses,
                     FinalLosses(connection, trial.name(), trial.specification()));
    return program.Write(TrialRecords({trial}, losses));
  }
  if (program.output == "json") {
    ASSIGN_OR_RETURN(auto json, MessageJson(trial));
    json.pop_back();
    ASSIGN_OR_RETURN(const auto changes, connection.ListStateChanges(trial.name()));
    absl::StrAppend(&json, ",\"history\":[");
    for (size_t i = 0; i < changes.size(); ++i) {
      ASSIGN_OR_RETURN(const auto change, MessageJson(changes[i]));
      absl::StrAppend(&json, i > 0 ? "," : "", change);
    }
    program.out() << json << "]}\n";
    return kSuccess;
  }
  const v1::TrialSpecification& specification = trial.specification();
  const v1::Training& training = specification.training();
  std::string heading = ShortName(trial.name());
  if (program.is_terminal && DisplayWidth(heading) > program.width()) {
    // Fits, and commands take it, too. The fields below have what the id is made of.
    heading = absl::StrCat(ShortName(trial.name().substr(0, trial.name().find("/trials/"))), "/",
                           trial.index());
  }
  program.out() << program.palette()(Paint::kBold, heading) << "\n";
  Field(program, "state", StateWord(trial.state()));
  Field(program, "reason", trial.reason());
  Field(program, "task", DescribeComponent(specification.task()));
  Field(program, "network", DescribeComponent(specification.network()));
  Field(program, "encoding", DescribeComponent(specification.encoding()));
  Field(program, "evaluates", specification.evaluated_trial());
  Field(program, "learning rate", FormatExact(specification.learning_rate()));
  Field(program, "seeds", "weights ", specification.weight_seed(), ", data ",
        specification.data_seed());
  Field(program, "training", FormatCount(training.steps()), " steps of ", training.batch_size(),
        " sequences, lengths ", training.lengths().min(), " to ", training.lengths().max(), ", ",
        training.precision());
  Field(program, "attempt", trial.attempt());
  Field(program, "worker", trial.worker());
  Field(program, "checkpoint",
        trial.checkpoint_step() > 0
            ? absl::StrCat("after step ", FormatCount(trial.checkpoint_step()))
            : "none");
  Field(program, "started", FormatTimestamp(trial.start_time()));
  Field(program, "ended", FormatTimestamp(trial.end_time()));
  if (trial.has_outcome()) {
    const v1::Outcome& outcome = trial.outcome();
    const v1::Provenance& provenance = outcome.provenance();
    if (const std::string title = LossTitle(specification); !title.empty()) {
      ASSIGN_OR_RETURN(auto losses, FinalLosses(connection, trial.name(), specification));
      const TrialView::Accuracy& loss = losses[trial.name()];
      if (loss.seen) Field(program, "seen", title, " ", FormatLoss(*loss.seen));
      if (loss.unseen) Field(program, "unseen", title, " ", FormatLoss(*loss.unseen));
    } else {
      if (outcome.seen_accuracy() >= 0) {
        Field(program, "seen", FormatPercent(outcome.seen_accuracy()), " %");
      }
      if (outcome.unseen_accuracy() >= 0) {
        Field(program, "unseen", FormatPercent(outcome.unseen_accuracy()), " %");
      }
    }
    Field(program, "stopped early", outcome.stop_reason());
    Field(program, "took", FormatClock(absl::Seconds(outcome.training_seconds())), " training, ",
          FormatClock(absl::Seconds(outcome.evaluation_seconds())), " evaluation");
    Field(program, "ran on", provenance.device(), " ", provenance.instruction_set(), ", ",
          provenance.threads(), " threads, ", provenance.host());
    Field(program, "with", "lengthwise ", provenance.program_version(), " ",
          provenance.source_revision(), ", LibTorch ", provenance.libtorch_version(),
          provenance.cuda_version().empty() ? "" : ", CUDA ", provenance.cuda_version());
    Field(program, "kernels", provenance.kernels());
  }
  ShowHistory(program, connection, trial);
  return kSuccess;
}

// Prints the files of each network of the trials, as their experiment stores them. Everything else
// is a comment, so that a single file can be saved as it is printed.
absl::StatusOr<int> ShowNetworks(Program& program, Connection& connection,
                                 const std::vector<v1::Trial>& trials) {
  std::set<std::string> shown;
  nlohmann::ordered_json networks = nlohmann::ordered_json::array();
  for (const v1::Trial& trial : trials) {
    const v1::Component& network = trial.specification().network();
    const auto found = network.parameters().find("file_sha256");
    if (found == network.parameters().end()) continue;
    const std::string& sha256 = found->second.string_value();
    if (!shown.insert(network.label() + sha256).second) continue;
    ASSIGN_OR_RETURN(const std::string archive, connection.DownloadNetwork(trial.name()));
    const auto json = nlohmann::ordered_json::parse(archive, nullptr, /*allow_exceptions=*/false);
    if (platform::Sha256Hex(archive) != sha256 || !json.is_object()) {
      return absl::DataLossError(
          absl::StrCat("the network's files are not those of SHA-256 ", sha256, "; try again"));
    }
    networks.push_back({{"network", network.label().empty() ? network.name() : network.label()},
                        {"description", DescribeComponent(network)},
                        {"sha256", sha256},
                        {"files", json.value("files", nlohmann::ordered_json::object())}});
  }
  if (networks.empty()) {
    return absl::NotFoundError("all networks are built-in ones, which have no files");
  }
  if (program.output == "json") {
    program.out() << networks.dump() << "\n";
    return kSuccess;
  }
  for (const auto& network : networks) {
    program.out() << "# " << network["network"].get<std::string>() << ": "
                  << network["description"].get<std::string>() << "\n";
    for (const auto& [name, text] : network["files"].items()) {
      program.out() << "# " << platform::PrintableLine(name)
                    << (text.is_string() ? "" : ": not text; --output json has its bytes") << "\n";
      if (!text.is_string()) continue;
      const std::string shown = platform::PrintableText(text.get<std::string>());
      program.out() << shown << (absl::EndsWith(shown, "\n") ? "" : "\n");
    }
  }
  return kSuccess;
}

}  // namespace

void AddShow(Command root, Program& program) {
  auto name = std::make_shared<std::string>();
  auto network = std::make_shared<bool>(false);
  const Command command = program.AddCommand(
      root, "show", "Shows one experiment or one trial", kServerGroup,
      "lengthwise show quickstart-1\n"
      "lengthwise show quickstart-1/0\n"
      "lengthwise show my_network-1/0 --network > net.py\n"
      "lengthwise show quickstart-1 --output json",
      [&program, name, network]() -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
        ASSIGN_OR_RETURN(const auto found, connection->Find(*name));
        if (*network && found.has_trial()) {
          return ShowNetworks(program, *connection, {found.trial()});
        }
        if (*network) {
          ASSIGN_OR_RETURN(const auto trials,
                           connection->ListTrials(found.experiment().name(), ""));
          return ShowNetworks(program, *connection, trials);
        }
        return found.has_trial() ? ShowTrial(program, *connection, found.trial())
                                 : ShowExperiment(program, *connection, found.experiment().name());
      });
  command.AddOption("name", *name, "EXPERIMENT, EXPERIMENT/TRIAL or EXPERIMENT/INDEX of the trial");
  command.AddFlag("--network", *network,
                  "Prints the files of the networks `python`, as they were trained");
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
