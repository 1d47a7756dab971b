#include "client/plotting/attention_figure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection/names.h"
#include "client/plotting/display_names.h"

namespace lengthwise::client {
namespace {

// A figure of the paper that has most: two vectors at eight scales.
constexpr size_t kMostRows = 16;
// Cells a panel's side; more than it has pixels would be drawn over each other.
constexpr int kMostCells = 200;

bool RecordsAttention(const v1::Trial& trial) {
  const v1::Evaluation& evaluation = trial.specification().evaluation();
  return !evaluation.attention_lengths().empty() || !evaluation.attention_inputs().empty();
}

// All probabilities of a map, [layers, heads, tokens, tokens].
absl::StatusOr<std::vector<float>> Probabilities(const v1::AttentionMap& map,
                                                 const std::string& trial) {
  const auto tokens = static_cast<size_t>(map.tokens_size());
  std::vector<float> values(static_cast<size_t>(map.layers()) * map.heads() * tokens * tokens);
  if (values.empty() || map.probabilities().size() != values.size() * sizeof(float)) {
    return absl::InternalError(absl::StrCat(
        "the attention map of ", trial, " at length ", map.length(), " has ",
        map.probabilities().size(), " bytes where its shape has ", values.size() * sizeof(float)));
  }
  std::memcpy(values.data(), map.probabilities().data(), map.probabilities().size());
  return values;
}

// Input tokens come first, then output places, all the same token that no input has.
int FirstOutput(const v1::AttentionMap& map) {
  const auto& tokens = map.tokens();
  return static_cast<int>(std::find(tokens.begin(), tokens.end(), *tokens.rbegin()) -
                          tokens.begin());
}

// The maximum over heads [first, last) of one layer, and over the tokens of a cell.
HeatMap MakeHeatMap(const v1::AttentionMap& map, const std::vector<float>& values, bool has_outputs,
                    int layer, int first_head, int last_head) {
  const int tokens = map.tokens_size();
  HeatMap result;
  result.tokens = tokens;
  result.first_output = has_outputs ? FirstOutput(map) : tokens;
  result.tokens_per_cell = (tokens + kMostCells - 1) / kMostCells;
  result.size = (tokens + result.tokens_per_cell - 1) / result.tokens_per_cell;
  result.values.assign(static_cast<size_t>(result.size) * result.size, 0);
  for (int head = first_head; head < last_head; ++head) {
    const float* matrix =
        values.data() + (static_cast<size_t>(layer) * map.heads() + head) * tokens * tokens;
    for (int query = 0; query < tokens; ++query) {
      float* row =
          result.values.data() + static_cast<size_t>(query / result.tokens_per_cell) * result.size;
      for (int key = 0; key < tokens; ++key) {
        float& cell = row[key / result.tokens_per_cell];
        cell = std::max(cell, matrix[static_cast<size_t>(query) * tokens + key]);
      }
    }
  }
  return result;
}

absl::Status NoMaps(const std::vector<PlotExperiment>& experiments) {
  bool asked = false;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) asked |= RecordsAttention(trial);
  }
  const std::string names = ExperimentNames(experiments);
  return absl::FailedPreconditionError(
      asked ? absl::StrCat("no trial of ", names,
                           " has recorded attention yet; that is done after the last evaluation")
            : absl::StrCat(names,
                           " has no attention maps; evaluation.attention_lengths in its "
                           "specification, such as [20, 40], records them"));
}

absl::Status CheckNumber(int given, int count, const std::string& what) {
  if (given >= 0 && given <= count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no ", what, " ", given, ": these networks have ", count));
}

// A row of the picture.
struct Row {
  const TrialGroup* group;
  const v1::Trial* trial;
  const v1::AttentionMap* map;
};

std::string RowTitle(const Row& row, bool with_task) {
  return absl::StrCat(with_task ? TaskTitle(*row.group->task) + ": " : "", row.group->name, "\n",
                      row.map->input_number() > 0
                          ? absl::StrCat("input ", row.map->input_number())
                          : absl::StrCat(AxisName(*row.group->task), " ", row.map->length()));
}

}  // namespace

absl::Status CheckMapRows(size_t rows) {
  if (rows <= kMostRows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a picture has room for ", kMostRows, " rows of maps, and these are ", rows,
                   "; choose some with --task, --encoding, --length or --trial"));
}

std::vector<const v1::Trial*> TrialsWithAttention(const std::vector<PlotExperiment>& experiments) {
  std::vector<const v1::Trial*> trials;
  for (const auto& [group, trial] : BestTrials(GroupTrials(experiments), RecordsAttention))
    trials.push_back(trial);
  return trials;
}

