#include "server/edge/edge.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "rpc/certificates.h"

namespace lengthwise::server {
namespace {

// With this many bytes waiting for one side, the edge stops reading from the other.
constexpr size_t kMostPending = 256 << 10;
// Maximum size of a read, and maximum number of reads of one connection before others have a turn:
// of a trusted one; others have one.
constexpr size_t kReadBytes = 64 << 10;
constexpr int kReadsInATurn = 8;
// A buffer that is larger than this gives its memory back when it is empty.
constexpr size_t kKeptBytes = 4 << 10;
// KeyUpdates of TLS 1.3 on one connection. Each costs as much as a large record; an honest client
// needs one in 400 GB.
constexpr int kMostKeyUpdates = 1000;
// The number of admitted addresses that are remembered.
constexpr size_t kMostAdmitted = 10'000;
// The client's socket and both ends of the pair.
constexpr int64_t kDescriptorsOfAConnection = 3;
// For the database, open checkpoints, metrics, gRPC and the edge itself.
constexpr int64_t kReservedDescriptors = 256;
// A younger untrusted connection is not evicted: a new connection from its address is refused.
constexpr absl::Duration kLeastAge = absl::Seconds(2);
// Time that a client has to read why its connection ends.
constexpr absl::Duration kFarewell = absl::Seconds(1);
// Pause after accept failed because descriptors or memory ran out.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Tags of epoll events: twice a connection's number, plus one for gRPC's side. Smaller tags are the
// wake descriptor (0) and the listeners (from 1).
constexpr uint64_t kWake = 0;
constexpr uint64_t kFirstConnection = 1 << 20;

// For rates and ages, because setting the system clock does not move it.
absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

platform::LimitedLog& EdgeLog() {
  static auto* const log = new platform::LimitedLog(absl::Seconds(10));
  return *log;
}

// In network byte order.
in_port_t& PortIn(sockaddr* address) {
  return address->sa_family == AF_INET ? reinterpret_cast<sockaddr_in*>(address)->sin_port
                                       : reinterpret_cast<sockaddr_in6*>(address)->sin6_port;
}

int PortOf(sockaddr_storage address) {
  return ntohs(PortIn(reinterpret_cast<sockaddr*>(&address)));
}

sockaddr_storage LocalAddress(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

// The bytes that identify a host.
absl::string_view HostBytes(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&ip), 4};
  }
  const auto& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&ip);
  // An IPv4 client of a socket that takes both.
  if (IN6_IS_ADDR_V4MAPPED(&ip)) return {bytes + 12, 4};
  return {bytes, 16};
}

// "10.0.0.7:40412", "[2001:db8::7]:40412".
std::string Shown(const sockaddr_storage& address) {
  std::array<char, NI_MAXHOST> host = {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof(address), host.data(),
              host.size(), nullptr, 0, NI_NUMERICHOST);
  absl::string_view name(host.data());
  absl::ConsumePrefix(&name, "::ffff:");
  const bool is_ipv6 = name.find(':') != absl::string_view::npos;
  return absl::StrCat(is_ipv6 ? "[" : "", name, is_ipv6 ? "]" : "", ":", PortOf(address));
}

// For SSL_set_msg_callback: counts KeyUpdates from the client in `counter`.
void CountKeyUpdate(int is_sent, int, int content, const void* bytes, size_t size, SSL*,
                    void* counter) {
  if (is_sent == 0 && content == SSL3_RT_HANDSHAKE && size > 0 &&
      *static_cast<const uint8_t*>(bytes) == SSL3_MT_KEY_UPDATE) {
    ++*static_cast<int*>(counter);
  }
}

// Reads and writes a socket, through TLS unless `ssl` is null. Both must outlive it.
rpc::Bio StreamOf(int socket, SSL* ssl) {
  // BIO_new_socket would have the kernel load TLS for plain text.
  if (ssl == nullptr) return rpc::Bio(BIO_new_fd(socket, BIO_NOCLOSE));
  SSL_set_fd(ssl, socket);
  rpc::Bio stream(BIO_new(BIO_f_ssl()));
  BIO_set_ssl(stream.get(), ssl, BIO_NOCLOSE);
  return stream;
}

