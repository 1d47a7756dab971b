#include "client/analysis/attention_similarity.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/analysis/recorded_maps.h"
#include "client/connection/names.h"
#include "client/rendering/numbers.h"
#include "statistics/similarity.h"
#include "statistics/summary.h"

namespace lengthwise::client {
namespace {

// The maps of one model.
struct Maps {
  // What they are of, by length and sequence.
  std::vector<std::vector<int32_t>> sequences;
  int layers = 0;
  int heads = 0;
  // All probabilities, and where the rows end: those of a map are as long as it has tokens.
  std::vector<double> probabilities;
  std::vector<size_t> row_sizes;  // of each sequence
};

// Without maps: no sequences.
absl::StatusOr<Maps> FetchProbabilities(Connection& connection, const v1::Trial& trial) {
  const auto recorded = FetchMaps(connection, trial);
  if (!recorded.ok()) return recorded.status();
  Maps maps;
  for (const v1::AttentionMap& map : *recorded) {
    maps.sequences.emplace_back(map.tokens().begin(), map.tokens().end());
    maps.layers = map.layers();
    maps.heads = map.heads();
    maps.row_sizes.push_back(static_cast<size_t>(map.tokens_size()));
    const size_t first = maps.probabilities.size();
    std::vector<float> values(map.probabilities().size() / sizeof(float));
    std::memcpy(values.data(), map.probabilities().data(), map.probabilities().size());
    maps.probabilities.resize(first + values.size());
    std::copy(values.begin(), values.end(), maps.probabilities.begin() + first);
  }
  return maps;
}

absl::StatusOr<double> Divergence(const Maps& a, const Maps& b) {
  const absl::Span<const double> first = a.probabilities, second = b.probabilities;
  double sum = 0;
  int64_t rows = 0;
  size_t at = 0;
  for (const size_t size : a.row_sizes) {
    const size_t of_sequence = static_cast<size_t>(a.layers) * static_cast<size_t>(a.heads) * size;
    for (size_t row = 0; row < of_sequence; ++row, at += size) {
      const auto divergence =
          statistics::JensenShannonDivergence(first.subspan(at, size), second.subspan(at, size));
      if (!divergence.ok()) return divergence.status();
      sum += *divergence;
      ++rows;
    }
  }
  return sum / static_cast<double>(rows);
}

absl::StatusOr<double> Measure(AttentionMeasure measure, const Maps& a, const Maps& b) {
  return measure == AttentionMeasure::kCosine
             ? statistics::CosineSimilarity(a.probabilities, b.probabilities)
             : Divergence(a, b);
}

absl::Status CheckAlike(const Maps& maps, const Maps& reference, const v1::Trial& trial,
                        absl::string_view reference_encoding) {
  if (maps.layers != reference.layers || maps.heads != reference.heads) {
    return absl::FailedPreconditionError(
        absl::StrCat(ShortName(trial.name()), " has ", Counted(maps.layers, "layer"), " of ",
                     Counted(maps.heads, "head"), ", and ", reference_encoding, " has ",
                     reference.layers, " of ", reference.heads, ": such maps cannot be compared"));
  }
  if (maps.sequences == reference.sequences) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the maps of ", ShortName(trial.name()), " are of ", maps.sequences.size(),
      " sequences and those of ", reference_encoding, " of ", reference.sequences.size(),
      ", and these are not the same: record both with the same evaluation.attention_lengths, "
      "attention_sequences and seed"));
}

}  // namespace

absl::StatusOr<AttentionComparison> CompareAttention(Connection& connection,
                                                     const std::vector<TrialSet>& sets,
                                                     absl::string_view reference,
                                                     AttentionMeasure measure) {
  if (absl::Status status = CheckReference(reference, sets); !status.ok()) return status;
  AttentionComparison comparison;
  // The references' maps stay, those of all others come and go: an experiment may have gigabytes.
  std::map<const TrialSet*, std::map<const v1::Trial*, Maps>> references;
  for (const TrialSet& set : sets) {
    if (set.encoding != reference) continue;
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      if (counted.count(SeedsOf(*trial)) > 0) continue;
      auto maps = FetchProbabilities(connection, *trial);
      if (!maps.ok()) return maps.status();
      if (maps->sequences.empty()) continue;
      counted.insert(SeedsOf(*trial));
      const auto& [place, is_new] = references[&set].emplace(trial, *std::move(maps));
      if (absl::Status status =
              CheckAlike(place->second, references[&set].begin()->second, *trial, reference);
          !status.ok()) {
        return status;
      }
    }
  }
  if (references.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no trial of ", reference, " has attention maps; ", kHowToRecordMaps));
  }
  for (const TrialSet& set : sets) {
    AttentionSimilarity row{.set = &set};
    const TrialSet* const partner = ReferenceOf(set, reference, sets);
    const auto others = references.find(partner);
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      if (counted.count(SeedsOf(*trial)) > 0) continue;
      std::optional<Maps> own;
      if (const auto kept = references.find(&set); kept != references.end()) {
        const auto found = kept->second.find(trial);
        if (found != kept->second.end()) own = found->second;
      } else {
        auto maps = FetchProbabilities(connection, *trial);
        if (!maps.ok()) return maps.status();
        if (!maps->sequences.empty()) own = *std::move(maps);
      }
      if (!own.has_value()) continue;
      counted.insert(SeedsOf(*trial));
      ++row.models;
      comparison.sequences = static_cast<int64_t>(own->sequences.size());
      comparison.layers = own->layers;
      if (others == references.end()) continue;
      const size_t before = row.pairs.size();
      for (const auto& [other_trial, other] : others->second) {
        // Each pair of the reference's own models once.
        if (partner == &set && SeedsOf(*other_trial) <= SeedsOf(*trial)) continue;
        if (absl::Status status = CheckAlike(*own, other, *trial, reference); !status.ok()) {
          return status;
        }
        const auto value = Measure(measure, *own, other);
        if (!value.ok()) return value.status();
        row.pairs.push_back(*value);
      }
      if (row.pairs.size() > before) {
        row.means.emplace_back(trial, statistics::Mean(absl::MakeSpan(row.pairs).subspan(before)));
      }
    }
    if (row.models > 0) {
      comparison.rows.push_back(std::move(row));
    } else {
      comparison.without_maps.push_back(set.encoding);
    }
  }
  if (comparison.rows.size() == 1 && sets.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("only ", reference, " has attention maps; ", kHowToRecordMaps));
  }
  return comparison;
}

}  // namespace lengthwise::client
