#include "server/storage/s3_artifact_store.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "platform/failpoint.h"
#include "platform/files.h"
#include "platform/http_client.h"
#include "platform/log.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/storage/s3_presign.h"
#include "server/storage/shared_store.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kProbe = "lengthwise_probe";
constexpr int64_t kReadBytes = 1 << 20;

template <typename... Why>
absl::Status Refuse(const S3Client& client, const Why&... why) {
  return absl::FailedPreconditionError(absl::StrCat("--artifacts ", client.Url(), ": ", why...));
}

// "<experiment>/<trial>/<sha256>.safetensors".
absl::StatusOr<std::string> KeyOf(const ArtifactId& id) {
  ASSIGN_OR_RETURN(const std::string path, ArtifactPath("", id));
  return path.substr(1);
}

// "<experiment>/", and "<experiment>/<trial>/".
absl::StatusOr<std::string> PrefixOf(absl::string_view experiment,
                                     std::optional<absl::string_view> trial = std::nullopt) {
  ASSIGN_OR_RETURN(const std::string path, ArtifactDirectory("", experiment, trial));
  return absl::StrCat(path.substr(1), "/");
}

bool IsCheckpoint(absl::string_view key) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  return parts.size() == 3 && absl::EndsWith(key, ".safetensors") && IsArtifactFile(parts[2]);
}

absl::Status DamageOf(absl::string_view key) {
  return absl::DataLossError(absl::StrCat(key, " is damaged: its SHA-256 does not match"));
}

// Refuses a store on which "stored" does not mean "these bytes, for good".
absl::Status Probe(S3Client& client) {
  const std::string key(kProbe);
  const std::string right = platform::Sha256Hex("right");
  RETURN_IF_ERROR(client.Delete(key));
  const absl::Status wrong = client.PutOnce(key, "wrong", right);
  if (wrong.ok()) {
    client.Delete(key).IgnoreError();
    return Refuse(client,
                  "the store took bytes that do not have the checksum of x-amz-checksum-sha256; it "
                  "cannot keep checkpoints safely. Choose another store");
  }
  if (!absl::IsDataLoss(wrong)) return wrong;
  const absl::Status first = client.PutOnce(key, "right", right);
  if (!first.ok()) {
    return absl::UnavailableError(
        absl::StrCat("--artifacts ", client.Url(), ": cannot store an object: ", first.message()));
  }
  const absl::Status second = client.PutOnce(key, "other", platform::Sha256Hex("other"));
  RETURN_IF_ERROR(client.Delete(key));
  if (second.ok()) {
    return Refuse(client,
                  "the store replaced an object although the request had If-None-Match: *; it "
                  "cannot keep checkpoints safely. Choose another store");
  }
  return absl::IsAlreadyExists(second) ? absl::OkStatus() : second;
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Client>> OpenS3(const std::string& url, const S3Options& options) {
  S3Bucket bucket;
  if (const absl::Status parsed = ParseS3Url(url, bucket); !parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--artifacts: ", parsed.message()));
  }
  if (options.credentials.access_key_id.empty() || options.credentials.secret_access_key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--artifacts ", url,
                     " needs the environment variables AWS_ACCESS_KEY_ID and "
                     "AWS_SECRET_ACCESS_KEY"));
  }
  bucket.region = options.region;
  bucket.endpoint = options.endpoint.empty()
                        ? absl::StrCat("https://s3.", options.region, ".amazonaws.com")
                        : options.endpoint;
  const S3Request any = {.method = "HEAD", .key = ""};
  const auto signable = PresignS3(bucket, options.credentials, any, absl::Minutes(1), absl::Now());
  if (!signable.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--s3_endpoint: ", signable.status().message()));
  }
  ASSIGN_OR_RETURN(auto http, platform::HttpClient::Create());
  return std::make_unique<S3Client>(std::move(bucket), options.credentials, std::move(http));
}