std::shared_ptr<addrinfo> Resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo hints = {};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
  return {found, freeaddrinfo};
}

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

platform::Descriptor ListenOn(const addrinfo& address) {
  platform::Descriptor listener(
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.is_open()) return {};
  SetOption(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr;
    SetOption(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(&ip) ? 0 : 1);
  }
  if (bind(listener.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return {};
  }
  return listener;
}

}  // namespace

struct Edge::Connection {
  enum class State {
    kHandshake,  // of TLS; gRPC does not know the connection
    kRelaying,
    kClosing,  // gRPC's side has ended; the connection closes once waiting bytes reach the client
  };

  Connection(const FrameGuard::Limits& limits, FrameGuard::Admit admit)
      : guard(limits, std::move(admit)) {}

  // On a thread of handshakes; FinishHandshake acts on the result.
  void ContinueHandshake() {
    ERR_clear_error();
    handshake_error = SSL_get_error(ssl.get(), SSL_do_handshake(ssl.get()));
    if (handshake_error != SSL_ERROR_SSL) return;
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    handshake_reason = reason == nullptr ? "no reason given" : reason;
  }
  // Whether the guard may take bytes now. The client waits while either direction is full
  // (back-pressure).
  bool may_take() const {
    return state == State::kRelaying && !has_work && to_server.size() < kMostPending &&
           to_client.size() < kMostPending;
  }
  // Whether bytes may be read for it. An incomplete frame header has fewer than 9 bytes. With more,
  // the guard holds back a frame: nothing is read then, so that `from_client` stays bounded.
  bool may_read() const { return may_take() && !client_ended && from_client.size() < 9; }

  uint64_t id = 0;
  State state = State::kRelaying;
  platform::Descriptor client;
  platform::Descriptor inner;
  Ssl ssl;              // null: plain text
  rpc::Bio stream;      // of `client` and `ssl`
  std::string address;  // key in Edge::addresses_
  Peer peer;
  // While a thread continues the handshake or decides about a call, the next three are that
  // thread's, and `ssl` during the handshake.
  bool has_work = false;
  int handshake_error = SSL_ERROR_NONE;
  std::string handshake_reason;
  std::optional<absl::StatusOr<Account>> decision;
  int key_updates = 0;
  FrameGuard guard;
  std::string from_client;  // bytes that the guard has not taken yet
  std::string to_server;
  std::string to_client;
  // A read may find bytes: epoll reported some, and no read since returned less than it asked for.
  bool client_is_readable = true;
  bool inner_is_readable = true;
  bool client_ended = false;
  bool ssl_wants_write = false;
  bool is_own = false;
  bool is_trusted = false;
  std::function<absl::Status()> recheck;  // the account's
  std::list<Connection*>::iterator in_untrusted;
  int64_t message_bytes = 0;
  absl::Time opened;
  absl::Time timer = absl::InfiniteFuture();
  uint32_t client_events = 0;
  uint32_t inner_events = 0;
};

absl::StatusOr<std::unique_ptr<Edge>> Edge::Listen(Options options) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL may write to a socket whose client is gone
  std::unique_ptr<Edge> edge(new Edge(std::move(options)));
  if (!edge->options_.encryption.certificate.empty()) {
    RETURN_IF_ERROR(edge->SetEncryption(edge->options_.encryption));
    // CheckReachable verifies no certificate: it checks that the server answers, not its identity.
    edge->client_tls_.reset(SSL_CTX_new(TLS_client_method()));
  }
  RETURN_IF_ERROR(edge->Bind());
  return edge;
}

