// The newest stored model of each trial, byte for byte as the server has it, which checks its
// SHA-256: a safetensors file of the tensors "parameters/{name}", and of the optimizer's moments
// where they were kept.
#ifndef LENGTHWISE_CLIENT_EXPORT_SAFETENSORS_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_SAFETENSORS_EXPORT_H_

#include "client/export/exporter.h"

namespace lengthwise::client {

// Of an experiment "{trial}.safetensors" for each trial that has a model.
class SafetensorsExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status AddTrial(const v1::Trial& trial) override;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_SAFETENSORS_EXPORT_H_
