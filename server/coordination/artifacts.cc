#include "server/coordination/artifacts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/networks/catalogue.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "rpc/status.h"
#include "specification/examples.h"
#include "tasks/examples/example_set.h"
#include "tasks/examples/line.h"

namespace lengthwise::server {
namespace {

// In files of examples of the maximum size.
constexpr int64_t kUploadsPerHour = 8;
// A small file counts as 1/1024 of the maximum size.
constexpr int64_t kCountedParts = 1024;

// Translates errors of the store for workers and downloads. A full or unwritable disk says nothing
// about the worker's lease or bytes: UNAVAILABLE makes the worker retry until the disk works again.
// `fault`, if there is one, is told of such a disk.
// Errors about the bytes themselves stay as they are.
absl::Status ForWorker(const absl::Status& status, DiskFault* fault = nullptr) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
      if (fault != nullptr) fault->Note(status);
      return absl::UnavailableError(
          absl::StrCat("the server's disk fails: ", status.message(), "; try again"));
    case absl::StatusCode::kUnavailable:
      if (fault != nullptr) fault->Note(status);
      return status;
    default:
      return status;
  }
}

}  // namespace

Artifacts::Artifacts(Storage& storage, ArtifactStore& store, const DiskReserve& reserve,
                     const LeaseIds& lease_ids, Usage& usage, int64_t max_bytes,
                     int64_t max_data_bytes, std::string uploads)
    : storage_(storage),
      store_(store),
      reserve_(reserve),
      lease_ids_(lease_ids),
      usage_(usage),
      max_bytes_(max_bytes),
      max_data_bytes_(max_data_bytes),
      uploads_file_(std::move(uploads)) {
  platform::DeleteTemporaryFilesOf(uploads_file_).IgnoreError();
  // Without the file, nobody has uploaded anything.
  const std::string text = platform::ReadFile(uploads_file_).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t time = 0;
    if (!absl::SimpleAtoi(parts.first, &time)) continue;
    uploads_[std::string(parts.second)] = absl::FromUnixNanos(time);
  }
}

absl::StatusOr<TrialPath> Artifacts::CheckLease(absl::string_view name, absl::string_view lease_id,
                                                int64_t token, absl::string_view caller) {
  RETURN_IF_ERROR(lease_ids_.Check(lease_id, token, caller));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(*reader, name));
  // Fencing: of all leases that a trial ever had, only the newest may use its artifacts, and only
  // while the trial runs.
  if (trial.token != token || trial.state != v1::RUNNING) {
    return absl::PermissionDeniedError(absl::StrCat("lease ", token, " is not the newest of ", name,
                                                    ", which is ", v1::TrialState_Name(trial.state),
                                                    ": ", trial.reason));
  }
  return TrialPath{.experiment = trial.experiment_id, .trial = trial.id};
}

class Artifacts::CheckedWriter : public ArtifactWriter {
 public:
  CheckedWriter(Artifacts& artifacts, v1::UploadArtifactRequest::Header header, std::string caller,
                std::unique_ptr<ArtifactStore::Writer> writer)
      : artifacts_(artifacts),
        header_(std::move(header)),
        caller_(std::move(caller)),
        writer_(std::move(writer)) {}

  absl::Status Append(absl::string_view data) override {
    RETURN_IF_ERROR(ForWorker(artifacts_.reserve_.room()));
    return ForWorker(writer_->Append(data), &artifacts_.fault_);
  }

  absl::Status Finish() override {
    // The lease may have ended during the upload.
    ASSIGN_OR_RETURN(const TrialPath path,
                     artifacts_.CheckLease(header_.trial(), header_.lease_id(),
                                           header_.fencing_token(), caller_));
    const absl::Status written = writer_->Finish();
    if (written.ok()) artifacts_.fault_.Note(written);
    return ForWorker(written, &artifacts_.fault_);
  }

 private:
  Artifacts& artifacts_;
  const v1::UploadArtifactRequest::Header header_;
  const std::string caller_;
  const std::unique_ptr<ArtifactStore::Writer> writer_;
};

