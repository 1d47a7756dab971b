// HttpClient: HTTP requests by libcurl.
//
// libcurl is loaded when the first client is created, so that programs that need no object store
// run on machines without it.
#ifndef LENGTHWISE_PLATFORM_HTTP_CLIENT_H_
#define LENGTHWISE_PLATFORM_HTTP_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

struct HttpRequest {
  std::string method;  // "GET", "HEAD", "PUT", "DELETE"
  std::string url;
  std::map<std::string, std::string> headers;
  // Sent with PUT. Must live until Send returns.
  absl::string_view body;
  // Of the whole request. InfiniteDuration: none. A request also ends if nothing moves for 30 s.
  absl::Duration timeout = absl::Seconds(30);
  // Takes the body of a 2xx answer as it arrives; an error ends the request and is returned by
  // Send. Without it, and for other answers, the body is in HttpResponse::body.
  std::function<absl::Status(absl::string_view)> take;
  // Asked about once a second: true ends the request with CANCELLED.
  std::function<bool()> is_cancelled;
  // Called when bytes have moved, about once a second.
  std::function<void()> progress;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // at most 8 MiB

  bool ok() const { return status >= 200 && status < 300; }
  // Value of a header; empty if there is none.
  std::string Header(const std::string& name) const;
};

// The scheme, host and path of a URL. Its query may hold a signature, which must not be logged.
absl::string_view WithoutQuery(absl::string_view url);

// Thread-safe. Keeps connections open for later requests.
class HttpClient {
 public:
  // FAILED_PRECONDITION if libcurl is not installed.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends one request and blocks until the whole answer is there, whatever its status. Follows no
  // redirection. UNAVAILABLE without an answer; DEADLINE_EXCEEDED; CANCELLED; RESOURCE_EXHAUSTED
  // for an answer that is too large; INVALID_ARGUMENT for other URLs than http:// and https://.
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request);

 private:
  HttpClient() = default;

  Mutex mutex_;
  std::vector<void*> idle_ ABSL_GUARDED_BY(mutex_);  // handles of libcurl with their connections
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_HTTP_CLIENT_H_
