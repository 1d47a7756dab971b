// What `lengthwise analyze` prints of each analysis.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_REPORT_H_
#define LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_REPORT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/analysis/analysis_table.h"
#include "client/analysis/attention_similarity.h"
#include "client/analysis/encoding_distance.h"
#include "client/analysis/ground_truth_attention.h"
#include "client/analysis/human_comparison.h"
#include "client/analysis/noise_curves.h"
#include "client/analysis/seed_comparison.h"
#include "client/comparison/published_table.h"

namespace lengthwise::client {

struct AnalysisReport {
  // What the numbers are: a sentence without its stop.
  std::string caption;
  AnalysisTable table;
  // Sentences.
  std::vector<std::string> remarks;
};

// By the trial's full name, as Accuracies makes them.
using TrialAccuracies = std::map<std::string, double>;

// `published`: with a table's values beside the measured ones.
AnalysisReport ReportAttention(const AttentionComparison& comparison, const std::string& reference,
                               AttentionMeasure measure, const TrialAccuracies& accuracies,
                               const std::optional<PublishedTable>& published);
AnalysisReport ReportGroundTruth(const std::vector<GroundTruthAttention>& rows,
                                 const TrialAccuracies& accuracies);
AnalysisReport ReportEncodings(const EncodingDistances& distances, const std::string& reference,
                               const TrialAccuracies& accuracies);
AnalysisReport ReportNoise(const std::vector<NoiseCurve>& curves);
AnalysisReport ReportHumans(const std::vector<HumanComparison>& comparisons);
AnalysisReport ReportSeeds(const std::vector<SeedComparison>& comparisons,
                           const std::string& reference);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_REPORT_H_