absl::StatusOr<Figure> AttentionFigure(const std::vector<PlotExperiment>& experiments,
                                       const AttentionChoice& choice) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  std::vector<Row> rows;
  std::set<int> lengths;  // that were to be recorded
  for (const auto& [group, trial] : BestTrials(groups, RecordsAttention)) {
    for (const int length : trial->specification().evaluation().attention_lengths()) {
      lengths.insert(length);
    }
    const auto maps = group->experiment->attention_maps.find(trial->name());
    if (maps == group->experiment->attention_maps.end()) continue;
    for (const v1::AttentionMap& map : maps->second) {
      if (choice.length != 0 && map.length() != choice.length) continue;
      if (map.sequence() + 1 == choice.sequence) rows.push_back({group, trial, &map});
    }
  }
  if (rows.empty() && choice.sequence > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are no attention maps of sequence ", choice.sequence,
                     "; evaluation.attention_sequences says how many of a length are recorded"));
  }
  if (rows.empty()) {
    if (choice.length == 0 || lengths.empty()) return NoMaps(experiments);
    return absl::InvalidArgumentError(absl::StrCat("there are no attention maps of length ",
                                                   choice.length,
                                                   "; recorded: ", absl::StrJoin(lengths, ", ")));
  }
  if (absl::Status status = CheckMapRows(rows.size()); !status.ok()) return status;
  const int layers = rows[0].map->layers();
  const int heads = rows[0].map->heads();
  for (const Row& row : rows) {
    if (row.map->layers() != layers || row.map->heads() != heads) {
      return absl::InvalidArgumentError(
          "the networks have different numbers of layers or heads; choose one with --network");
    }
  }
  if (absl::Status status = CheckNumber(choice.layer, layers, "layer"); !status.ok()) return status;
  if (absl::Status status = CheckNumber(choice.head, heads, "head"); !status.ok()) return status;

  const bool heads_side_by_side = choice.layer > 0 && choice.head == 0;
  const bool maximum = choice.head == 0 && !heads_side_by_side;
  Figure figure{.kind = "attention",
                .x = {.label = "key token"},
                .y = {.label = "query token"},
                .map_maximum = 0,
                .map_label = maximum ? "attention, maximum over heads" : "attention"};
  figure.title = absl::StrCat("Attention", maximum ? ", maximum over heads" : "",
                              choice.head > 0 ? absl::StrCat(" of head ", choice.head) : "",
                              heads_side_by_side ? absl::StrCat(" of layer ", choice.layer) : "",
                              ": ", ExperimentNames(experiments));
  std::set<std::string> tasks;
  for (const Row& row : rows) tasks.insert(Label(*row.group->task));
  if (tasks.size() == 1) {
    absl::StrAppend(&figure.title, ", ", TaskTitle(*rows[0].group->task));
  }
  int pooled = 1;
  bool lines = false;
  for (const Row& row : rows) {
    const absl::StatusOr<std::vector<float>> values =
        Probabilities(*row.map, ShortName(row.trial->name()));
    if (!values.ok()) return values.status();
    const bool first_row = figure.panels.empty();
    const bool has_outputs = HasOutputTokens(*row.group->task);
    lines |= has_outputs;
    const auto add = [&](const std::string& title, int layer, int first_head, int last_head) {
      Panel& panel = figure.panels.emplace_back();
      if (first_row) panel.title = title;
      panel.map = MakeHeatMap(*row.map, *values, has_outputs, layer, first_head, last_head);
      pooled = std::max(pooled, panel.map->tokens_per_cell);
      for (const float value : panel.map->values) {
        figure.map_maximum = std::max<double>(figure.map_maximum, value);
      }
    };
    if (heads_side_by_side) {
      for (int head = 0; head < heads; ++head) {
        add(absl::StrCat("head ", head + 1), choice.layer - 1, head, head + 1);
      }
      figure.columns = heads;
    } else {
      const int first = choice.layer > 0 ? choice.layer - 1 : 0;
      const int last = choice.layer > 0 ? choice.layer : layers;
      for (int layer = first; layer < last; ++layer) {
        add(absl::StrCat("layer ", layer + 1), layer, choice.head > 0 ? choice.head - 1 : 0,
            choice.head > 0 ? choice.head : heads);
      }
      figure.columns = last - first;
    }
    figure.row_titles.push_back(RowTitle(row, tasks.size() > 1));
  }
  // Soft-max gives 1 at most; a scale that ends a little below would only look odd.
  if (figure.map_maximum > 0.9 || figure.map_maximum <= 0) figure.map_maximum = 1;
  std::vector<std::string> remarks;
  if (lines) remarks.push_back("White lines: where the input ends and the output begins.");
  bool chosen = false;
  for (const Row& row : rows) {
    size_t trials = 0;
    for (const SeedGroup& seeds : row.group->rates) trials += seeds.trials.size();
    chosen |= trials > 1;
  }
  if (chosen) {
    remarks.push_back(
        "Of each encoding the trial with the highest mean accuracy on lengths not seen in "
        "training.");
  }
  if (pooled > 1) {
    remarks.push_back(absl::StrCat("Long maps: each dot is the largest value of up to ", pooled,
                                   " x ", pooled, " tokens."));
  }
  figure.caption = absl::StrJoin(remarks, " ");
  return figure;
}

}  // namespace lengthwise::client
