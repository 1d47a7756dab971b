// From the server to what a report is made of.
#ifndef LENGTHWISE_CLIENT_REPORT_REPORT_DATA_H_
#define LENGTHWISE_CLIENT_REPORT_REPORT_DATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/plotting/trial_groups.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

struct ReportData {
  v1::Experiment experiment;
  v1::SummarizeExperimentResponse summary;
  // The experiment alone, with everything that figures read.
  std::vector<PlotExperiment> plots;
  // HTML: beside the published tables that some of its trials belong to.
  std::string comparisons;
};

// `name` is what FindExperiment accepts. The published tables are those whose keys are given; with
// none, all of the experiment's protocol of which a cell was run. Errors are the server's, those of
// PythonOutput, and INVALID_ARGUMENT for a key that there is not.
absl::StatusOr<ReportData> FetchReport(Connection& connection, const std::string& name,
                                       const std::vector<std::string>& tables);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_REPORT_REPORT_DATA_H_