absl::Status Artifacts::CheckSize(int64_t size_bytes) const {
  if (size_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("size_bytes: got ", size_bytes, ", accepted is 1 or more"));
  }
  if (size_bytes > max_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("size_bytes: got ", size_bytes, ", this server accepts up to ", max_bytes_));
  }
  if (size_bytes > store_.max_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("size_bytes: got ", size_bytes, ", ", store_.elsewhere(), " takes up to ",
                     store_.max_bytes(),
                     " in one request; keep larger checkpoints in a directory: start the "
                     "server with --artifacts DIR"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> Artifacts::Write(
    const v1::UploadArtifactRequest::Header& header, std::string caller) {
  RETURN_IF_ERROR(CheckSize(header.size_bytes()));
  ASSIGN_OR_RETURN(const TrialPath path,
                   CheckLease(header.trial(), header.lease_id(), header.fencing_token(), caller));
  RETURN_IF_ERROR(ForWorker(reserve_.room()));
  auto writer =
      store_.Write({.experiment = path.experiment, .trial = path.trial, .sha256 = header.sha256()},
                   header.size_bytes());
  if (!writer.ok()) return ForWorker(writer.status(), &fault_);
  return std::make_unique<CheckedWriter>(*this, header, std::move(caller), *std::move(writer));
}

class Artifacts::DataWriter : public ArtifactWriter {
 public:
  DataWriter(Artifacts& artifacts, std::unique_ptr<ArtifactStore::Writer> writer)
      : artifacts_(artifacts),
        writer_(std::move(writer)),
        lines_(tasks::examples::kMostLineBytes,
               [this](int64_t number, absl::string_view line, bool too_long) {
                 if (!wrong_.ok()) return;
                 const absl::Status status = too_long ? absl::InvalidArgumentError("is too long")
                                                      : tasks::examples::ParseLine(line, line_);
                 if (status.ok()) return;
                 wrong_ = absl::InvalidArgumentError(
                     absl::StrCat("data: line ", number, ": ", status.message()));
               }) {}

  absl::Status Append(absl::string_view data) override {
    if (bytes_ == 0) is_network_ = absl::StartsWith(data, models::kPythonArchiveStart);
    if (!is_network_) lines_.Add(data);
    RETURN_IF_ERROR(wrong_);
    RETURN_IF_ERROR(ForWorker(artifacts_.reserve_.room()));
    bytes_ += static_cast<int64_t>(data.size());
    return ForWorker(writer_->Append(data));
  }

  absl::Status Finish() override {
    if (!is_network_) lines_.End();
    RETURN_IF_ERROR(wrong_);
    if (is_network_ && bytes_ > models::kMostPythonArchive) {
      return absl::InvalidArgumentError(absl::StrCat("data: the archive of a network has ", bytes_,
                                                     " bytes, expected at most ",
                                                     models::kMostPythonArchive));
    }
    RETURN_IF_ERROR(ForWorker(writer_->Finish()));
    ++artifacts_.stored_files_;
    artifacts_.stored_file_bytes_ += bytes_;
    return absl::OkStatus();
  }

 private:
  Artifacts& artifacts_;
  const std::unique_ptr<ArtifactStore::Writer> writer_;
  int64_t bytes_ = 0;
  // True for the archive of a user's network, which only workers read.
  bool is_network_ = false;
  tasks::examples::Line line_;
  absl::Status wrong_;
  tasks::examples::Lines lines_;
};

absl::Status Artifacts::TakeUpload(const std::string& principal, int64_t bytes) {
  const int64_t most = kUploadsPerHour * max_data_bytes_;
  // Small files cost as well: each is checked and deleted individually.
  bytes = std::max(bytes, max_data_bytes_ / kCountedParts);
  const absl::Duration cost =
      absl::Hours(1) * (static_cast<double>(bytes) / static_cast<double>(most));
  const platform::MutexLock lock(mutex_);
  const absl::Time now = absl::Now();
  std::erase_if(uploads_, [now](const auto& upload) { return upload.second <= now; });
  absl::Time& counted_until = uploads_.try_emplace(principal, now).first->second;
  // The clock may have gone back.
  counted_until = std::min(counted_until, now + absl::Hours(1));
  const absl::Duration wait = counted_until + cost - (now + absl::Hours(1));
  if (wait <= absl::ZeroDuration()) {
    counted_until += cost;
    std::string text;
    for (const auto& [name, time] : uploads_) {
      absl::StrAppend(&text, absl::ToUnixNanos(time), " ", name, "\n");
    }
    return ForWorker(platform::WriteFileAtomically(uploads_file_, text));
  }
  return rpc::ExhaustedFor(
      wait, absl::StrCat(principal, " uploads more than ", most, " bytes or ",
                         kUploadsPerHour * kCountedParts,
                         " files of examples in an hour; try again in ", absl::FormatDuration(wait),
                         ", or have the server's --max_data_bytes raised: the limit is ",
                         kUploadsPerHour, " times that"));
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> Artifacts::WriteData(
    const v1::UploadDataRequest::Header& header, const std::string& principal) {
  if (header.size_bytes() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("size_bytes: got ", header.size_bytes(), ", accepted is 1 or more"));
  }
  if (header.size_bytes() > max_data_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("size_bytes: got ", header.size_bytes(),
                                                     ", this server accepts files of up to ",
                                                     max_data_bytes_, " (--max_data_bytes)"));
  }
  RETURN_IF_ERROR(ForWorker(reserve_.room()));
  RETURN_IF_ERROR(usage_.CheckBytes(principal, header.size_bytes()));
  RETURN_IF_ERROR(TakeUpload(principal, header.size_bytes()));
  auto writer = store_.Write({.experiment = std::string(kUploads),
                              .trial = std::string(kDataFiles),
                              .sha256 = header.sha256()},
                             header.size_bytes());
  if (!writer.ok()) return ForWorker(writer.status());
  return std::make_unique<DataWriter>(*this, *std::move(writer));
}

absl::StatusOr<std::unique_ptr<ArtifactStore::Reader>> Artifacts::Open(
    const v1::DownloadArtifactRequest& request, absl::string_view caller) {
  ASSIGN_OR_RETURN(const TrialPath path, CheckLease(request.trial(), request.lease_id(),
                                                    request.fencing_token(), caller));
  // The worker names a file by its hash alone: a checkpoint of the trial, or else a file of
  // examples of its experiment.
  ArtifactId id = {.experiment = path.experiment, .trial = path.trial, .sha256 = request.sha256()};
  absl::Status status = store_.Verify(id);
  if (absl::IsNotFound(status)) {
    id.trial = std::string(kDataFiles);
    if (const absl::Status data = store_.Verify(id); !absl::IsNotFound(data)) status = data;
  }
  if (!status.ok()) return ForWorker(status);
  auto reader = store_.Open(id);
  if (!reader.ok()) return ForWorker(reader.status());
  return reader;
}

absl::StatusOr<v1::SignTransferResponse> Artifacts::SignTransfer(
    const v1::SignTransferRequest& request, absl::string_view caller) {
  const auto check_lease = [&] {
    return CheckLease(request.trial(), request.lease_id(), request.fencing_token(), caller);
  };
  ASSIGN_OR_RETURN(const TrialPath path, check_lease());
  const ArtifactId id = {
      .experiment = path.experiment, .trial = path.trial, .sha256 = request.sha256()};
  v1::SignTransferResponse response;
  SignedTransfer transfer;
  if (request.direction() == v1::SignTransferRequest::GET) {
    ASSIGN_OR_RETURN(transfer, store_.SignGet(id), ForWorker(_));
  } else {
    RETURN_IF_ERROR(CheckSize(request.size_bytes()));
    ASSIGN_OR_RETURN(std::optional<SignedTransfer> put, store_.SignPut(id, request.size_bytes()),
                     ForWorker(_));
    if (!put.has_value()) {
      // The lease may have ended while the store was asked.
      RETURN_IF_ERROR(check_lease().status());
      response.set_stored(true);
      return response;
    }
    transfer = *std::move(put);
  }
  response.set_url(std::move(transfer.url));
  for (auto& [name, value] : transfer.headers) (*response.mutable_headers())[name] = value;
  return response;
}

absl::StatusOr<OpenedModel> Artifacts::OpenModel(absl::string_view trial_name, bool is_network) {
  std::string missing;
  while (true) {
    ASSIGN_OR_RETURN(StoredModel model, FindModel(trial_name, is_network));
    absl::Status status = store_.Verify(model.artifact, model.checkpoint.size_bytes());
    if (status.ok()) {
      auto bytes = store_.Open(model.artifact);
      if (bytes.ok()) {
        return OpenedModel{std::move(model), *std::move(bytes)};
      }
      status = bytes.status();
    }
    if (!absl::IsNotFound(status)) return ForWorker(status);
    // A newer checkpoint may have replaced this one since it was looked up. Try again once.
    if (missing == model.checkpoint.sha256()) {
      return absl::DataLossError(absl::StrCat("the stored ", is_network ? "network" : "model",
                                              " of ", trial_name, " is gone: ", status.message()));
    }
    missing = model.checkpoint.sha256();
  }
}

absl::StatusOr<StoredModel> Artifacts::FindModel(absl::string_view trial_name, bool is_network) {
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(*reader, trial_name));
  if (is_network) {
    ASSIGN_OR_RETURN(auto shared, SharedSpecificationOf(*reader, trial.pack));
    v1::ExperimentSpecification network;
    network.add_networks()->Swap(shared.mutable_network());
    const auto files = specification::DataFilesOf(network);
    if (files.empty()) {
      return absl::NotFoundError(absl::StrCat("the network of ", trial_name,
                                              " has no files: it is the built-in \"",
                                              network.networks(0).name(), "\""));
    }
    StoredModel model;
    model.artifact = {.experiment = trial.experiment_id,
                      .trial = std::string(kDataFiles),
                      .sha256 = files[0].sha256};
    model.checkpoint.set_sha256(files[0].sha256);
    model.checkpoint.set_size_bytes(files[0].bytes);
    return model;
  }
  ASSIGN_OR_RETURN(std::optional<StoredModel> model, FindStoredModel(*reader, trial));
  if (model.has_value()) return *std::move(model);
  return absl::NotFoundError(absl::StrCat(
      trial_name, " has no stored model: it is ", v1::TrialState_Name(trial.state),
      HasEnded(trial.state) ? " and stored none, its specification keeps nothing (`keep`), or its "
                              "model was deleted after the retention"
                            : " and has stored no checkpoint yet"));
}

}  // namespace lengthwise::server
