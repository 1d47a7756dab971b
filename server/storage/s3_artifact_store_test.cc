#include "server/storage/s3_artifact_store.h"

#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/files.h"
#include "platform/http_client.h"
#include "platform/sha256.h"
#include "server/storage/directory_artifact_store.h"
#include "server/storage/testing/s3_test_store.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBytes[] = "the bytes of a model";

absl::StatusOr<std::unique_ptr<S3ArtifactStore>> Open(const std::string& place, const S3Options& s3,
                                                      const S3ArtifactStore::Options& options) {
  absl::StatusOr<std::unique_ptr<S3Client>> client = OpenS3(place, s3);
  if (!client.ok()) return client.status();
  auto files = DirectoryArtifactStore::Open(options.data_dir + "/artifacts");
  if (!files.ok()) return files.status();
  return S3ArtifactStore::Open(options, *std::move(client), *std::move(files));
}

ArtifactId IdOf(const std::string& bytes, const std::string& trial = "trial") {
  return {.experiment = "sorting-1", .trial = trial, .sha256 = platform::Sha256Hex(bytes)};
}

absl::StatusOr<bool> NoLongerNeeded() { return true; }

bool Soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 400; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return false;
}

// On a real store.
class S3ArtifactStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<S3Options> s3 = S3TestStore();
    if (!s3.has_value()) GTEST_SKIP() << "no S3 store is given in LENGTHWISE_TEST_S3";
    s3_ = *s3;
    place_ = NewS3Place();
    Reopen();
  }

  void Reopen() {
    store_.reset();
    auto opened = Open(place_, s3_, {.data_dir = data_dir_});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  // Through the server, as workers of earlier releases do.
  absl::Status Relay(const ArtifactId& id, const std::string& bytes) {
    auto writer = store_->Write(id, static_cast<int64_t>(bytes.size()));
    if (!writer.ok()) return writer.status();
    if (absl::Status status = (*writer)->Append(bytes); !status.ok()) return status;
    return (*writer)->Finish();
  }

  // As workers do; returns the store's status.
  int Send(const SignedTransfer& put, const std::string& bytes) {
    const auto response =
        http_->Send({.method = "PUT", .url = put.url, .headers = put.headers, .body = bytes});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->status : 0;
  }

  std::string Read(const ArtifactId& id) {
    auto reader = store_->Open(id);
    if (!reader.ok()) return reader.status().ToString();
    std::string bytes;
    while (true) {
      auto chunk = (*reader)->Next();
      if (!chunk.ok()) return chunk.status().ToString();
      if (chunk->empty()) return bytes;
      bytes += *chunk;
    }
  }

  std::unique_ptr<S3Client> Client() { return OpenS3(place_, s3_).value(); }
  static std::string KeyOf(const ArtifactId& id) { return ArtifactPath("", id).value().substr(1); }

  S3Options s3_;
  std::string place_;
  const std::string data_dir_ = NewDataDir();
  std::unique_ptr<platform::HttpClient> http_ = platform::HttpClient::Create().value();
  std::unique_ptr<S3ArtifactStore> store_;
};

TEST_F(S3ArtifactStoreTest, StoresWhatWorkersSend) {
  const ArtifactId id = IdOf(kBytes);
  const auto put = store_->SignPut(id, sizeof(kBytes) - 1);
  ASSERT_TRUE(put.ok() && put->has_value()) << put.status();
  EXPECT_TRUE(absl::IsNotFound(store_->VerifyQuickly(id, 0, 0)));
  EXPECT_EQ(Send(**put, "others of same size!"), 400);
  EXPECT_EQ(Send(**put, kBytes), 200);
  EXPECT_EQ(Send(**put, kBytes), 412);
  const auto stored = store_->SignPut(id, sizeof(kBytes) - 1);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_FALSE(stored->has_value());
  EXPECT_TRUE(store_->VerifyQuickly(id, sizeof(kBytes) - 1, 0).ok());
  EXPECT_TRUE(absl::IsDataLoss(store_->VerifyQuickly(id, 7, 0)));

  const auto get = store_->SignGet(id);
  ASSERT_TRUE(get.ok()) << get.status();
  const auto read = http_->Send({.method = "GET", .url = get->url, .headers = get->headers});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->body, kBytes);
  EXPECT_TRUE(absl::IsNotFound(store_->SignGet(IdOf("nobody sent it")).status()));
}

