#include "rpc/testing/raw_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"

namespace lengthwise::rpc {
namespace {

using platform::MutexLock;
using Fields = std::vector<std::pair<std::string, std::string>>;

// RFC 9113, sections 3.4, 4.1, 6 and 7.
constexpr size_t kPrefaceBytes = 24, kHeaderBytes = 9, kLargestFrame = 16'384;
constexpr uint8_t kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kPing = 6,
                  kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr uint16_t kInitialWindowSize = 4;

std::string BigEndian(uint32_t value) {
  const uint32_t bytes = htonl(value);
  return {reinterpret_cast<const char*>(&bytes), sizeof(bytes)};
}

uint32_t ReadBigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size())).substr(1),
                      std::string(1, static_cast<char>(type)),
                      std::string(1, static_cast<char>(flags)), BigEndian(stream), payload);
}

// RFC 7541, section 6.2.2: literals without indexing, of less than 127 bytes each.
std::string Block(const Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&block, std::string(1, '\0'), std::string(1, static_cast<char>(name.size())),
                    name, std::string(1, static_cast<char>(value.size())), value);
  }
  return block;
}

}  // namespace

std::string MessagePrefix(uint32_t bytes, bool compressed) {
  return absl::StrCat(std::string(1, compressed ? '\1' : '\0'), BigEndian(bytes));
}

// One client; a thread runs it.
class RawServer::Connection {
 public:
  Connection(RawServer& server, int socket) : server_(server), socket_(socket) {}

  void Run() {
    if (Receive(kPrefaceBytes).empty()) return;
    Send(Frame(kSettings, 0, 0, ""));
    while (true) {
      const std::string header = Receive(kHeaderBytes);
      if (header.empty()) return;
      const uint32_t size = ReadBigEndian(absl::string_view(header).substr(0, 3));
      const std::string payload = size == 0 ? "" : Receive(size);
      if (payload.size() != size) return;
      Take(static_cast<uint8_t>(header[3]), static_cast<uint8_t>(header[4]),
           ReadBigEndian(absl::string_view(header).substr(5)), payload);
      for (auto stream = streams_.begin(); stream != streams_.end();) {
        stream = SendData(stream->first, stream->second) ? streams_.erase(stream) : ++stream;
      }
    }
  }

 private:
  // Data of an answer that the windows do not admit yet.
  struct Stream {
    std::string data;
    int64_t zeros = 0;
    int64_t window = 0;
  };

  void Take(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload) {
    if (type == kSettings && (flags & kAck) == 0) {
      for (; payload.size() >= 6; payload.remove_prefix(6)) {
        if (ReadBigEndian(payload.substr(0, 2)) != kInitialWindowSize) continue;
        const int64_t size = ReadBigEndian(payload.substr(2, 4));
        for (auto& [id, open] : streams_) open.window += size - initial_window_;
        initial_window_ = size;
      }
      Send(Frame(kSettings, kAck, 0, ""));
    } else if (type == kPing && (flags & kAck) == 0) {
      Send(Frame(kPing, kAck, 0, payload));
    } else if (type == kWindowUpdate) {
      const int64_t more = ReadBigEndian(payload);
      if (stream == 0) window_ += more;
      if (const auto found = streams_.find(stream); found != streams_.end()) {
        found->second.window += more;
      }
    } else if (type == kRstStream) {
      streams_.erase(stream);
    } else if (type == kHeaders) {
      Open(stream);
    }
  }

  void Open(uint32_t stream) {
    const Answer& answer = server_.answer_;
    const bool ends = answer.data.empty() && answer.zeros == 0 && answer.trailers.empty();
    constexpr char kStatus200 = static_cast<char>(0x88);  // RFC 7541, appendix A
    Send(Frame(kHeaders, ends ? kEndHeaders | kEndStream : kEndHeaders, stream,
               absl::StrCat(std::string(1, kStatus200), Block(answer.headers))));
    server_.calls_.fetch_add(1);
    if (!ends) streams_[stream] = {answer.data, answer.zeros, initial_window_};
  }

  // Sends what the windows admit. Returns true at the answer's end.
  bool SendData(uint32_t id, Stream& stream) {
    while (!stream.data.empty() || stream.zeros > 0) {
      if (stream.data.empty()) {
        stream.data.assign(std::min<int64_t>(stream.zeros, kLargestFrame), '\0');
        stream.zeros -= static_cast<int64_t>(stream.data.size());
      }
      const int64_t admitted = std::min({static_cast<int64_t>(kLargestFrame), window_,
                                         stream.window, static_cast<int64_t>(stream.data.size())});
      if (admitted <= 0) return false;
      if (!Send(Frame(kData, 0, id, stream.data.substr(0, admitted)))) return true;
      stream.data.erase(0, admitted);
      stream.window -= admitted;
      window_ -= admitted;
      server_.sent_.fetch_add(admitted);
    }
    const Fields& trailers = server_.answer_.trailers;
    Send(trailers.empty() ? Frame(kData, kEndStream, id, "")
                          : Frame(kHeaders, kEndHeaders | kEndStream, id, Block(trailers)));
    return true;
  }

  // Returns "" if the connection ends first.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    return recv(socket_, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? bytes
                                                                                        : "";
  }

  // Returns false if the connection has ended.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(sent);
    }
    return true;
  }

  RawServer& server_;
  const int socket_;
  int64_t window_ = 65'535;
  int64_t initial_window_ = 65'535;
  std::map<uint32_t, Stream> streams_;
};

RawServer::RawServer(Answer answer, int port)
    : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof(address);
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  accepting_ = std::thread([this] { Accept(); });
}

RawServer::~RawServer() {
  shutdown(listener_.get(), SHUT_RDWR);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (const platform::Descriptor& socket : sockets_) shutdown(socket.get(), SHUT_RDWR);
  }
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
}

void RawServer::Accept() {
  while (true) {
    platform::Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    MutexLock lock(mutex_);
    if (!socket.is_open() || stopping_) return;
    threads_.emplace_back([this, descriptor = socket.get()] {
      Connection(*this, descriptor).Run();
      shutdown(descriptor, SHUT_RDWR);
    });
    sockets_.push_back(std::move(socket));
  }
}

}  // namespace lengthwise::rpc
