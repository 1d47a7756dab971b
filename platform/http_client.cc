#include "platform/http_client.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

constexpr size_t kMostBody = 8 << 20;
constexpr long kConnectSeconds = 10;
// A transfer that moves less than a byte a second for this long has stalled.
constexpr long kStalledSeconds = 30;
constexpr size_t kIdleHandles = 16;

// The functions of libcurl that this file uses.
struct Curl {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

absl::StatusOr<Curl> Load() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "object stores need libcurl, which cannot be loaded (", dlerror(),
        "); install it (Debian: apt install libcurl4, or libcurl4t64 from Debian 13 on)"));
  }
  const auto find = [library](const char* name, auto& function) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  decltype(&::curl_global_init) global_init = nullptr;
  Curl curl{};
  if (!find("curl_global_init", global_init) || !find("curl_easy_init", curl.easy_init) ||
      !find("curl_easy_setopt", curl.easy_setopt) ||
      !find("curl_easy_perform", curl.easy_perform) || !find("curl_easy_reset", curl.easy_reset) ||
      !find("curl_easy_cleanup", curl.easy_cleanup) ||
      !find("curl_easy_strerror", curl.easy_strerror) ||
      !find("curl_slist_append", curl.slist_append) ||
      !find("curl_slist_free_all", curl.slist_free_all) ||
      global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::FailedPreconditionError("libcurl.so.4 lacks functions or does not start");
  }
  return curl;
}

// Once for all threads.
const absl::StatusOr<Curl>& Library() {
  static const absl::StatusOr<Curl>& curl = *new absl::StatusOr<Curl>(Load());
  return curl;
}

// One request: what libcurl's callbacks work on.
struct Exchange {
  const HttpRequest& request;
  size_t sent = 0;
  int64_t moved = 0;  // bytes in both directions at the last call of OnProgress
  HttpResponse response;
  absl::Status taken;

  static size_t OnRead(char* to, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    const absl::string_view part = exchange.request.body.substr(exchange.sent, size * count);
    std::memcpy(to, part.data(), part.size());
    exchange.sent += part.size();
    return part.size();
  }

  // For a connection that turned out to be closed: libcurl sends the body again.
  static int OnSeek(void* self, curl_off_t offset, int origin) {
    if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    static_cast<Exchange*>(self)->sent = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }

  static size_t OnWrite(char* from, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    const absl::string_view part(from, size * count);
    if (exchange.request.take && exchange.response.ok()) {
      exchange.taken = exchange.request.take(part);
    } else if (exchange.response.body.size() + part.size() > kMostBody) {
      exchange.taken = absl::ResourceExhaustedError("the answer is larger than 8 MiB");
    } else {
      absl::StrAppend(&exchange.response.body, part);
    }
    return exchange.taken.ok() ? part.size() : 0;
  }

  static size_t OnHeader(char* from, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    const absl::string_view line(from, size * count);
    if (absl::StartsWith(line, "HTTP/")) {  // of an answer's first line, or of one after 100
      exchange.response.headers.clear();
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      if (words.size() < 2 || !absl::SimpleAtoi(words[1], &exchange.response.status)) {
        exchange.response.status = 0;
      }
      return line.size();
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    exchange.response.headers[absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.first))] =
        std::string(absl::StripAsciiWhitespace(parts.second));
    return line.size();
  }

  static int OnProgress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (exchange.request.is_cancelled && exchange.request.is_cancelled()) return 1;
    if (received + sent != std::exchange(exchange.moved, received + sent) &&
        exchange.request.progress) {
      exchange.request.progress();
    }
    return 0;
  }
};

}  // namespace

std::string HttpResponse::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

absl::string_view WithoutQuery(absl::string_view url) { return url.substr(0, url.find('?')); }

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  RETURN_IF_ERROR(Library().status());
  return std::unique_ptr<HttpClient>(new HttpClient);
}

HttpClient::~HttpClient() {
  MutexLock lock(mutex_);
  for (void* handle : idle_) Library()->easy_cleanup(handle);
}

absl::StatusOr<HttpResponse> HttpClient::Send(const HttpRequest& request) {
  // Earlier releases of libcurl know no CURLOPT_PROTOCOLS_STR and would open files.
  if (!absl::StartsWithIgnoreCase(request.url, "http://") &&
      !absl::StartsWithIgnoreCase(request.url, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("url: got ", WithoutQuery(request.url), ", accepted is http:// or https://"));
  }
  const Curl& curl = *Library();
  CURL* handle = nullptr;
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      handle = idle_.back();
      idle_.pop_back();
    }
  }
  if (handle == nullptr) handle = curl.easy_init();
  if (handle == nullptr) return absl::ResourceExhaustedError("libcurl has no memory");

  Exchange exchange{.request = request};
  std::array<char, CURL_ERROR_SIZE> error{};
  curl_slist* headers = curl.slist_append(nullptr, "Expect:");  // saves a round trip
  for (const auto& [name, value] : request.headers) {
    headers = curl.slist_append(headers, absl::StrCat(name, ": ", value).c_str());
  }
  const auto set = [&](CURLoption option, auto value) { curl.easy_setopt(handle, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_ERRORBUFFER, error.data());
  set(CURLOPT_NOSIGNAL, 1L);  // timeouts by SIGALRM would not be thread-safe
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  const bool ends = request.timeout != absl::InfiniteDuration();
  set(CURLOPT_TIMEOUT_MS,
      ends ? static_cast<long>(absl::ToInt64Milliseconds(request.timeout)) : 0L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  set(CURLOPT_HEADERFUNCTION, &Exchange::OnHeader);
  set(CURLOPT_HEADERDATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, &Exchange::OnWrite);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &Exchange::OnProgress);
  set(CURLOPT_XFERINFODATA, &exchange);
  if (request.method == "PUT") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_READFUNCTION, &Exchange::OnRead);
    set(CURLOPT_READDATA, &exchange);
    set(CURLOPT_SEEKFUNCTION, &Exchange::OnSeek);
    set(CURLOPT_SEEKDATA, &exchange);
  } else if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  const CURLcode code = curl.easy_perform(handle);
  curl.slist_free_all(headers);
  curl.easy_reset(handle);  // keeps the connection
  {
    MutexLock lock(mutex_);
    if (idle_.size() < kIdleHandles) idle_.push_back(std::exchange(handle, nullptr));
  }
  if (handle != nullptr) curl.easy_cleanup(handle);

  RETURN_IF_ERROR(exchange.taken);
  if (code == CURLE_OK) return std::move(exchange.response);
  const std::string text = absl::StrCat(request.method, " ", WithoutQuery(request.url), ": ",
                                        error[0] != '\0' ? error.data() : curl.easy_strerror(code));
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError(text);
  if (code == CURLE_OPERATION_TIMEDOUT) return absl::DeadlineExceededError(text);
  return absl::UnavailableError(text);
}

}  // namespace lengthwise::platform