Edge::Edge(Options options)
    : options_(std::move(options)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      next_id_(kFirstConnection),
      buffer_(kReadBytes) {
  const int64_t limit = platform::DescriptorLimit();
  // With a low limit, three eighths of it stay for connections.
  const int64_t reserved = std::min(kReservedDescriptors, limit * 5 / 8);
  const int64_t room = (limit - reserved) / kDescriptorsOfAConnection;
  most_connections_ = options_.connections > 0 ? std::min(options_.connections, room) : room;
}

absl::Status Edge::SetEncryption(const Encryption& encryption) {
  ASSIGN_OR_RETURN(SslContext tls, CreateServerTls(encryption));
  const platform::MutexLock lock(tls_mutex_);
  tls_ = std::move(tls);
  return absl::OkStatus();
}

Edge::~Edge() { Stop(absl::ZeroDuration()); }

absl::Status Edge::Bind() {
  const absl::string_view listen = options_.listen;
  const absl::string_view shown_host = listen.substr(0, listen.rfind(':'));  // "HOST", "[HOST]"
  const std::string host(absl::StripSuffix(absl::StripPrefix(shown_host, "["), "]"));
  const std::string port(listen.substr(listen.rfind(':') + 1));
  // "0.0.0.0" means every address of the machine, of IPv6 too if the machine has it.
  std::vector<std::shared_ptr<addrinfo>> candidates;
  if (host == "0.0.0.0") candidates.push_back(Resolve("::", port, AI_PASSIVE | AI_NUMERICHOST));
  candidates.push_back(Resolve(host, port, AI_PASSIVE));
  for (const auto& addresses : candidates) {
    if (!listeners_.empty()) break;
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
      // All of a name's addresses share the port of the first.
      if (!listeners_.empty()) {
        PortIn(each->ai_addr) = htons(PortOf(LocalAddress(listeners_.front().get())));
      }
      if (platform::Descriptor listener = ListenOn(*each); listener.is_open()) {
        listeners_.push_back(std::move(listener));
      }
    }
  }
  if (listeners_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", options_.listen,
                     ": the port is in use, or this machine has no such address; choose another "
                     "with --listen HOST:PORT"));
  }
  address_ = absl::StrCat(shown_host, ":", PortOf(LocalAddress(listeners_.front().get())));
  return absl::OkStatus();
}

void Edge::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor,
                 Admit admit) {
  acceptor_ = std::move(acceptor);
  admit_ = std::move(admit);
  thread_ = std::thread([this] { Run(); });
}

void Edge::Stop(absl::Duration grace) {
  if (!thread_.joinable()) return;
  stop_at_ns_ = absl::ToUnixNanos(SteadyNow() + grace);
  stopping_ = true;
  Wake();
  thread_.join();
  // Their tasks call `admit`, whose objects may be gone after this.
  known_work_.reset();
  other_work_.reset();
  connections_.clear();
  listeners_.clear();
}

void Edge::Wake() { eventfd_write(wake_.get(), 1); }

void Edge::Run() {
  epoll_event woken = {.events = EPOLLIN, .data = {.u64 = kWake}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &woken);
  WatchListeners(true);

  std::array<epoll_event, 256> events;
  while (true) {
    absl::Time now = SteadyNow();
    absl::Time until = timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first;
    until = std::min({until, listen_again_, recheck_at_});
    if (stopping_) {
      const absl::Time stop_at = absl::FromUnixNanos(stop_at_ns_);
      if (now >= stop_at || connections_.empty()) return;
      until = std::min(until, stop_at);
    }
    if (!ready_.empty()) until = now;
    const auto timeout = std::max(until - now, absl::ZeroDuration());
    // recheck_at_ is never far, so this fits an int.
    const int count = epoll_wait(
        epoll_.get(), events.data(), events.size(),
        static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1)))));

    const std::vector<uint64_t> ready = std::exchange(ready_, {});
    for (int i = 0; i < count; ++i) {
      const uint64_t what = events[i].data.u64;
      if (what == kWake) {
        eventfd_t value = 0;
        eventfd_read(wake_.get(), &value);
        std::vector<uint64_t> worked;
        {
          platform::MutexLock lock(worked_mutex_);
          worked.swap(worked_);
        }
        for (const uint64_t id : worked) {
          Connection* const connection = Find(id);
          if (connection == nullptr) continue;
          connection->has_work = false;
          const bool is_shaking = connection->state == Connection::State::kHandshake;
          !is_shaking || FinishHandshake(*connection) ? Relay(*connection) : Destroy(*connection);
        }
        if (stopping_) WatchListeners(false);
        continue;
      }
      if (what <= listeners_.size()) {
        Accept(listeners_[what - 1].get());
        continue;
      }
      // An earlier event of this batch may have destroyed the connection.
      Connection* const connection = Find(what / 2);
      if (connection == nullptr) continue;
      const bool is_broken = (events[i].events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
      if (is_broken && what % 2 == 0) {
        Destroy(*connection);  // the client is gone, or has reset the connection
        continue;
      }
      (what % 2 == 0 ? connection->client_is_readable : connection->inner_is_readable) = true;
      Relay(*connection);
    }
    for (const uint64_t id : ready) {
      if (Connection* const connection = Find(id); connection != nullptr) Relay(*connection);
    }
    now = SteadyNow();
    std::vector<uint64_t> due;
    for (auto timer = timers_.begin(); timer != timers_.end() && timer->first <= now; ++timer) {
      due.push_back(timer->second);
    }
    for (const uint64_t id : due) {
      // An earlier one may have destroyed the connection or set its timer anew.
      Connection* const connection = Find(id);
      if (connection == nullptr || connection->timer > now) continue;
      SetTimer(*connection, absl::InfiniteFuture());
      const bool is_closing = connection->state == Connection::State::kClosing;
      is_closing ? Destroy(*connection) : Relay(*connection);
    }
    if (recheck_at_ <= now) {
      recheck_at_ = now + options_.recheck_interval;
      RefuseRevoked();
    }
    if (listen_again_ <= now) {
      listen_again_ = absl::InfiniteFuture();
      if (!stopping_) WatchListeners(true);
    }
  }
}

