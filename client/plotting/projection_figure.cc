#include "client/plotting/projection_figure.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection/names.h"
#include "client/plotting/display_names.h"

namespace lengthwise::client {
namespace {

constexpr size_t kMostRows = 12;
// Points of one length in one panel; more hide each other and make the SVG slow to show.
constexpr int kMostPoints = 1500;
// Blue for the fitted length; orange, green, purple and vermillion for others. Open markers (what
// dashed lines have) do not cover the fitted length's.
constexpr SeriesStyle kFitted{.color = 0, .marker = 0};
constexpr SeriesStyle kOthers[] = {{.color = 4, .marker = 2, .dashed = true},
                                   {.color = 2, .marker = 1, .dashed = true},
                                   {.color = 3, .marker = 3, .dashed = true},
                                   {.color = 1, .marker = 4, .dashed = true}};

bool RecordsProjections(const v1::Trial& trial) {
  return trial.specification().evaluation().has_projection();
}

absl::Status NoProjections(const std::vector<PlotExperiment>& experiments) {
  bool asked = false;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      asked |= RecordsProjections(trial);
    }
  }
  const std::string names = ExperimentNames(experiments);
  return absl::FailedPreconditionError(
      asked ? absl::StrCat("no trial of ", names,
                           " has recorded projections yet; that is done after the last evaluation")
            : absl::StrCat(names,
                           " has no projections; evaluation.projection in its specification, such "
                           "as {lengths: [40, 150]}, records them"));
}

absl::Status CheckShape(const v1::Projection& projection, const std::string& trial) {
  const int64_t values =
      int64_t{2} * projection.depths() * projection.sequences() * projection.tokens();
  if (values > 0 &&
      projection.coordinates().size() == static_cast<size_t>(values) * sizeof(float)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "the projection of ", trial, " at length ", projection.length(), " has ",
      projection.coordinates().size(), " bytes where its shape has ", values * sizeof(float)));
}

// How many whole sequences are drawn.
int ShownSequences(const v1::Projection& projection) {
  return std::clamp(kMostPoints / std::max(projection.tokens(), 1), 1, projection.sequences());
}

Series MakeSeries(const v1::Projection& projection, int depth, const SeriesStyle& style) {
  Series series{.kind = Series::Kind::kScatter, .style = style};
  const bool fitted = projection.length() == projection.fitted_length();
  series.name = absl::StrCat("length ", projection.length(),
                             fitted ? ", on which the components were fitted" : "");
  const size_t of_depth = static_cast<size_t>(projection.sequences()) * projection.tokens();
  const size_t shown = static_cast<size_t>(ShownSequences(projection)) * projection.tokens();
  std::vector<float> values(2 * shown);
  std::memcpy(values.data(), projection.coordinates().data() + 2 * of_depth * depth * sizeof(float),
              values.size() * sizeof(float));
  for (size_t i = 0; i < shown; ++i) {
    const double y = values[2 * i + 1];
    series.points.push_back({values[2 * i], y, y, y});
  }
  return series;
}

std::string PanelTitle(const v1::Projection& projection, int depth) {
  std::string title = depth == 0 ? "embedding" : absl::StrCat("after block ", depth);
  if (projection.explained_variance_size() >= 2 * (depth + 1)) {
    absl::StrAppendFormat(&title, " (%.0f + %.0f %%)",
                          100 * projection.explained_variance(2 * depth),
                          100 * projection.explained_variance(2 * depth + 1));
  }
  return title;
}

}  // namespace

std::vector<const v1::Trial*> TrialsWithProjections(
    const std::vector<PlotExperiment>& experiments) {
  std::vector<const v1::Trial*> trials;
  for (const auto& [group, trial] : BestTrials(GroupTrials(experiments), RecordsProjections))
    trials.push_back(trial);
  return trials;
}

absl::StatusOr<Figure> ProjectionFigure(const std::vector<PlotExperiment>& experiments) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  Figure figure{.kind = "projection",
                .x = {.label = "first principal component", .ticks = Axis::Ticks::kNone},
                .y = {.label = "second principal component", .ticks = Axis::Ticks::kNone}};
  std::set<std::string> tasks;
  std::map<int, SeriesStyle> styles;  // of lengths that were not fitted
  int depths = 0;
  bool chosen = false;
  std::string thinned;
  for (const auto& [group, trial] : BestTrials(groups, RecordsProjections)) {
    const auto found = group->experiment->projections.find(trial->name());
    if (found == group->experiment->projections.end() || found->second.empty()) continue;
    const std::vector<v1::Projection>& projections = found->second;
    for (const v1::Projection& projection : projections) {
      if (absl::Status status = CheckShape(projection, ShortName(trial->name())); !status.ok()) {
        return status;
      }
      if (depths == 0) depths = projection.depths();
      if (projection.depths() != depths) {
        return absl::InvalidArgumentError(
            "the networks have different numbers of blocks; choose one with --network");
      }
      if (projection.length() != projection.fitted_length()) {
        styles.emplace(projection.length(), kOthers[styles.size() % std::size(kOthers)]);
      }
      if (ShownSequences(projection) < projection.sequences()) {
        thinned = absl::StrCat(" Of long sequences the first are drawn, up to ", kMostPoints,
                               " tokens of a length.");
      }
    }
    for (int depth = 0; depth < depths; ++depth) {
      Panel panel{.title = PanelTitle(projections[0], depth)};
      // The fitted length last, on top.
      for (const bool fitted : {false, true}) {
        for (const v1::Projection& projection : projections) {
          if ((projection.length() == projection.fitted_length()) != fitted) continue;
          panel.series.push_back(
              MakeSeries(projection, depth, fitted ? kFitted : styles[projection.length()]));
        }
      }
      figure.panels.push_back(std::move(panel));
    }
    size_t trials = 0;
    for (const SeedGroup& seeds : group->rates) trials += seeds.trials.size();
    chosen |= trials > 1;
    tasks.insert(TaskTitle(*group->task));
    figure.row_titles.push_back(absl::StrCat(group->name, "\n", TaskTitle(*group->task)));
  }
  if (figure.panels.empty()) return NoProjections(experiments);
  if (figure.row_titles.size() > kMostRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a picture has room for ", kMostRows, " rows, one an encoding and task, and these are ",
        figure.row_titles.size(), "; choose some with --task or --encoding"));
  }
  figure.columns = depths;
  figure.title =
      absl::StrCat("Activations projected onto two components: ", ExperimentNames(experiments));
  if (tasks.size() == 1) {
    absl::StrAppend(&figure.title, ", ", *tasks.begin());
    for (std::string& title : figure.row_titles) title.resize(title.find('\n'));
  }
  figure.caption = absl::StrCat(
      "Each point is an input token of a sequence. In brackets: the components' shares of the "
      "variance at the fitted length.",
      chosen ? " Of each encoding the trial with the highest mean accuracy on lengths not seen in "
               "training."
             : "",
      thinned);
  return figure;
}

}  // namespace lengthwise::client
