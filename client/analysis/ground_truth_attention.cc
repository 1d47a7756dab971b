#include "client/analysis/ground_truth_attention.h"

#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/analysis/puzzle_task.h"
#include "client/analysis/recorded_maps.h"
#include "client/connection/names.h"
#include "client/rendering/attention_grid.h"
#include "tasks/puzzles.h"

namespace lengthwise::client {
namespace {

// Sums over the puzzles of one model.
struct Sums {
  int64_t puzzles = 0;
  double even = 0;
  std::vector<double> by_layer;
};

struct ModelSums {
  int64_t layers = 0;
  std::vector<int64_t> asked;                  // puzzles by the cell that they ask for
  std::vector<double> truth;                   // [cells, cells]
  std::vector<std::vector<double>> attention;  // by layer, as `truth`
  Sums all;
  std::map<int32_t, Sums> by_length;
};

// Adds one puzzle, whose share of attention by layer is `shares`.
void Add(const std::vector<double>& shares, double even, Sums& sums) {
  ++sums.puzzles;
  sums.even += even;
  sums.by_layer.resize(shares.size());
  for (size_t layer = 0; layer < shares.size(); ++layer) sums.by_layer[layer] += shares[layer];
}

absl::Status Add(const v1::AttentionMap& map, const tasks::PuzzleTask& task, ModelSums& sums) {
  const std::vector<int32_t> tokens(map.tokens().begin(), map.tokens().end());
  const auto evidence = task.EvidenceOf(tokens);
  if (!evidence.ok()) return evidence.status();
  const auto cells = static_cast<size_t>(task.cells());
  const auto asked = static_cast<size_t>(evidence->asked);
  ++sums.asked[asked];
  const auto settling = static_cast<double>(evidence->cells.size());
  for (const int64_t cell : evidence->cells) {
    sums.truth[asked * cells + static_cast<size_t>(cell)] += 1 / settling;
  }
  const AttentionProbabilities probabilities(map);
  std::vector<double> shares;
  for (int layer = 0; layer < map.layers(); ++layer) {
    std::vector<double> attention(cells, 0);
    for (size_t key = 0; key < cells; ++key) {
      for (int head = 0; head < map.heads(); ++head) {
        attention[key] +=
            probabilities.At(layer, head, static_cast<int>(asked), static_cast<int>(key)) /
            static_cast<double>(map.heads());
      }
      sums.attention[static_cast<size_t>(layer)][asked * cells + key] += attention[key];
    }
    double share = 0;
    for (const int64_t cell : evidence->cells) share += attention[static_cast<size_t>(cell)];
    shares.push_back(share);
  }
  const double even = settling / static_cast<double>(cells);
  Add(shares, even, sums.all);
  Add(shares, even, sums.by_length[map.length()]);
  return absl::OkStatus();
}

// Absent for a trial without maps.
absl::StatusOr<std::optional<ModelSums>> SumUp(Connection& connection, const v1::Trial& trial,
                                               const tasks::PuzzleTask& task) {
  const auto maps = FetchMaps(connection, trial);
  if (!maps.ok()) return maps.status();
  if (maps->empty()) return std::nullopt;
  const auto cells = static_cast<size_t>(task.cells());
  ModelSums sums{.layers = maps->front().layers(),
                 .asked = std::vector<int64_t>(cells, 0),
                 .truth = std::vector<double>(cells * cells, 0)};
  sums.attention.assign(static_cast<size_t>(sums.layers), sums.truth);
  for (const v1::AttentionMap& map : *maps) {
    if (map.layers() != sums.layers) {
      return absl::InternalError(
          absl::StrCat("maps of ", ShortName(trial.name()), " differ in their layers"));
    }
    if (absl::Status status = Add(map, task, sums); !status.ok()) return status;
  }
  return sums;
}

// The means of a model's sums behind those of the models before it.
void Append(const Sums& sums, AttentionShares& shares) {
  const auto puzzles = static_cast<double>(sums.puzzles);
  shares.puzzles = sums.puzzles;
  shares.even = sums.even / puzzles;
  shares.by_layer.resize(sums.by_layer.size());
  for (size_t layer = 0; layer < sums.by_layer.size(); ++layer) {
    shares.by_layer[layer].push_back(sums.by_layer[layer] / puzzles);
  }
}

// Adds to `rows` those of `sums`, each divided by how many puzzles it is of.
void AddRows(const std::vector<double>& sums, const std::vector<int64_t>& puzzles,
             std::vector<double>& rows) {
  const size_t cells = puzzles.size();
  rows.resize(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t count = puzzles[i / cells];
    if (count > 0) rows[i] += sums[i] / static_cast<double>(count);
  }
}

void Append(const ModelSums& model, GroundTruthAttention& row) {
  ++row.models;
  Append(model.all, row.all);
  for (const auto& [length, sums] : model.by_length) Append(sums, row.by_length[length]);
  // The same for every model.
  row.truth.clear();
  AddRows(model.truth, model.asked, row.truth);
  row.layers.resize(model.attention.size());
  for (size_t layer = 0; layer < row.layers.size(); ++layer) {
    AddRows(model.attention[layer], model.asked, row.layers[layer]);
  }
}

}  // namespace

absl::StatusOr<std::vector<GroundTruthAttention>> CompareWithGroundTruth(
    Connection& connection, const std::vector<TrialSet>& sets) {
  std::vector<GroundTruthAttention> rows;
  absl::Status without_puzzles;
  bool has_puzzles = false;
  for (const TrialSet& set : sets) {
    const auto task = PuzzleTaskOf(*set.trials.front());
    if (absl::IsFailedPrecondition(task.status())) {
      without_puzzles = task.status();
      continue;
    }
    if (!task.ok()) return task.status();
    has_puzzles = true;
    GroundTruthAttention row{.set = &set, .cells = (*task)->cells()};
    std::optional<ModelSums> first;
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      if (counted.count(SeedsOf(*trial)) > 0) continue;
      const auto sums = SumUp(connection, *trial, **task);
      if (!sums.ok()) return sums.status();
      if (!sums->has_value()) continue;
      counted.insert(SeedsOf(*trial));
      if (!first.has_value()) first = **sums;
      if ((*sums)->layers != first->layers || (*sums)->truth != first->truth) {
        return absl::FailedPreconditionError(
            absl::StrCat("the maps of ", ShortName(trial->name()),
                         " are of other puzzles or layers than those "
                         "of other seeds of ",
                         set.encoding, ": record the same of all"));
      }
      Append(**sums, row);
    }
    if (row.models == 0) continue;
    for (std::vector<double>& layer : row.layers) {
      for (double& value : layer) value /= static_cast<double>(row.models);
    }
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  if (!has_puzzles && !without_puzzles.ok()) return without_puzzles;
  return absl::FailedPreconditionError(
      absl::StrCat("no trial that has succeeded has attention maps; ", kHowToRecordMaps));
}

}  // namespace lengthwise::client