CheckpointPlace CheckpointsInS3(std::shared_ptr<S3Client> client) {
  const std::string url = client->Url();
  // Listed when it is first asked: a request for each checkpoint would take hours for many trials.
  auto sizes = std::make_shared<std::optional<std::map<std::string, int64_t>>>();
  return {.name = url,
          .find = [client = std::move(client), sizes = std::move(sizes)](
                      const ArtifactId& id, int64_t size_bytes) -> absl::Status {
            ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
            if (!sizes->has_value()) {
              std::map<std::string, int64_t> listed;
              RETURN_IF_ERROR(client->List(
                  "", [&](const S3Object& object) { listed[object.key] = object.size; }));
              *sizes = std::move(listed);
            }
            S3Object object;
            if (const auto known = (*sizes)->find(key); known != (*sizes)->end()) {
              object.size = known->second;
            } else {  // some stores list an object late
              ASSIGN_OR_RETURN(object, client->Head(key));
            }
            if (object.size == size_bytes) return absl::OkStatus();
            return absl::DataLossError(absl::StrCat(key, " has ", object.size, " bytes"));
          }};
}

absl::StatusOr<std::unique_ptr<S3ArtifactStore>> S3ArtifactStore::Open(
    const Options& options, std::unique_ptr<S3Client> client,
    std::unique_ptr<ArtifactStore> files) {
  // Before anything is written: the bucket may be another's.
  Objects objects;
  std::string stranger;
  RETURN_IF_ERROR(client->List("", [&](const S3Object& object) {
    if (IsCheckpoint(object.key)) {
      objects[object.key] = {.size = object.size, .etag = object.etag};
    } else if (object.key != kStoreMark && object.key != kProbe) {
      stranger = object.key;
    }
  }));
  const std::string mark_key(kStoreMark);
  std::optional<std::string> old_mark;
  if (auto text = client->Read(mark_key, 0, kReadBytes); text.ok()) {
    old_mark = *std::move(text);
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  if (!old_mark.has_value() && !options.take_over) {
    if (options.has_checkpoints) {
      return Refuse(*client, "the mark ", kStoreMark, " is missing, but the database in ",
                    options.data_dir,
                    " names checkpoints; choose their bucket and prefix, or see "
                    "\"Move checkpoints\" in docs/checkpoint_stores.md");
    }
    if (!objects.empty()) stranger = objects.begin()->first;
    if (!stranger.empty()) {
      return Refuse(*client, "it holds other objects (", stranger,
                    "); choose another prefix or an empty bucket");
    }
  }
  RETURN_IF_ERROR(Probe(*client));
  ASSIGN_OR_RETURN(std::string mark,
                   NextMark(client->Url(), options.data_dir, old_mark, options.take_over));
  LENGTHWISE_FAILPOINT("object.mark.before");
  RETURN_IF_ERROR(client->Replace(mark_key, mark));
  LENGTHWISE_FAILPOINT("object.mark.after");
  std::unique_ptr<S3ArtifactStore> store(
      new S3ArtifactStore(options, std::move(client), std::move(files), std::move(mark)));
  {
    platform::MutexLock lock(store->mutex_);
    store->objects_ = std::move(objects);
  }
  return store;
}

absl::Status S3ArtifactStore::CheckMark() const {
  const absl::StatusOr<std::string> mark = client_->Read(std::string(kStoreMark), 0, kReadBytes);
  if (mark.ok() && *mark == mark_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the checkpoints in ", client_->Url(), " cannot be used now: ",
                   mark.ok() ? "its mark belongs to another server, or to a later start"
                             : mark.status().message()));
}

absl::StatusOr<S3Object> S3ArtifactStore::Head(const std::string& key) const {
  absl::StatusOr<S3Object> object = client_->Head(key);
  if (!IsLost(object.status())) return object;
  // Some stores answer 404 for a missing bucket, too.
  RETURN_IF_ERROR(CheckMark());
  if (absl::IsNotFound(object.status())) Forget(key);
  return object;
}

absl::Status S3ArtifactStore::AbsenceOf(const std::string& key) const {
  return absl::NotFoundError(absl::StrCat(client_->Url(), " has no object ", key));
}