TEST_F(S3ArtifactStoreTest, RelaysForEarlierWorkers) {
  const std::string bytes((3 << 20) + 17, 'm');
  EXPECT_TRUE(absl::IsDataLoss(Relay(IdOf("other"), bytes)));
  EXPECT_TRUE(absl::IsNotFound(store_->Verify(IdOf("other"))));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Relay(IdOf(bytes), bytes), absl::OkStatus());
  EXPECT_EQ(store_->Verify(IdOf(bytes), static_cast<int64_t>(bytes.size())), absl::OkStatus());
  EXPECT_EQ(Read(IdOf(bytes)), bytes);
}

TEST_F(S3ArtifactStoreTest, RestartKnowsAllObjects) {
  ASSERT_EQ(Relay(IdOf(kBytes), kBytes), absl::OkStatus());
  ASSERT_EQ(Relay(IdOf("newer"), "newer"), absl::OkStatus());
  Reopen();
  EXPECT_THAT(*store_->ListExperiments(), ElementsAre("sorting-1"));
  EXPECT_EQ(store_->List("sorting-1", "trial")->size(), 2u);
  EXPECT_EQ(store_->Usage("sorting-1")->bytes, static_cast<int64_t>(sizeof(kBytes) - 1 + 5));
  EXPECT_TRUE(store_->VerifyQuickly(IdOf(kBytes), 0, 0).ok());
  EXPECT_TRUE(store_->Verify(IdOf(kBytes)).ok());
}

TEST_F(S3ArtifactStoreTest, DeletesWhatDoesNotStay) {
  const auto client = Client();
  for (const char* bytes : {"a", "b", "c"}) ASSERT_EQ(Relay(IdOf(bytes), bytes), absl::OkStatus());
  ASSERT_EQ(Relay(IdOf("a", "trial-of-longer-name"), "a"), absl::OkStatus());
  // Signed and sent, but the worker never told the server.
  const auto orphan = store_->SignPut(IdOf("orphan"), 6);
  ASSERT_TRUE(orphan.ok() && orphan->has_value());
  EXPECT_EQ(Send(**orphan, "orphan"), 200);
  const auto listed = *store_->List("sorting-1", "trial");
  EXPECT_EQ(listed.size(), 4u) << "what a worker may have sent is listed as well";
  for (const char* bytes : {"a", "c", "orphan"}) {
    EXPECT_THAT(listed, testing::Contains(IdOf(bytes).sha256));
    EXPECT_EQ(store_->Delete(IdOf(bytes), NoLongerNeeded), absl::OkStatus());
    EXPECT_TRUE(absl::IsNotFound(client->Head(KeyOf(IdOf(bytes))).status())) << bytes;
  }
  EXPECT_EQ(store_->List("sorting-1", "trial")->size(), 1u);
  EXPECT_TRUE(store_->Verify(IdOf("b")).ok());
  EXPECT_TRUE(store_->Verify(IdOf("a", "trial-of-longer-name")).ok());

  ASSERT_TRUE(store_->Copy(IdOf("b"), "sorting-2", "copy").ok());
  EXPECT_EQ(store_->DeleteExperiment("sorting-1", NoLongerNeeded), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(client->Head(KeyOf(IdOf("b"))).status()));
  ArtifactId copy = IdOf("b", "copy");
  copy.experiment = "sorting-2";
  EXPECT_TRUE(store_->Verify(copy).ok());
  EXPECT_EQ(Read(copy), "b");
}

TEST_F(S3ArtifactStoreTest, ArtifactStoredAgainIsNotDeleted) {
  ASSERT_EQ(Relay(IdOf(kBytes), kBytes), absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    auto deleted = std::async(std::launch::async,
                              [&] { return store_->Delete(IdOf(kBytes), NoLongerNeeded); });
    absl::Status status;
    // UNAVAILABLE while the deletion runs; a worker tries again.
    EXPECT_TRUE(Soon([&] { return (status = Relay(IdOf(kBytes), kBytes)).ok(); })) << status;
    // ABORTED if the artifact was being stored.
    const absl::Status end = deleted.get();
    EXPECT_TRUE(end.ok() || absl::IsAborted(end)) << end;
    EXPECT_EQ(Relay(IdOf(kBytes), kBytes), absl::OkStatus());
    EXPECT_TRUE(store_->VerifyQuickly(IdOf(kBytes), 0, 0).ok());
    EXPECT_EQ(Read(IdOf(kBytes)), kBytes);
  }
}

