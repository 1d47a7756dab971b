#include "server/storage/testing/s3_fake_store.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/files.h"
#include "platform/http_client.h"

namespace lengthwise::server {
namespace {

constexpr char kProgram[] = R"py(
import base64, hashlib, http.server, os, sys, threading, time, urllib.parse
from xml.sax.saxutils import escape
objects, faults, requests, lock = {}, {}, [], threading.Lock()
def error(code, message=""):
    return f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>".encode()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body=b"", headers={}, size=None):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        path, query = urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query))
        if path.startswith("/__set/"):
            faults[path[7:]] = body.decode()
            return self.answer(200)
        if path == "/__requests": return self.answer(200, "\n".join(requests).encode())
        text = f"{self.command} {path}"
        def has(fault):
            return faults.get(fault) and faults[fault].split("=")[0] in text
        if not text.endswith("lengthwise_store.json"): requests.append(text)
        if has("hang"):
            while has("hang"): time.sleep(0.05)
            self.close_connection = True
            return
        if has("slow"): time.sleep(1)
        if "X-Amz-Signature" not in query: return self.answer(403, error("AccessDenied"))
        if has("status"):
            status = int(faults["status"].split("=")[1])
            return self.answer(status, error("ExpiredToken" if status == 400 else "InternalError"))
        if has("answer"): return self.answer(200, faults["answer"].split("=", 1)[1].encode())
        if has("proxy"):
            return self.answer(503, f"<html>cannot reach {self.path}<Message>{self.path}</Message></html>".encode())
        with lock: self.act(path, query, body, has)
    def act(self, path, query, body, has):
        if "list-type" in query:
            bucket = path.strip("/") + "/"
            keys = sorted(k[len(bucket):] for k in objects if k.startswith(bucket))
            keys = [k for k in keys if k.startswith(query.get("prefix", "")) and k > query.get("continuation-token", "")]
            if faults.get("hide"): keys = [k for k in keys if faults["hide"] not in k]
            text = "".join(f"<Contents><Key>{escape(k)}</Key><Size>{len(objects[bucket + k][0])}</Size>"
                           f"<ETag>&quot;{objects[bucket + k][1]}&quot;</ETag></Contents>" for k in keys[:3])
            more = f"<NextContinuationToken>{escape(keys[2])}</NextContinuationToken>" if len(keys) > 3 else ""
            return self.answer(200, f"<ListBucketResult>{text}<IsTruncated>{str(len(keys) > 3).lower()}</IsTruncated>{more}</ListBucketResult>".encode())
        key = path[1:]
        if self.command == "PUT":
            source = self.headers.get("x-amz-copy-source")
            if source:
                if faults.get("copy"): return self.answer(200, b"\n" + error("InternalError", "We encountered an error."))
                source = urllib.parse.unquote(source).lstrip("/")
                if source not in objects: return self.answer(404, error("NoSuchKey"))
                objects[key] = objects[source]
                return self.answer(200, f'<CopyObjectResult><ETag>"{objects[key][1]}"</ETag></CopyObjectResult>'.encode())
            sum = self.headers.get("x-amz-checksum-sha256")
            if sum and base64.b64decode(sum) != hashlib.sha256(body).digest(): return self.answer(400, error("BadDigest"))
            if self.headers.get("if-none-match") == "*" and key in objects: return self.answer(412, error("PreconditionFailed"))
            objects[key] = (body, hashlib.md5(body).hexdigest(), self.headers.get("x-amz-meta-sha256"))
            return self.answer(200)
        if self.command == "DELETE":
            objects.pop(key, None)
            return self.answer(204)
        if key not in objects: return self.answer(404, error("NoSuchKey"))
        bytes, etag, sha256 = objects[key]
        headers = {"ETag": f'"{etag}"'}
        if sha256: headers["x-amz-meta-sha256"] = sha256
        if self.command == "HEAD": return self.answer(200, b"", headers, len(bytes))
        if has("flip"): bytes = bytes[:-1] + b"\xff"
        if "Range" in self.headers:
            first, last = self.headers["Range"][6:].split("-")
            return self.answer(206, bytes[int(first):int(last) + 1], headers)
        self.answer(200, bytes, headers)
    do_GET = do_PUT = do_HEAD = do_DELETE = handle_any
    def log_message(self, *arguments): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 100
    def handle_error(self, *arguments): pass
server = Server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
)py";

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "the fake store: %s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace

S3FakeStore::S3FakeStore(const std::string& directory) {
  static std::atomic<int> number = 0;
  const std::string port_file = absl::StrCat(directory, "/fake_store_port", ++number);
  std::remove(port_file.c_str());  // of an earlier process
  auto started =
      platform::ChildProcess::Start({.arguments = {"/usr/bin/python3", "-c", kProgram, port_file}});
  if (!started.ok()) Fail(started.status());
  process_ = *std::move(started);
  int port = 0;
  for (int i = 0; i < 400 && port == 0; ++i) {
    const auto text = platform::ReadFile(port_file);
    if (!text.ok() || !absl::SimpleAtoi(*text, &port)) absl::SleepFor(absl::Milliseconds(50));
  }
  if (port == 0) Fail(absl::DeadlineExceededError("did not start in 20 s"));
  address_ = absl::StrCat("http://127.0.0.1:", port);
}

S3Options S3FakeStore::options() const {
  return {.endpoint = address_,
          .credentials = {.access_key_id = "key", .secret_access_key = "secret"}};
}

std::string S3FakeStore::Ask(const std::string& method, const std::string& path,
                             const std::string& body) const {
  auto http = platform::HttpClient::Create();
  if (!http.ok()) Fail(http.status());
  const auto response = (*http)->Send({.method = method, .url = address_ + path, .body = body});
  if (!response.ok()) Fail(response.status());
  return response->body;
}

void S3FakeStore::Set(const std::string& fault, const std::string& value) {
  Ask("PUT", "/__set/" + fault, value);
}

std::vector<std::string> S3FakeStore::Requests() const {
  return absl::StrSplit(Ask("GET", "/__requests", ""), '\n', absl::SkipEmpty());
}

int64_t S3FakeStore::CountRequests(const std::string& text) const {
  int64_t count = 0;
  for (const std::string& request : Requests()) count += absl::StrContains(request, text) ? 1 : 0;
  return count;
}

bool S3FakeStore::AwaitMoreRequests(const std::string& text, int64_t count) const {
  for (int i = 0; i < 600; ++i) {
    if (CountRequests(text) > count) return true;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return false;
}

}  // namespace lengthwise::server
