#include "platform/http_client.h"

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/files.h"

namespace lengthwise::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Writes its port to the file argv[1]. PUT answers with the body's size and a header; GET /parts
// sends 3 MiB, GET /slow one byte and then nothing.
constexpr char kServer[] = R"(
import http.server, os, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Seen", self.headers.get("x-sent", "") + "/" + self.headers.get("expect", "none"))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def do_PUT(self):
        self.answer(200, str(len(self.rfile.read(int(self.headers["Content-Length"])))).encode())
    def do_DELETE(self): self.answer(204, b"")
    def do_HEAD(self): self.answer(200, b"twelve bytes")
    def do_GET(self):
        if self.path == "/parts": return self.answer(200, b"x" * (3 << 20))
        if self.path == "/large": return self.answer(200, b"x" * (9 << 20))
        if self.path.startswith("/slow"):
            self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
            self.wfile.write(b"x"); self.wfile.flush(); time.sleep(20); return
        self.answer(404, b"no such page")
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
)";

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string port_file = absl::StrCat(testing::TempDir(), "/port");
    auto server =
        ChildProcess::Start({.arguments = {"/usr/bin/python3", "-c", kServer, port_file}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    int port = 0;
    for (int i = 0; i < 200 && port == 0; ++i) {
      const auto text = ReadFile(port_file);
      if (!text.ok() || !absl::SimpleAtoi(*text, &port)) absl::SleepFor(absl::Milliseconds(50));
    }
    ASSERT_GT(port, 0);
    address_ = absl::StrCat("http://127.0.0.1:", port);
    auto client = HttpClient::Create();
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override { std::remove(absl::StrCat(testing::TempDir(), "/port").c_str()); }

  HttpRequest To(const std::string& method, const std::string& path) const {
    return {.method = method, .url = address_ + path};
  }

  std::unique_ptr<ChildProcess> server_;
  std::string address_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(HttpClientTest, SendsBodyAndHeaders) {
  const std::string body(5 << 20, 'b');
  HttpRequest request = To("PUT", "/object");
  request.headers = {{"x-sent", "word"}};
  request.body = body;
  for (int i = 0; i < 2; ++i) {  // the second over the same connection
    const auto response = client_->Send(request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, absl::StrCat(body.size()));
    EXPECT_EQ(response->Header("x-seen"), "word/none");
  }
}

TEST_F(HttpClientTest, AnswersOfEveryStatusAreNoErrors) {
  const auto missing = client_->Send(To("GET", "/missing"));
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(missing->status, 404);
  EXPECT_FALSE(missing->ok());
  EXPECT_EQ(missing->body, "no such page");
  const auto deleted = client_->Send(To("DELETE", "/object"));
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->status, 204);
  const auto head = client_->Send(To("HEAD", "/object"));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->Header("content-length"), "12");
  EXPECT_EQ(head->body, "");
}

TEST_F(HttpClientTest, TakesTheBodyInParts) {
  HttpRequest request = To("GET", "/parts");
  size_t bytes = 0;
  request.take = [&bytes](absl::string_view part) {
    bytes += part.size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(client_->Send(request).ok());
  EXPECT_EQ(bytes, 3U << 20);
  request.take = [](absl::string_view) { return absl::DataLossError("enough"); };
  EXPECT_EQ(client_->Send(request).status(), absl::DataLossError("enough"));
  // The body of an error is no data.
  HttpRequest missing = To("GET", "/missing");
  missing.take = request.take;
  const auto response = client_->Send(missing);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "no such page");
}

TEST_F(HttpClientTest, LimitsAnswersInMemory) {
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Send(To("GET", "/large")).status()));
}

TEST_F(HttpClientTest, EveryWaitEnds) {
  HttpRequest slow = To("GET", "/slow?signature=secret");
  slow.timeout = absl::Milliseconds(300);
  const absl::Status late = client_->Send(slow).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), Not(HasSubstr("secret")));
  slow = To("GET", "/slow");
  slow.is_cancelled = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(client_->Send(slow).status()));
}

TEST_F(HttpClientTest, ErrorsDoNotShowSignatures) {
  server_.reset();
  const absl::Status gone = client_->Send(To("GET", "/object?signature=secret")).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("/object"));
  EXPECT_THAT(std::string(gone.message()), Not(HasSubstr("secret")));
  HttpRequest file = To("GET", "");
  file.url = "file:///etc/hostname";
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Send(file).status()));
}

}  // namespace
}  // namespace lengthwise::platform
