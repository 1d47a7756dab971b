// One format of an export. A new one is a file in this folder and its line in export.cc.
#ifndef LENGTHWISE_CLIENT_EXPORT_EXPORTER_H_
#define LENGTHWISE_CLIENT_EXPORT_EXPORTER_H_

#include "absl/status/status.h"
#include "client/connection/connection.h"
#include "client/export/output.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// What is exported: an experiment with all its trials, or one of them.
struct ExportSubject {
  v1::Experiment experiment;
  // In the order of the grid.
  std::vector<v1::Trial> trials;
  bool whole_experiment = true;
};

// Called by one thread: Begin, AddTrial for each trial in turn, Finish. Errors are the server's and
// those of Output.
class Exporter {
 public:
  // `subject` and `output` outlive it.
  Exporter(Connection& connection, const ExportSubject& subject, Output& output)
      : connection_(connection), subject_(subject), output_(output) {}
  virtual ~Exporter() = default;

  virtual absl::Status Begin() { return absl::OkStatus(); }
  // NOT_FOUND, where the trial has nothing that this format holds, and DATA_LOSS, where what it has
  // is damaged, leave the trial out; any other error ends the export.
  virtual absl::Status AddTrial(const v1::Trial& trial) = 0;
  virtual absl::Status Finish() { return absl::OkStatus(); }

 protected:
  Connection& connection_;
  const ExportSubject& subject_;
  Output& output_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_EXPORTER_H_