TEST_F(S3ArtifactStoreTest, DamagedObjectIsFound) {
  ASSERT_EQ(Relay(IdOf(kBytes), kBytes), absl::OkStatus());
  ASSERT_TRUE(Client()->Replace(KeyOf(IdOf(kBytes)), "others of same size!").ok());
  EXPECT_TRUE(store_->VerifyQuickly(IdOf(kBytes), 0, 0).ok());  // reads nothing
  EXPECT_TRUE(absl::IsDataLoss(store_->Verify(IdOf(kBytes))));
  EXPECT_TRUE(absl::IsDataLoss(store_->VerifyQuickly(IdOf(kBytes), 0, 0)));
  EXPECT_TRUE(absl::IsDataLoss(store_->SignGet(IdOf(kBytes)).status()));
  ASSERT_TRUE(Client()->Delete(KeyOf(IdOf(kBytes))).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Verify(IdOf(kBytes))));
  EXPECT_TRUE(absl::IsNotFound(store_->VerifyQuickly(IdOf(kBytes), 0, 0)));
}

// Passes connections on to the store, at a port that stays the same.
class Passage {
 public:
  Passage(const std::string& endpoint, const std::string& directory)
      : store_(endpoint.substr(endpoint.find("//") + 2)), port_file_(directory + "/passage") {
    Start();
  }

  void Start() {
    constexpr char kProgram[] = R"(
import os, socket, sys, threading
host, port = sys.argv[1].split(":")
def copy(a, b):
    try:
        while data := a.recv(1 << 16): b.sendall(data)
    except OSError: pass
    finally:
        for end in (a, b):
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[3])))
with open(sys.argv[2] + ".new", "w") as file: file.write(str(listener.getsockname()[1]))
os.rename(sys.argv[2] + ".new", sys.argv[2])
while True:
    client, _ = listener.accept()
    store = socket.create_connection((host, int(port)))
    for pair in ((client, store), (store, client)): threading.Thread(target=copy, args=pair, daemon=True).start()
)";
    std::remove(port_file_.c_str());
    auto started =
        platform::ChildProcess::Start({.arguments = {"/usr/bin/python3", "-c", kProgram, store_,
                                                     port_file_, absl::StrCat(port_)}});
    ASSERT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
    ASSERT_TRUE(Soon([&] {
      const auto text = platform::ReadFile(port_file_);
      return text.ok() && absl::SimpleAtoi(*text, &port_);
    }));
  }
  void Stop() { process_.reset(); }
  std::string endpoint() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  const std::string store_;
  const std::string port_file_;
  int port_ = 0;
  std::unique_ptr<platform::ChildProcess> process_;
};

TEST_F(S3ArtifactStoreTest, StoreThatIsAwayLosesNothing) {
  store_.reset();
  const auto direct = Client();
  Passage passage(s3_.endpoint, data_dir_);
  s3_.endpoint = passage.endpoint();
  Reopen();
  ASSERT_EQ(Relay(IdOf("kept"), "kept"), absl::OkStatus());
  ASSERT_EQ(Relay(IdOf("deleted"), "deleted"), absl::OkStatus());
  passage.Stop();
  EXPECT_TRUE(absl::IsUnavailable(store_->Verify(IdOf("kept"))));
  EXPECT_TRUE(absl::IsUnavailable(store_->SignGet(IdOf("kept")).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->SignPut(IdOf("new"), 3).status()));
  EXPECT_TRUE(absl::IsUnavailable(Relay(IdOf("new"), "new")));
  EXPECT_TRUE(absl::IsUnavailable(store_->Open(IdOf("kept")).status()));
  EXPECT_TRUE(store_->VerifyQuickly(IdOf("kept"), 4, 0).ok());  // quick, and nothing fell back
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(IdOf("deleted"), NoLongerNeeded)));
  EXPECT_TRUE(direct->Head(KeyOf(IdOf("deleted"))).ok());
  passage.Start();
  EXPECT_TRUE(store_->Verify(IdOf("kept")).ok());
  EXPECT_EQ(Relay(IdOf("new"), "new"), absl::OkStatus());
  EXPECT_EQ(store_->Delete(IdOf("deleted"), NoLongerNeeded), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(direct->Head(KeyOf(IdOf("deleted"))).status()));
}