absl::Status S3ArtifactStore::CheckMarkOnceASecond() {
  const absl::Time now = absl::Now();
  {
    platform::MutexLock lock(mutex_);
    if (mark_seen_ <= now && now - mark_seen_ < absl::Seconds(1)) return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckMark());
  platform::MutexLock lock(mutex_);
  mark_seen_ = now;
  return absl::OkStatus();
}

std::optional<S3ArtifactStore::Known> S3ArtifactStore::FindKnown(const std::string& key) const {
  platform::MutexLock lock(mutex_);
  const auto known = objects_.find(key);
  return known == objects_.end() ? std::nullopt : std::optional<Known>(known->second);
}

void S3ArtifactStore::Forget(const std::string& key) const {
  platform::MutexLock lock(mutex_);
  objects_.erase(key);
}

void S3ArtifactStore::Remember(const S3Object& object, bool is_verified) {
  platform::MutexLock lock(mutex_);
  objects_[object.key] = {.size = object.size, .etag = object.etag, .is_verified = is_verified};
  signed_.erase(object.key);
}

void S3ArtifactStore::Update(const S3Object& object, bool is_verified, bool is_damaged) const {
  platform::MutexLock lock(mutex_);
  const auto known = objects_.find(object.key);
  if (known == objects_.end()) return;
  known->second = {.size = object.size,
                   .etag = object.etag,
                   .is_verified = is_verified,
                   .is_damaged = is_damaged};
}

absl::StatusOr<bool> S3ArtifactStore::HasChecksum(const S3Object& object,
                                                  const std::string& sha256) const {
  platform::Sha256 hash;
  for (int64_t offset = 0; offset < object.size; offset += kReadBytes) {
    const absl::StatusOr<std::string> chunk = client_->Read(object.key, offset, kReadBytes);
    if (IsLost(chunk.status())) {
      RETURN_IF_ERROR(CheckMark());
    }
    RETURN_IF_ERROR(chunk.status());
    hash.Update(*chunk);
  }
  return hash.Finish() == sha256;
}

absl::StatusOr<bool> S3ArtifactStore::IsStored(const std::string& key, const std::string& sha256,
                                               int64_t size_bytes) {
  const std::optional<Known> known = FindKnown(key);
  const absl::StatusOr<S3Object> object = client_->Head(key);
  if (absl::IsNotFound(object.status())) {
    // Some stores answer 404 for a missing bucket, too. What was never known is not missed.
    if (known.has_value()) {
      RETURN_IF_ERROR(CheckMark());
    }
    Forget(key);
    return false;
  }
  RETURN_IF_ERROR(object.status());
  const bool is_known = known.has_value() && known->etag == object->etag;
  bool is_whole = !(is_known && known->is_damaged);
  // The store compared the bytes with the checksum when it took them. An object without it was
  // brought by another program.
  const bool is_vouched_for = object->sha256 == sha256 || (is_known && known->is_verified);
  if (is_whole && (!is_vouched_for || object->size != size_bytes)) {
    ASSIGN_OR_RETURN(is_whole, HasChecksum(*object, sha256));
  }
  if (is_whole && object->size != size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("size_bytes: got ", size_bytes, ", but ", key, " has ", object->size));
  }
  if (is_whole) {
    Remember(*object, /*is_verified=*/true);
    return true;
  }
  RETURN_IF_ERROR(CheckMark());
  platform::LogWarning("deletes ", key, ", which is damaged, to store it again");
  RETURN_IF_ERROR(client_->Delete(key));
  Forget(key);
  return false;
}

// Keeps the bytes in an unnamed file until they are complete.
class S3ArtifactStore::RelayWriter : public ArtifactStore::Writer {
 public:
  RelayWriter(S3ArtifactStore& store, std::string key, std::string sha256,
              std::unique_ptr<platform::TemporaryFile> file, int64_t size_bytes)
      : store_(store),
        key_(std::move(key)),
        sha256_(std::move(sha256)),
        file_(std::move(file)),
        size_bytes_(size_bytes) {}

