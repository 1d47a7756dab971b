#include "server/api/artifact_upload.h"

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "rpc/status.h"

namespace lengthwise::server {

template <typename Request>
absl::Status Upload<Request>::TakeEnd() {
  if (writer_ == nullptr) return rpc::InvalidField("header", "is absent; accepted: header first");
  if (received_bytes_ != expected_bytes_) {
    return absl::DataLossError(absl::StrCat("the data has ", received_bytes_,
                                            " bytes, the header says ", expected_bytes_));
  }
  LENGTHWISE_FAILPOINT("upload.finish.before");
  return writer_->Finish();
}

template <typename Request>
void Upload<Request>::FinishWith(const absl::Status& status) {
  LENGTHWISE_FAILPOINT("upload.answer.before");
  writer_.reset();  // here, not on gRPC's thread, because it may touch the disk
  this->EndTransfer(status);
}

template class Upload<v1::UploadArtifactRequest>;
template class Upload<v1::UploadDataRequest>;

}  // namespace lengthwise::server