void Edge::WatchListeners(bool watch) {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = i + 1}};
    epoll_ctl(epoll_.get(), watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listeners_[i].get(), &event);
  }
}

Edge::Connection* Edge::Find(uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Edge::Accept(int listener) {
  // The loop is bounded so that a burst of new connections does not starve the others.
  for (int i = 0; i < 64 && !stopping_; ++i) {
    sockaddr_storage from = {};
    socklen_t size = sizeof(from);
    platform::Descriptor client(
        accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        EdgeLog().Warning(absl::StrCat("cannot accept connections now: ", std::strerror(errno),
                                       "; new clients wait, existing connections continue"));
        WatchListeners(false);
        listen_again_ = SteadyNow() + kAcceptPause;
      }
      return;
    }
    absl::string_view host = HostBytes(from);
    // An IPv6 client can use every address of its /64 network.
    if (host.size() == 16) host = host.substr(0, 8);
    const std::string address(host);
    const sockaddr_storage local = LocalAddress(client.get());
    const bool is_own = PortOf(from) == own_port_ && HostBytes(from) == HostBytes(local);
    if (!is_own && !MakeRoom(address)) continue;
    Open(client.release(), address, Shown(from), is_own);
  }
}

bool Edge::MakeRoom(const std::string& address) {
  const auto found = addresses_.find(address);
  const Address none;
  const Address& here = found == addresses_.end() ? none : found->second;
  const auto untrusted_here = static_cast<int64_t>(here.untrusted.size());
  if (untrusted_here >= options_.untrusted_connections_per_address ||
      here.connections >= std::max<int64_t>(most_connections_ / 2, 1)) {
    EdgeLog().Warning(absl::StrCat("one client address is at its limit: ", here.connections,
                                   " connections, ", untrusted_here,
                                   " of them without a valid call"));
    if (untrusted_here == 0) return false;
    Connection& oldest = *here.untrusted.front();
    if (SteadyNow() - oldest.opened < kLeastAge) return false;
    Destroy(oldest);
    return true;
  }
  if (untrusted_ >= options_.untrusted_connections ||
      static_cast<int64_t>(connections_.size()) >= most_connections_) {
    EdgeLog().Warning(absl::StrCat("the server is at its limit: ", connections_.size(),
                                   " connections, ", untrusted_, " of them without a valid call"));
    if (untrusted_ == 0) return false;
    // Of equal ones the oldest, so that a newcomer has the time to show its token.
    const auto order = [](const auto& address) {
      const std::list<Connection*>& here = address.second.untrusted;
      return std::make_pair(here.size(), here.empty() ? uint64_t{0} : -here.front()->id);
    };
    const auto largest = absl::c_max_element(
        addresses_, [&](const auto& a, const auto& b) { return order(a) < order(b); });
    Destroy(*largest->second.untrusted.front());
  }
  return true;
}