  absl::Status Append(absl::string_view data) override {
    if (received_ + static_cast<int64_t>(data.size()) > size_bytes_) return WrongSize();
    hash_.Update(data);
    RETURN_IF_ERROR(file_->Write(received_, data));
    received_ += static_cast<int64_t>(data.size());
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (received_ != size_bytes_) return WrongSize();
    if (const std::string sha256 = hash_.Finish(); sha256 != sha256_) {
      return absl::DataLossError(absl::StrCat("the artifact's bytes have SHA-256 ", sha256,
                                              ", but the header announced ", sha256_,
                                              "; send it again"));
    }
    ASSIGN_OR_RETURN(const auto lock, store_.locks_.Share(key_));
    ASSIGN_OR_RETURN(const bool was_stored, store_.IsStored(key_, sha256_, size_bytes_));
    if (was_stored) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::string_view bytes, file_->Map(size_bytes_));
    const absl::Status stored = store_.client_->PutOnce(key_, bytes, sha256_);
    // ALREADY_EXISTS: an earlier try stored it, although its answer was lost.
    if (!stored.ok() && !absl::IsAlreadyExists(stored)) return stored;
    ASSIGN_OR_RETURN(const bool is_stored, store_.IsStored(key_, sha256_, size_bytes_));
    if (is_stored) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(key_, " is not in the store that took it"));
  }

 private:
  absl::Status WrongSize() const {
    return absl::DataLossError(absl::StrCat("the artifact's bytes are not the ", size_bytes_,
                                            " that the header announced; send it again"));
  }

  S3ArtifactStore& store_;
  const std::string key_;
  const std::string sha256_;
  const std::unique_ptr<platform::TemporaryFile> file_;
  const int64_t size_bytes_;
  int64_t received_ = 0;
  platform::Sha256 hash_;
};

absl::StatusOr<std::unique_ptr<ArtifactStore::Writer>> S3ArtifactStore::Write(const ArtifactId& id,
                                                                              int64_t size_bytes) {
  if (id.trial == kDataFiles) return files_->Write(id, size_bytes);
  ASSIGN_OR_RETURN(std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(auto file, platform::TemporaryFile::Create(options_.data_dir));
  return std::make_unique<RelayWriter>(*this, std::move(key), id.sha256, std::move(file),
                                       size_bytes);
}

absl::StatusOr<std::optional<SignedTransfer>> S3ArtifactStore::SignPut(const ArtifactId& id,
                                                                       int64_t size_bytes) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(const auto object_lock, locks_.Share(key));
  ASSIGN_OR_RETURN(const bool is_stored, IsStored(key, id.sha256, size_bytes));
  if (is_stored) {
    LENGTHWISE_FAILPOINT("object.stored.after");
    return std::nullopt;
  }
  {
    platform::MutexLock lock(mutex_);
    signed_.insert(key);
  }
  ASSIGN_OR_RETURN(SignedTransfer put, client_->Sign(S3PutOnce(key, id.sha256), options_.url_life));
  return put;
}

absl::StatusOr<SignedTransfer> S3ArtifactStore::SignGet(const ArtifactId& id) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(const S3Object object, Head(key));
  const std::optional<Known> known = FindKnown(key);
  if (known.has_value() && known->etag == object.etag && known->is_damaged) {
    return DamageOf(key);
  }
  return client_->Sign({.method = "GET", .key = key}, options_.url_life);
}

absl::Status S3ArtifactStore::Find(const ArtifactId& id) {
  if (id.trial == kDataFiles) return files_->Find(id);
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(const auto object_lock, locks_.Share(key));
  ASSIGN_OR_RETURN(const S3Object object, Head(key));
  Remember(object, /*is_verified=*/false);
  return absl::OkStatus();
}

absl::Status S3ArtifactStore::Verify(const ArtifactId& id, int64_t size_bytes) {
  if (id.trial == kDataFiles) return files_->Verify(id, size_bytes);
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(const S3Object object, Head(key));
  if (size_bytes > 0 && object.size != size_bytes) {
    Update(object, /*is_verified=*/false, /*is_damaged=*/false);
    return absl::DataLossError(
        absl::StrCat(key, " has ", object.size, " bytes instead of ", size_bytes));
  }
  const std::optional<Known> known = FindKnown(key);
  if (known.has_value() && known->etag == object.etag) {
    if (known->is_damaged) return DamageOf(key);
    if (known->is_verified) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool is_whole, HasChecksum(object, id.sha256));
  Update(object, /*is_verified=*/is_whole, /*is_damaged=*/!is_whole);
  return is_whole ? absl::OkStatus() : DamageOf(key);
}

