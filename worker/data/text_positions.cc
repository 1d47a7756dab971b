#include "worker/data/text_positions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "random/stream.h"

namespace lengthwise::worker::data {
namespace {

using Runs = std::vector<PositionRun>;

Runs RunsOf(const TextPass::Group& group) {
  if (!group.runs.empty()) return group.runs;
  return {{.of = group.length, .first = 0, .count = group.length}};
}

// Returns the group's first position if its positions are consecutive and not drawn.
std::optional<int64_t> PlainStart(const models::PositionPolicy& policy, const Runs& runs) {
  int64_t next = runs[0].first;
  for (const PositionRun& run : runs) {
    if (policy.drawn() || run.first != next) return std::nullopt;
    next += run.count;
  }
  return runs[0].first;
}

TextPositions OwnPositions(const models::PositionPolicy& policy, uint64_t data_seed, int64_t step,
                           const TextPass& pass) {
  constexpr auto kPurpose = random::Purpose::kTrainingPositions;
  const auto address = static_cast<uint64_t>(step);
  TextPositions result = {.own = true};
  auto piece = pass.pieces.begin();
  for (const TextPass::Group& group : pass.groups) {
    result.first.push_back(result.count);
    result.count += group.examples * group.length;
    for (int64_t i = 0; i < group.examples && !policy.from_data(); ++i, ++piece) {
      for (const PositionRun& run : RunsOf(group)) {
        const std::vector<double> draw = policy.DrawRows(
            data_seed, kPurpose, address, static_cast<int64_t>(*piece), /*rows=*/1, run.of);
        result.positions.insert(result.positions.end(), draw.begin() + run.first,
                                draw.begin() + run.first + run.count);
      }
    }
  }
  if (policy.from_data()) {
    result.positions = policy.WithOffset(pass.ids, data_seed, kPurpose, address);
  }
  return result;
}

}  // namespace

std::vector<double> DrawForLength(const models::PositionPolicy& policy, uint64_t data_seed,
                                  int64_t step, int64_t tokens) {
  // Rows stay below 2^32: a sequence has at most 2^20 tokens, and a network at most 2^8 blocks.
  return policy.DrawRows(data_seed, random::Purpose::kTrainingPositions,
                         static_cast<uint64_t>(step), tokens * policy.draws(), policy.draws(),
                         tokens);
}

TextPositions PositionsOfPass(const models::PositionPolicy& policy, uint64_t data_seed,
                              int64_t step, const TextPass& pass) {
  if (policy.each()) return OwnPositions(policy, data_seed, step, pass);
  TextPositions result;
  // For each column of T: the draw (by its number of tokens `of`) and the place in that draw.
  std::vector<std::pair<int64_t, int64_t>> columns;
  // Groups with plain positions share one row, from which each takes a part.
  int64_t plain = 0;
  for (const TextPass::Group& group : pass.groups) {
    if (const auto start = PlainStart(policy, RunsOf(group)); start.has_value()) {
      plain = std::max(plain, *start + group.length);
    }
  }
  for (int64_t place = 0; place < plain; ++place) columns.emplace_back(plain, place);

  std::map<Runs, int64_t> begins;
  for (const TextPass::Group& group : pass.groups) {
    const Runs runs = RunsOf(group);
    if (const auto start = PlainStart(policy, runs); start.has_value()) {
      result.first.push_back(*start);
      continue;
    }
    const auto [begin, is_new] = begins.emplace(runs, static_cast<int64_t>(columns.size()));
    result.first.push_back(begin->second);
    if (!is_new) continue;
    for (const PositionRun& run : runs) {
      for (int64_t i = 0; i < run.count; ++i) columns.emplace_back(run.of, run.first + i);
    }
  }

  std::map<int64_t, std::vector<double>> draws;  // [S, of]
  for (const auto& [of, place] : columns) {
    if (!draws.contains(of)) {
      draws[of] = DrawForLength(policy, data_seed, step, of);
    }
  }
  result.count = static_cast<int64_t>(columns.size());
  for (int64_t s = 0; s < policy.draws(); ++s) {
    for (const auto& [of, place] : columns) {
      result.positions.push_back(draws[of][static_cast<size_t>(s * of + place)]);
    }
  }
  return result;
}

}  // namespace lengthwise::worker::data