void Edge::Open(int client, const std::string& address, std::string shown, bool is_own) {
  const uint64_t id = next_id_++;
  auto owned = std::make_shared<Connection>(
      options_.limits,
      [this, id](absl::string_view method, absl::string_view authorization)
          -> absl::StatusOr<std::shared_ptr<FrameGuard::Principal>> {
        Connection& of = *connections_.at(id);
        if (of.has_work) return nullptr;
        if (!of.decision.has_value()) {
          Submit(of, [this, method = std::string(method),
                      authorization = std::string(authorization)](Connection& each) {
            each.decision = admit_(each.peer, method, authorization);
          });
          return nullptr;
        }
        ASSIGN_OR_RETURN(const Account account, *std::exchange(of.decision, std::nullopt));
        std::shared_ptr<FrameGuard::Principal>& principal = principals_[account.name];
        if (principal == nullptr) {
          principal = std::make_shared<FrameGuard::Principal>(account.limits);
        }
        const auto has = static_cast<double>(principal->connections);
        if (has < account.most_connections * static_cast<double>(most_connections_)) {
          of.recheck = account.recheck;
          return principal;
        }
        return absl::ResourceExhaustedError(absl::StrCat(
            account.name, " has ", principal->connections, " connections; close some"));
      });
  Connection& connection = *owned;
  connections_.emplace(id, std::move(owned));
  connection.id = id;
  connection.client = platform::Descriptor(client);
  connection.address = address;
  connection.is_own = is_own;
  connection.opened = SteadyNow();
  connection.peer.address = std::move(shown);
  if (!is_own) {
    Address& of = addresses_[address];
    ++of.connections;
    connection.in_untrusted = of.untrusted.insert(of.untrusted.end(), &connection);
    ++untrusted_;
  }
  SetOption(client, IPPROTO_TCP, TCP_NODELAY, 1);
  {
    const platform::MutexLock lock(tls_mutex_);
    if (tls_ != nullptr) connection.ssl.reset(SSL_new(tls_.get()));
  }
  connection.stream = StreamOf(client, connection.ssl.get());
  if (connection.ssl != nullptr) {
    connection.state = Connection::State::kHandshake;
    SSL_set_accept_state(connection.ssl.get());
    SSL_set_msg_callback(connection.ssl.get(), CountKeyUpdate);
    SSL_set_msg_callback_arg(connection.ssl.get(), &connection.key_updates);
  } else if (!ConnectToGrpc(connection)) {
    return Destroy(connection);
  }
  Relay(connection);
}

bool Edge::ConnectToGrpc(Connection& connection) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    EdgeLog().Warning(absl::StrCat("cannot accept a connection: ", std::strerror(errno)));
    return false;
  }
  connection.inner = platform::Descriptor(ends[0]);
  platform::Descriptor grpcs(ends[1]);
  const std::string id =
      absl::StrCat(getpid(), "-", absl::Hex(reinterpret_cast<uintptr_t>(this)), "-", connection.id);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const size_t length =
      SocketName(connection.peer, id).copy(name.sun_path + 1, sizeof(name.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(ends[0], reinterpret_cast<const sockaddr*>(&name), size) != 0) return false;
  connection.state = Connection::State::kRelaying;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = -1;
  parameters.fd = grpcs.release();
  acceptor_->HandleNewConnection(&parameters);
  return true;
}

void Edge::Submit(Connection& connection, std::function<void(Connection&)> work) {
  connection.has_work = true;
  platform::WorkPool& threads =
      admitted_.contains(connection.address) ? *known_work_ : *other_work_;
  // A connection that has ended before its turn costs no work.
  const std::weak_ptr<Connection> weak = connections_.at(connection.id);
  threads.Submit(connection.address, [this, work = std::move(work), weak] {
    const std::shared_ptr<Connection> shared = weak.lock();
    if (stopping_ || shared == nullptr) return;
    work(*shared);
    {
      platform::MutexLock lock(worked_mutex_);
      worked_.push_back(shared->id);
    }
    Wake();
  });
}

