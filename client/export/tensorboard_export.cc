#include "client/export/tensorboard_export.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection/names.h"
#include "client/export/record_file.h"
#include "client/export/tensorboard_event.pb.h"
#include "client/export/trial_history.h"
#include "client/plotting/display_names.h"

namespace lengthwise::client {
namespace {

// tensorboard/plugins/hparams/metadata.py.
constexpr char kPlugin[] = "hparams";
constexpr char kSessionStart[] = "_hparams_/session_start_info";
constexpr char kSessionEnd[] = "_hparams_/session_end_info";
constexpr int kPluginVersion = 0;
constexpr int kFloat = 1;  // DT_FLOAT

double Seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
}

// The events of one file. The first failure to write is the file's.
class EventFile {
 public:
  explicit EventFile(OutputFile& file) : file_(file) {
    tensorboard::Event event;
    event.set_file_version("brain.Event:2");
    Write(event);
  }

  void Scalar(const std::string& tag, int64_t step, double time, double value) {
    tensorboard::Event event;
    event.set_wall_time(time);
    event.set_step(step);
    tensorboard::Summary::Value& summary = *event.mutable_summary()->add_value();
    summary.set_tag(tag);
    summary.set_simple_value(static_cast<float>(value));
    Write(event);
  }

  void Session(const std::string& tag, double time, tensorboard::HParamsPluginData data) {
    data.set_version(kPluginVersion);
    tensorboard::Event event;
    event.set_wall_time(time);
    tensorboard::Summary::Value& summary = *event.mutable_summary()->add_value();
    summary.set_tag(tag);
    summary.mutable_tensor()->set_dtype(kFloat);
    summary.mutable_tensor()->mutable_tensor_shape();
    summary.mutable_tensor()->add_float_val(0);
    auto& plugin = *summary.mutable_metadata()->mutable_plugin_data();
    plugin.set_plugin_name(kPlugin);
    plugin.set_content(data.SerializeAsString());
    Write(event);
  }

  const absl::Status& status() const { return status_; }

 private:
  void Write(const tensorboard::Event& event) {
    if (status_.ok()) status_ = file_.Append(FramedRecord(event.SerializeAsString()));
  }

  OutputFile& file_;
  absl::Status status_;
};

tensorboard::HParamsPluginData SessionStart(const v1::Trial& trial) {
  tensorboard::HParamsPluginData data;
  tensorboard::SessionStartInfo& start = *data.mutable_session_start_info();
  start.set_group_name(ShortName(trial.name()));
  start.set_start_time_secs(Seconds(trial.start_time()));
  const v1::TrialSpecification& specification = trial.specification();
  auto& values = *start.mutable_hparams();
  values["task"].set_string_value(Label(specification.task()));
  values["network"].set_string_value(Label(specification.network()));
  values["encoding"].set_string_value(Label(specification.encoding()));
  values["learning_rate"].set_number_value(specification.learning_rate());
  values["weight_seed"].set_number_value(static_cast<double>(specification.weight_seed()));
  values["data_seed"].set_number_value(static_cast<double>(specification.data_seed()));
  values["steps"].set_number_value(static_cast<double>(specification.training().steps()));
  values["batch_size"].set_number_value(specification.training().batch_size());
  return data;
}

tensorboard::HParamsPluginData SessionEnd(const v1::Trial& trial) {
  tensorboard::HParamsPluginData data;
  tensorboard::SessionEndInfo& end = *data.mutable_session_end_info();
  end.set_status(trial.state() == v1::SUCCEEDED ? 1 : 2);
  end.set_end_time_secs(Seconds(trial.end_time()));
  return data;
}

void WriteEvaluation(const TrialHistory::Evaluation& evaluation, int32_t seen_up_to,
                     EventFile& events) {
  const v1::LengthAccuracies& measured = evaluation.accuracies;
  const std::string group = measured.final() ? "final" : "evaluation";
  for (const bool seen : {true, false}) {
    const double mean = MeanAccuracy(measured, seen_up_to, seen);
    if (std::isnan(mean)) continue;
    events.Scalar(absl::StrCat(group, seen ? "/seen_accuracy" : "/unseen_accuracy"),
                  evaluation.step, evaluation.time, mean);
  }
  for (int i = 0; i < measured.lengths_size(); ++i) {
    const int32_t length = measured.lengths(i);
    for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
      if (measured.final()) {
        events.Scalar(absl::StrCat("final/", metric.name(), "_by_length"), length, evaluation.time,
                      metric.values(i));
      } else {
        events.Scalar(absl::StrFormat("evaluation/%s_at_length/%04d", metric.name(), length),
                      evaluation.step, evaluation.time, metric.values(i));
      }
    }
    if (!measured.final()) {
      // In the order of the lengths, which TensorBoard sorts as text.
      events.Scalar(absl::StrFormat("evaluation/accuracy_at_length/%04d", length), evaluation.step,
                    evaluation.time, measured.accuracies(i));
      continue;
    }
    events.Scalar("final/accuracy_by_length", length, evaluation.time, measured.accuracies(i));
    if (i < measured.losses_size()) {
      events.Scalar("final/loss_by_length", length, evaluation.time, measured.losses(i));
    }
  }
}

}  // namespace

absl::Status TensorboardExporter::AddTrial(const v1::Trial& trial) {
  const auto history = FetchHistory(connection_, trial.name());
  if (!history.ok()) return history.status();
  auto file = output_.Open(absl::StrFormat("%s/events.out.tfevents.%010d.lengthwise",
                                           ShortName(trial.name()), trial.create_time().seconds()));
  if (!file.ok()) return file.status();
  EventFile events(**file);
  events.Session(kSessionStart, Seconds(trial.start_time()), SessionStart(trial));
  const v1::TrainingPoints& points = history->points;
  for (int i = 0; i < points.steps_size(); ++i) {
    const double time = history->times[static_cast<size_t>(i)];
    events.Scalar("training/loss", points.steps(i), time, points.losses(i));
    events.Scalar("training/accuracy", points.steps(i), time, points.accuracies(i));
    events.Scalar("training/gradient_norm", points.steps(i), time, points.gradient_norms(i));
  }
  for (const TrialHistory::Evaluation& evaluation : history->evaluations) {
    WriteEvaluation(evaluation, trial.specification().evaluation().seen_up_to(), events);
  }
  if (trial.has_end_time()) {
    events.Session(kSessionEnd, Seconds(trial.end_time()), SessionEnd(trial));
  }
  if (!events.status().ok()) return events.status();
  return (*file)->Close();
}

}  // namespace lengthwise::client
