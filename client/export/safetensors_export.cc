#include "client/export/safetensors_export.h"

#include "client/connection/names.h"

namespace lengthwise::client {

absl::Status SafetensorsExporter::AddTrial(const v1::Trial& trial) {
  auto file =
      output_.Open(subject_.whole_experiment ? ShortName(trial.name()) + ".safetensors" : "");
  if (!file.ok()) return file.status();
  const auto model = connection_.DownloadModel(
      trial.name(), [&file](absl::string_view data) { return (*file)->Append(data); });
  if (!model.ok()) return model.status();
  return (*file)->Close();
}

}  // namespace lengthwise::client
