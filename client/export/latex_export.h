// Tables for a paper: accuracy by length, and beside each published table of which the experiment
// has run a cell. A fragment to \input, for the package booktabs.
#ifndef LENGTHWISE_CLIENT_EXPORT_LATEX_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_LATEX_EXPORT_H_

#include "client/export/exporter.h"

namespace lengthwise::client {

// Of an experiment: a trial alone has no averages to tabulate (INVALID_ARGUMENT).
class LatexExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status Begin() override;
  absl::Status AddTrial(const v1::Trial& trial) override;
  absl::Status Finish() override;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_LATEX_EXPORT_H_
