// An experiment, or one trial, in the formats of other tools.
#ifndef LENGTHWISE_CLIENT_EXPORT_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_EXPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/export/exporter.h"

namespace lengthwise::client {

struct ExportFormat {
  std::string name;
  // Of the path that nobody chose: of a directory "-csv", of a file ".json".
  std::string suffix;
  Output::Kind of_experiment;
  Output::Kind of_trial;
  // What is in it, in a line.
  std::string description;
  std::function<std::unique_ptr<Exporter>(Connection&, const ExportSubject&, Output&)> make;
};

// In the order of the help.
const std::vector<ExportFormat>& ExportFormats();

struct ExportOptions {
  // Name of one of the formats.
  std::string format;
  // Empty: the experiment's or the trial's short name and the format's suffix, here.
  std::string path;
  // Replace what an export wrote before.
  bool replace = false;
};

struct ExportResult {
  std::string path;
  int trials = 0;
  // Why trials are not in it: without anything to export, and damaged.
  std::vector<std::string> absent;
  std::vector<std::string> damaged;
};

// `name` is what FindExperiment or FindTrial accepts. `progress` is told, after each trial and each
// MiB, how many trials are done, and ends the export, of which then nothing is left, with CANCELLED
// by returning false.
//
// Errors: the server's; INVALID_ARGUMENT for a format that there is not; NOT_FOUND: no trial has
// anything that the format holds; FAILED_PRECONDITION: it cannot be written, and what to do.
absl::StatusOr<ExportResult> Export(Connection& connection, const std::string& name,
                                    const ExportOptions& options,
                                    const std::function<bool(int done, int all)>& progress);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_EXPORT_H_
