#include "client/export/export.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/connection/names.h"
#include "client/export/csv_export.h"
#include "client/export/json_export.h"
#include "client/export/latex_export.h"
#include "client/export/npz_export.h"
#include "client/export/safetensors_export.h"
#include "client/export/tensorboard_export.h"
#include "platform/version.h"

namespace lengthwise::client {
namespace {

constexpr Output::Kind kFile = Output::Kind::kFile;
constexpr Output::Kind kDirectory = Output::Kind::kDirectory;

template <typename T>
auto Make() {
  return [](Connection& connection, const ExportSubject& subject, Output& output) {
    return std::make_unique<T>(connection, subject, output);
  };
}

absl::StatusOr<ExportSubject> FindSubject(Connection& connection, const std::string& name) {
  ExportSubject subject;
  subject.whole_experiment = !NamesTrial(name);
  if (subject.whole_experiment) {
    auto experiment = FindExperiment(connection, name);
    if (!experiment.ok()) return experiment.status();
    subject.experiment = *std::move(experiment);
    auto trials = connection.ListTrials(subject.experiment.name(), "");
    if (!trials.ok()) return trials.status();
    subject.trials = *std::move(trials);
    return subject;
  }
  auto trial = FindTrial(connection, name);
  if (!trial.ok()) return trial.status();
  auto experiment =
      connection.GetExperiment(trial->name().substr(0, trial->name().find("/trials/")));
  if (!experiment.ok()) return experiment.status();
  subject.experiment = *std::move(experiment);
  subject.trials.push_back(*std::move(trial));
  return subject;
}

std::string Manifest(const ExportFormat& format, const ExportSubject& subject, int trials) {
  const nlohmann::ordered_json manifest = {
      {"format", format.name},
      {"description", format.description},
      {"experiment", subject.experiment.name()},
      {"trials", trials},
      {"written_by", absl::StrCat("lengthwise ", platform::kVersion)}};
  return manifest.dump(1) + "\n";
}

}  // namespace

const std::vector<ExportFormat>& ExportFormats() {
  static const auto& formats = *new std::vector<ExportFormat>{
      {"csv", "-csv", kDirectory, kDirectory,
       "tables trials.csv, loss_curves.csv and length_accuracies.csv, and columns.json about them",
       Make<CsvExporter>()},
      {"json", ".json", kFile, kFile, "one document with the same and the specifications",
       Make<JsonExporter>()},
      {"tensorboard", "-tensorboard", kDirectory, kDirectory,
       "event files, one run a trial, for `tensorboard --logdir PATH`",
       Make<TensorboardExporter>()},
      {"safetensors", "-safetensors", kDirectory, kFile,
       "the newest stored model of each trial, as it is stored", Make<SafetensorsExporter>()},
      {"npz", "-npz", kDirectory, kFile,
       "NumPy arrays of each trial: losses, accuracies, attention maps, projections",
       Make<NpzExporter>()},
      {"latex", ".tex", kFile, kFile, "tables of an experiment, also beside published ones",
       Make<LatexExporter>()},
  };
  return formats;
}

absl::StatusOr<ExportResult> Export(Connection& connection, const std::string& name,
                                    const ExportOptions& options,
                                    const std::function<bool(int done, int all)>& progress) {
  const ExportFormat* format = nullptr;
  for (const ExportFormat& one : ExportFormats()) {
    if (one.name == options.format) format = &one;
  }
  if (format == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown format \"", options.format, "\""));
  }
  const auto subject = FindSubject(connection, name);
  if (!subject.ok()) return subject.status();
  // Exporters name files after trials.
  for (const v1::Trial& trial : subject->trials) {
    const auto file = FileNameOf(trial.name());
    if (!file.ok()) return file.status();
  }
  const Output::Kind kind = subject->whole_experiment ? format->of_experiment : format->of_trial;
  ExportResult result;
  result.path = options.path;
  if (result.path.empty()) {
    const std::string& named =
        subject->whole_experiment ? subject->experiment.name() : subject->trials.front().name();
    // "-safetensors" of a directory is ".safetensors" of a file.
    std::string suffix = format->suffix;
    if (kind == kFile) suffix[0] = '.';
    const auto file = FileNameOf(named);
    if (!file.ok()) return file.status();
    result.path = *file + suffix;
  }
  if (kind == kDirectory && absl::EndsWith(result.path, absl::StrCat(".", format->name))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-o: \"", result.path, "\" names one file, and ", format->name, " of ",
        subject->whole_experiment ? "an experiment" : "a trial",
        " is a directory of several; name a directory, such as \"",
        absl::StripSuffix(result.path, absl::StrCat(".", format->name)), format->suffix, "\"",
        format->name == "csv" ? ", or write one table with `lengthwise results --output csv`"
                              : ""));
  }
  auto output = Output::Create(result.path, kind, options.replace);
  if (!output.ok()) return output.status();
  int done = 0;
  const int all = static_cast<int>(subject->trials.size());
  // Within a large model, too.
  (*output)->set_stop([&] { return !progress(done, all); });
  const std::unique_ptr<Exporter> exporter = format->make(connection, *subject, **output);

  absl::Status status = exporter->Begin();
  if (!status.ok()) return status;
  for (const v1::Trial& trial : subject->trials) {
    status = exporter->AddTrial(trial);
    if (absl::IsNotFound(status)) {
      result.absent.emplace_back(status.message());
    } else if (absl::IsDataLoss(status)) {
      result.damaged.emplace_back(status.message());
    } else if (!status.ok()) {
      return status;
    } else {
      ++result.trials;
    }
    if (!progress(++done, all)) return absl::CancelledError("interrupted");
  }
  if (result.trials == 0 && all > 0) {
    const std::string& why = result.damaged.empty() ? result.absent[0] : result.damaged[0];
    return result.damaged.empty() ? absl::NotFoundError(why) : absl::DataLossError(why);
  }
  status = exporter->Finish();
  if (status.ok() && kind == kDirectory) {
    status = (*output)->Write(Output::kManifest, Manifest(*format, *subject, result.trials));
  }
  if (status.ok()) status = (*output)->Commit();
  if (!status.ok()) return status;
  return result;
}

}  // namespace lengthwise::client