absl::Status S3ArtifactStore::VerifyQuickly(const ArtifactId& id, int64_t size_bytes,
                                            int64_t most_bytes) {
  if (id.trial == kDataFiles) return files_->VerifyQuickly(id, size_bytes, most_bytes);
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  platform::MutexLock lock(mutex_);
  const auto known = objects_.find(key);
  if (known == objects_.end()) return AbsenceOf(key);
  if (known->second.is_damaged) return DamageOf(key);
  if (size_bytes > 0 && known->second.size != size_bytes) {
    return absl::DataLossError(
        absl::StrCat(key, " has ", known->second.size, " bytes instead of ", size_bytes));
  }
  return absl::OkStatus();
}

absl::Status S3ArtifactStore::Copy(const ArtifactId& from, const std::string& experiment,
                                   const std::string& trial) {
  if (from.trial == kDataFiles) return files_->Copy(from, experiment, trial);
  const ArtifactId to = {.experiment = experiment, .trial = trial, .sha256 = from.sha256};
  ASSIGN_OR_RETURN(const std::string old_key, KeyOf(from));
  ASSIGN_OR_RETURN(const std::string key, KeyOf(to));
  const std::optional<Known> known = FindKnown(old_key);
  if (!known.has_value()) return AbsenceOf(old_key);
  if (known->is_damaged) return DamageOf(old_key);
  ASSIGN_OR_RETURN(const auto object_lock, locks_.Share(key));
  {
    // The store may copy after the wait is over. Whoever gives the trial up deletes the copy.
    platform::MutexLock lock(mutex_);
    signed_.insert(key);
  }
  LENGTHWISE_FAILPOINT_OR_RETURN("object.copy.before");
  const absl::StatusOr<std::string> etag = client_->Copy(old_key, key, options_.copy_timeout);
  if (IsLost(etag.status())) {
    RETURN_IF_ERROR(CheckMark());
  }
  RETURN_IF_ERROR(etag.status());
  Remember({.key = key, .size = known->size, .etag = *etag}, /*is_verified=*/false);
  return absl::OkStatus();
}

// Asks for a range at a time, so that a slow reader holds no connection.
class S3ArtifactStore::RangeReader : public ArtifactStore::Reader {
 public:
  RangeReader(const S3ArtifactStore& store, S3Object object, std::string sha256)
      : store_(store), object_(std::move(object)), sha256_(std::move(sha256)) {}

  absl::StatusOr<std::string> Next() override {
    if (offset_ >= object_.size) return "";
    ASSIGN_OR_RETURN(std::string chunk, store_.client_->Read(object_.key, offset_, kReadBytes));
    if (chunk.empty()) {
      return absl::DataLossError(absl::StrCat(object_.key, " became shorter while it was read"));
    }
    hash_.Update(chunk);
    offset_ += static_cast<int64_t>(chunk.size());
    if (offset_ >= object_.size && hash_.Finish() != sha256_) {
      store_.Update(object_, /*is_verified=*/false, /*is_damaged=*/true);
      return DamageOf(object_.key);
    }
    return chunk;
  }

 private:
  const S3ArtifactStore& store_;
  const S3Object object_;
  const std::string sha256_;
  int64_t offset_ = 0;
  platform::Sha256 hash_;
};

absl::StatusOr<std::unique_ptr<ArtifactStore::Reader>> S3ArtifactStore::Open(
    const ArtifactId& id) const {
  if (id.trial == kDataFiles) return files_->Open(id);
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(S3Object object, Head(key));
  return std::make_unique<RangeReader>(*this, std::move(object), id.sha256);
}

