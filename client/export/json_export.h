// One JSON document with everything measured:
//
//   {"format": "lengthwise.export.1", "experiment": NAME, "owner": ..., "specification": {...},
//    "trials": [{"trial": NAME, ..., the columns of csv_export.h, "specification": {...},
//                "loss_curve": {"steps": [...], "losses": [...], ...},
//                "evaluations": [{"step": 200, "final": true, "lengths": [...], ...,
//                                 "metrics": {"digits_accuracy": [...]}}],
//                "sequence_scores": [{"length": 5, "accuracies": [...], "losses": [...],
//                                     "wrong_answers": [{"sequence": 3, "places": [0, 4],
//                                                        "carry_into_first": true}, ...]}, ...]},
//               ...]}
//
// Sequence scores are there where they were asked for, wrong answers are of text.
//
// Specifications are as protobuf's JSON writes them, with the names of the .proto files; what is
// not a number is null.
#ifndef LENGTHWISE_CLIENT_EXPORT_JSON_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_JSON_EXPORT_H_

#include <memory>

#include "client/export/exporter.h"

namespace lengthwise::client {

class JsonExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status Begin() override;
  absl::Status AddTrial(const v1::Trial& trial) override;
  absl::Status Finish() override;

 private:
  std::unique_ptr<OutputFile> file_;
  bool first_ = true;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_JSON_EXPORT_H_