TEST_F(S3ArtifactStoreTest, BelongsToOneDataDirectory) {
  ASSERT_EQ(Relay(IdOf(kBytes), kBytes), absl::OkStatus());
  S3ArtifactStore::Options other = {.data_dir = NewDataDir()};
  const absl::Status refused = Open(place_, s3_, other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(data_dir_.substr(data_dir_.rfind('/') + 1)));
  other.take_over = true;
  auto taken = Open(place_, s3_, other);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE((*taken)->VerifyQuickly(IdOf(kBytes), 0, 0).ok());
  // The first owner deletes nothing any more, and takes nothing for lost.
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(IdOf(kBytes), NoLongerNeeded)));
  EXPECT_TRUE(absl::IsUnavailable(store_->SignGet(IdOf("missing")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(place_, s3_, {.data_dir = data_dir_}).status()));
  EXPECT_TRUE((*taken)->Verify(IdOf(kBytes)).ok());
}

TEST_F(S3ArtifactStoreTest, RefusesPlacesThatAreNotItsOwn) {
  const std::string empty = NewS3Place();
  const absl::Status missing =
      Open(empty, s3_, {.data_dir = NewDataDir(), .has_checkpoints = true}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("names checkpoints"));
  ASSERT_TRUE(OpenS3(empty, s3_).value()->Replace("notes.txt", "of others").ok());
  const absl::Status others = Open(empty, s3_, {.data_dir = NewDataDir()}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(others)) << others;
  EXPECT_THAT(std::string(others.message()), HasSubstr("notes.txt"));
}

TEST_F(S3ArtifactStoreTest, WrongCredentialsLoseNothing) {
  S3Options wrong = s3_;
  wrong.credentials.secret_access_key = "wrong";
  const absl::Status refused = Open(place_, wrong, {.data_dir = data_dir_}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("AWS_SECRET_ACCESS_KEY"));
}

TEST(S3Settings, NameWhatIsWrong) {
  const S3Options whole = {.endpoint = "http://127.0.0.1:1",
                           .credentials = {.access_key_id = "key", .secret_access_key = "secret"}};
  EXPECT_THAT(OpenS3("s3://B", whole).status().ToString(), HasSubstr("--artifacts"));
  S3Options options = whole;
  options.endpoint = "127.0.0.1:1";
  EXPECT_THAT(OpenS3("s3://bucket", options).status().ToString(), HasSubstr("--s3_endpoint"));
  options = whole;
  options.credentials.secret_access_key.clear();
  EXPECT_THAT(OpenS3("s3://bucket", options).status().ToString(),
              HasSubstr("AWS_SECRET_ACCESS_KEY"));
  const absl::Status away = Open("s3://bucket", whole, {.data_dir = NewDataDir()}).status();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
}

// A store that keeps whatever it gets, as some do that know no x-amz-checksum-sha256.
TEST(S3Settings, StoreThatTakesWrongBytesIsRefused) {
  constexpr char kServer[] = R"(
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b""):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if "list-type" in self.path:
            return self.answer(200, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        self.answer(404)
    def do_PUT(self): self.answer(200)
    def do_DELETE(self): self.answer(204)
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
)";
  const std::string data_dir = NewDataDir();
  const std::string port_file = data_dir + "/port";
  auto server =
      platform::ChildProcess::Start({.arguments = {"/usr/bin/python3", "-c", kServer, port_file}});
  ASSERT_TRUE(server.ok()) << server.status();
  int port = 0;
  ASSERT_TRUE(Soon([&] {
    const auto text = platform::ReadFile(port_file);
    return text.ok() && absl::SimpleAtoi(*text, &port);
  }));
  const S3Options options = {
      .endpoint = absl::StrCat("http://127.0.0.1:", port),
      .credentials = {.access_key_id = "key", .secret_access_key = "secret"}};
  const absl::Status refused = Open("s3://bucket", options, {.data_dir = data_dir}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("checksum"));
}

}  // namespace
}  // namespace lengthwise::server