bool Edge::FinishHandshake(Connection& connection) {
  const int error = connection.handshake_error;
  connection.ssl_wants_write = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    connection.client_is_readable = false;
    return true;
  }
  if (error == SSL_ERROR_SSL) {
    EdgeLog().Warning(absl::StrCat("TLS with ", connection.peer.address,
                                   " failed: ", connection.handshake_reason));
  }
  if (error != SSL_ERROR_NONE) return false;
  connection.peer.has_certificate = SSL_get0_peer_certificate(connection.ssl.get()) != nullptr;
  const int64_t verified = SSL_get_verify_result(connection.ssl.get());
  if (connection.peer.has_certificate && verified != X509_V_OK) {
    EdgeLog().Warning(absl::StrCat("refused the certificate of ", connection.peer.address, ": ",
                                   X509_verify_cert_error_string(verified)));
    return false;
  }
  connection.client_is_readable = true;
  return ConnectToGrpc(connection);
}

void Edge::Relay(Connection& connection) {
  using State = Connection::State;
  if (connection.state == State::kHandshake) {
    if (connection.client_is_readable && !connection.has_work) {
      Submit(connection, &Connection::ContinueHandshake);
    }
    return Watch(connection);
  }
  bool moved = true;
  for (int turn = 0; moved; ++turn) {
    if (turn == (connection.is_trusted ? kReadsInATurn : 1)) {
      ready_.push_back(connection.id);
      break;
    }
    moved = false;
    if (connection.state == State::kRelaying) {
      FromServer(connection, moved);
      if (!FromClient(connection, moved)) return Destroy(connection);
      NoteTrust(connection);
      if (connection.state == State::kRelaying) {
        CountMessages(connection, connection.guard.held_bytes() +
                                      static_cast<int64_t>(connection.to_client.size()));
      }
      if (message_bytes_ > options_.message_bytes) RefuseLargestMessages();
    }
    if (!Flush(connection, moved)) return Destroy(connection);
  }
  if (connection.state == State::kClosing && connection.to_client.empty()) {
    // The client hangs up once it has read the rest. A timer limits how long it may take.
    if (connection.ssl != nullptr) {
      ERR_clear_error();
      SSL_shutdown(connection.ssl.get());
    }
    shutdown(connection.client.get(), SHUT_WR);
    if (connection.client_ended) return Destroy(connection);
  }
  Watch(connection);
}

