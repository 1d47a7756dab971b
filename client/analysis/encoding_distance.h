// How far the tables that models learned are from a fixed encoding's, where one may be turned onto
// the other (relational reasoning on Latin squares, Figure 10).
#ifndef LENGTHWISE_CLIENT_ANALYSIS_ENCODING_DISTANCE_H_
#define LENGTHWISE_CLIENT_ANALYSIS_ENCODING_DISTANCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/analysis/trial_sets.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// A table of vectors added to the features of tokens, by position.
struct EncodingTable {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;  // [rows, columns]
};

// The tables that a trial's stored model has, one, or one for each block; none for an encoding
// without tables. NOT_FOUND: no model is stored.
absl::StatusOr<std::vector<EncodingTable>> DownloadTables(Connection& connection,
                                                          const std::string& trial);

// The table of a fixed encoding, for rows and columns as many as asked.
class FixedEncoding {
 public:
  // `reference` is the label of an encoding of these trials, or a name of the catalogue, which then
  // has its default parameters. INVALID_ARGUMENT for what has no fixed table.
  static absl::StatusOr<FixedEncoding> Find(absl::string_view reference,
                                            const std::vector<PlotExperiment>& experiments);

  EncodingTable Table(int64_t rows, int64_t columns) const;

 private:
  explicit FixedEncoding(v1::Component component) : component_(std::move(component)) {}

  // Of a name that models::FixedTable knows; parameters that are not set have their defaults.
  v1::Component component_;
};

struct EncodingDistance {
  const TrialSet* set = nullptr;
  const v1::Trial* trial = nullptr;
  // Orthogonal Procrustes distance (statistics/procrustes.h) of the model's tables, block by block.
  std::vector<double> blocks;
};

struct EncodingDistances {
  // One for each model with tables, in the order of the sets.
  std::vector<EncodingDistance> models;
  // Encodings that learn no table.
  std::vector<std::string> without_tables;
};

// Downloads the models of the trials whose encoding learns tables. FAILED_PRECONDITION where none
// does; the download's errors.
absl::StatusOr<EncodingDistances> MeasureEncodings(Connection& connection,
                                                   const std::vector<TrialSet>& sets,
                                                   const FixedEncoding& reference);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_ENCODING_DISTANCE_H_