absl::StatusOr<std::vector<std::string>> S3ArtifactStore::ListExperiments() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> local, files_->ListExperiments());
  std::set<std::string> names(local.begin(), local.end());
  platform::MutexLock lock(mutex_);
  for (const auto& [key, known] : objects_) names.insert(key.substr(0, key.find('/')));
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<std::vector<std::string>> S3ArtifactStore::List(const std::string& experiment,
                                                               const std::string& trial) const {
  if (trial == kDataFiles) return files_->List(experiment, trial);
  std::vector<std::string> sha256s;
  const absl::StatusOr<std::string> prefix = PrefixOf(experiment, trial);
  if (!prefix.ok()) return sha256s;
  for (const std::string& key : KeysBelow(*prefix)) {
    sha256s.push_back(key.substr(prefix->size(), 64));
  }
  return sha256s;
}

absl::StatusOr<ArtifactUsage> S3ArtifactStore::Usage(const std::string& experiment) const {
  ASSIGN_OR_RETURN(ArtifactUsage usage, files_->Usage(experiment));
  std::string prefix;
  if (!experiment.empty()) {
    ASSIGN_OR_RETURN(prefix, PrefixOf(experiment));
  }
  platform::MutexLock lock(mutex_);
  for (auto object = objects_.lower_bound(prefix);
       object != objects_.end() && absl::StartsWith(object->first, prefix); ++object) {
    usage.bytes += object->second.size;
    ++usage.artifacts;
  }
  return usage;
}

absl::Status S3ArtifactStore::Delete(const ArtifactId& id, const Decision& goes) {
  if (id.trial == kDataFiles) return files_->Delete(id, goes);
  ASSIGN_OR_RETURN(const std::string key, KeyOf(id));
  ASSIGN_OR_RETURN(const auto lock, locks_.Own(key));
  ASSIGN_OR_RETURN(const bool is_deleted, goes());
  return is_deleted ? DeleteObject(key) : absl::OkStatus();
}

absl::Status S3ArtifactStore::DeleteExperiment(const std::string& experiment,
                                               const Decision& goes) {
  ASSIGN_OR_RETURN(const auto lock, locks_.Own(experiment));
  RETURN_IF_ERROR(files_->DeleteExperiment(experiment, goes));
  ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(experiment));
  const std::vector<std::string> keys = KeysBelow(prefix);
  std::atomic<size_t> next = 0;
  const auto work = [&]() -> absl::Status {
    for (size_t i = next++; i < keys.size(); i = next++) {
      ASSIGN_OR_RETURN(const auto key_lock, locks_.Own(keys[i]));
      ASSIGN_OR_RETURN(const bool is_deleted, goes());
      if (!is_deleted) return absl::OkStatus();
      RETURN_IF_ERROR(DeleteObject(keys[i]));
    }
    return absl::OkStatus();
  };
  std::vector<std::future<absl::Status>> others;
  for (size_t i = 1; i < std::min(keys.size(), kDeleters); ++i) {
    others.push_back(std::async(std::launch::async, work));
  }
  absl::Status status = work();
  for (std::future<absl::Status>& other : others) status.Update(other.get());
  return status;
}

bool S3ArtifactStore::DeleteUnusedUploads(absl::Duration age) {
  return files_->DeleteUnusedUploads(age);
}

std::vector<std::string> S3ArtifactStore::KeysBelow(const std::string& prefix) const {
  std::vector<std::string> keys;
  platform::MutexLock lock(mutex_);
  for (auto object = objects_.lower_bound(prefix);
       object != objects_.end() && absl::StartsWith(object->first, prefix); ++object) {
    keys.push_back(object->first);
  }
  for (auto key = signed_.lower_bound(prefix);
       key != signed_.end() && absl::StartsWith(*key, prefix); ++key) {
    if (!objects_.contains(*key)) keys.push_back(*key);
  }
  return keys;
}

absl::Status S3ArtifactStore::DeleteObject(const std::string& key) {
  RETURN_IF_ERROR(CheckMarkOnceASecond());
  LENGTHWISE_FAILPOINT("object.delete.before");
  RETURN_IF_ERROR(client_->Delete(key));
  LENGTHWISE_FAILPOINT("object.delete.after");
  platform::MutexLock lock(mutex_);
  objects_.erase(key);
  signed_.erase(key);
  return absl::OkStatus();
}

}  // namespace lengthwise::server