void Edge::FromServer(Connection& connection, bool& moved) {
  if (connection.to_client.size() >= kMostPending || !connection.inner_is_readable) return;
  const ssize_t size = recv(connection.inner.get(), buffer_.data(), buffer_.size(), 0);
  connection.inner_is_readable = size == static_cast<ssize_t>(buffer_.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  moved = true;
  if (size > 0) {
    connection.guard.FromServer({buffer_.data(), static_cast<size_t>(size)}, connection.to_client);
    return;
  }
  // gRPC has ended the connection; its earlier bytes still go to the client.
  connection.state = Connection::State::kClosing;
  connection.inner = platform::Descriptor();
  SetTimer(connection, SteadyNow() + kFarewell);
}

bool Edge::FromClient(Connection& connection, bool& moved) {
  if (!connection.may_take()) return true;
  absl::string_view bytes = connection.from_client;
  if (connection.may_read() && connection.client_is_readable) {
    if (!ReadClient(connection, bytes, moved)) return false;
  }
  const bool is_decided = connection.decision.has_value();
  if (bytes.empty() && !is_decided) return true;
  const absl::StatusOr<size_t> taken =
      connection.guard.FromClient(bytes, SteadyNow(), connection.to_server);
  connection.guard.AppendOwnFrames(connection.to_client);
  if (!taken.ok()) {
    Refuse(connection, taken.status().message());
    return true;
  }
  if (is_decided || *taken > 0) moved = true;
  connection.from_client = std::string(bytes.substr(*taken));
  return true;
}

bool Edge::ReadClient(Connection& connection, absl::string_view& bytes, bool& moved) {
  // From the buffer, the guard takes them without a copy of its own.
  char* const end = absl::c_copy(bytes, buffer_.data());
  const auto room = static_cast<int>(buffer_.size() - bytes.size());
  BIO* const stream = connection.stream.get();
  ERR_clear_error();
  // Through TLS, returns after one record, also one without data (SSL_MODE_AUTO_RETRY is off).
  const int size = BIO_read(stream, end, room);
  connection.client_is_readable = connection.ssl == nullptr ? size == room : size > 0;
  connection.ssl_wants_write = BIO_should_write(stream);
  if (connection.key_updates > kMostKeyUpdates) return false;
  if (size <= 0 && BIO_should_retry(stream)) return true;
  moved = true;
  if (size <= 0) {
    connection.client_ended = true;
  } else {
    bytes = {buffer_.data(), bytes.size() + static_cast<size_t>(size)};
  }
  return true;
}

bool Edge::Flush(Connection& connection, bool& moved) {
  while (!connection.to_client.empty()) {
    const std::string& bytes = connection.to_client;
    ERR_clear_error();
    const int size =
        BIO_write(connection.stream.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (size <= 0 && BIO_should_retry(connection.stream.get())) break;
    if (size <= 0) return false;
    connection.to_client.erase(0, size);
    moved = true;
  }
  while (!connection.to_server.empty() && connection.inner.is_open()) {
    const ssize_t size = send(connection.inner.get(), connection.to_server.data(),
                              connection.to_server.size(), MSG_NOSIGNAL);
    // If gRPC has hung up, its last bytes are still to be read, so the connection stays.
    if (size < 0) {
      if (errno != EAGAIN && errno != EINTR) connection.to_server.clear();
      break;
    }
    connection.to_server.erase(0, size);
    moved = true;
  }
  for (std::string* each :
       {&connection.to_client, &connection.to_server, &connection.from_client}) {
    if (each->empty() && each->capacity() > kKeptBytes) std::string().swap(*each);
  }
  if (connection.client_ended && connection.to_server.empty() && connection.inner.is_open()) {
    shutdown(connection.inner.get(), SHUT_WR);
  }
  return true;
}

void Edge::NoteTrust(Connection& connection) {
  if (connection.is_trusted || connection.is_own || !connection.guard.is_trusted()) return;
  connection.is_trusted = true;
  ++connection.guard.principal()->connections;
  addresses_[connection.address].untrusted.erase(connection.in_untrusted);
  --untrusted_;
  if (admitted_.size() >= kMostAdmitted) admitted_.clear();
  admitted_.insert(connection.address);
}

void Edge::CountMessages(Connection& connection, int64_t bytes) {
  FrameGuard::Principal* const principal = connection.guard.principal();
  if (principal == nullptr) return;  // a stranger has only health checks, which are small
  const int64_t added = bytes - std::exchange(connection.message_bytes, bytes);
  message_bytes_ += added;
  principal->message_bytes += added;
}

void Edge::RefuseLargestMessages() {
  const auto held = [](const Connection& connection) {
    const FrameGuard::Principal* const principal = connection.guard.principal();
    return std::make_pair(principal == nullptr ? 0 : principal->message_bytes,
                          connection.message_bytes);
  };
  const auto largest = absl::c_max_element(connections_, [&](const auto& a, const auto& b) {
    return held(*a.second) < held(*b.second);
  });
  Refuse(*largest->second, "the server holds too many unfinished messages; try again later");
}

void Edge::RefuseRevoked() {
  for (const auto& [id, connection] : connections_) {
    if (!connection->is_trusted || connection->state != Connection::State::kRelaying) continue;
    const absl::Status status = connection->recheck();
    if (!status.ok()) Refuse(*connection, status.message());
  }
}

void Edge::Refuse(Connection& connection, absl::string_view reason) {
  EdgeLog().Warning(
      absl::StrCat("ended the connection of ", connection.peer.address, ": ", reason));
  connection.guard.AppendGoAway(reason, connection.to_client);
  CountMessages(connection, 0);
  connection.state = Connection::State::kClosing;
  connection.inner = platform::Descriptor();
  connection.to_server.clear();
  connection.from_client.clear();
  SetTimer(connection, SteadyNow() + kFarewell);
  ready_.push_back(connection.id);
}

void Edge::Destroy(Connection& connection) {
  if (!connection.is_own) {
    const auto address = addresses_.find(connection.address);
    if (connection.is_trusted) {
      --connection.guard.principal()->connections;
    } else {
      address->second.untrusted.erase(connection.in_untrusted);
      --untrusted_;
    }
    if (--address->second.connections == 0) addresses_.erase(address);
  }
  CountMessages(connection, 0);
  SetTimer(connection, absl::InfiniteFuture());
  connections_.erase(connection.id);  // closing a descriptor takes it out of epoll
}

void Edge::Watch(Connection& connection) {
  using State = Connection::State;
  uint32_t client = 0;
  uint32_t inner = 0;
  if (connection.state == State::kHandshake) {
    if (!connection.has_work) client = connection.ssl_wants_write ? EPOLLOUT : EPOLLIN;
  } else {
    const bool wants_write = connection.ssl_wants_write && connection.state == State::kRelaying;
    if (connection.may_read() && !wants_write) client |= EPOLLIN;  // reading waits for that
    if (!connection.to_client.empty() || wants_write) client |= EPOLLOUT;
    if (connection.state == State::kClosing && client == 0) client |= EPOLLRDHUP;
    if (connection.inner.is_open()) {
      if (connection.to_client.size() < kMostPending) inner |= EPOLLIN;
      if (!connection.to_server.empty()) inner |= EPOLLOUT;
    }
    // A connection that may not take a frame now is relayed once it may.
    if (connection.state == State::kRelaying) {
      SetTimer(connection,
               connection.may_take() ? connection.guard.retry_at() : absl::InfiniteFuture());
    }
  }
  const auto set = [this](int descriptor, uint32_t& now, uint32_t wanted, uint64_t what) {
    // epoll reports a hang-up even for a descriptor watched for no events, which would make this
    // loop spin.
    if (now == wanted) return;
    epoll_event event = {.events = wanted, .data = {.u64 = what}};
    const int operation = now == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    epoll_ctl(epoll_.get(), operation, descriptor, &event);
    now = wanted;
  };
  set(connection.client.get(), connection.client_events, client, connection.id * 2);
  if (connection.inner.is_open()) {
    set(connection.inner.get(), connection.inner_events, inner, connection.id * 2 + 1);
  }
}

void Edge::SetTimer(Connection& connection, absl::Time time) {
  if (connection.timer == time) return;
  timers_.erase({connection.timer, connection.id});
  connection.timer = time;
  if (time != absl::InfiniteFuture()) timers_.insert({time, connection.id});
}

absl::Status Edge::CheckReachable(absl::Duration patience) {
  // If the socket is bound to every address, this one leads to the loopback address.
  sockaddr_storage to = LocalAddress(listeners_.front().get());
  const platform::Descriptor client(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!client.is_open()) return absl::UnavailableError(std::strerror(errno));
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    const timeval limit = absl::ToTimeval(patience);
    setsockopt(client.get(), SOL_SOCKET, option, &limit, sizeof(limit));
  }
  // Binds before connecting, so that the edge recognizes this connection by its port.
  sockaddr_storage from = to;
  PortIn(reinterpret_cast<sockaddr*>(&from)) = 0;
  const socklen_t size = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (bind(client.get(), reinterpret_cast<const sockaddr*>(&from), size) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  own_port_ = PortOf(LocalAddress(client.get()));
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&to), size) != 0) {
    return absl::UnavailableError(errno == EINPROGRESS ? "the connection is not accepted"
                                                       : std::strerror(errno));
  }
  const Ssl ssl(client_tls_ == nullptr ? nullptr : SSL_new(client_tls_.get()));
  if (ssl != nullptr) SSL_set_connect_state(ssl.get());
  const rpc::Bio stream = StreamOf(client.get(), ssl.get());
  ERR_clear_error();
  errno = 0;
  char byte = 0;
  if (BIO_read(stream.get(), &byte, 1) == 1) return absl::OkStatus();
  return absl::UnavailableError(errno == EAGAIN ? "nothing answers"
                                                : "the connection is broken off");
}

}  // namespace lengthwise::server
