#include "server/metrics/endpoint.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "monitoring/families.h"
#include "platform/status_macros.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "proto/role_name.h"
#include "server/metrics/statistics_metrics.h"

namespace lengthwise::server {
namespace {

using monitoring::AddValue;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Exports the audit log's line counts, read at every scrape. Thread-safe.
class AuditMetrics final : public prometheus::Collectable {
 public:
  // `log` outlives the object.
  explicit AuditMetrics(const AuditLog& log) : log_(log) {}

  std::vector<MetricFamily> Collect() const override {
    const AuditLog::Counts counts = log_.counts();
    MetricFamily lines = MakeFamily("lengthwise_audit_lines_total", MetricType::Counter,
                                    "Audit log lines, by result.");
    const auto add = [&](const char* result, int64_t count) {
      AddValue({{"result", result}}, static_cast<double>(count), lines);
    };
    add("written", counts.written);
    add("suppressed", counts.suppressed);
    add("lost", counts.lost);
    return {lines};
  }

 private:
  const AuditLog& log_;
};

// Exports when tokens expire, read at every scrape. Thread-safe.
class TokenMetrics final : public prometheus::Collectable {
 public:
  // `tokens` outlives the object.
  explicit TokenMetrics(TokenStore& tokens) : tokens_(tokens) {}

  std::vector<MetricFamily> Collect() const override {
    MetricFamily family =
        MakeFamily("lengthwise_token_expiry_timestamp_seconds", MetricType::Gauge,
                   "Earliest time at which a principal loses its last valid token of this role, or "
                   "has lost it "
                   "in the last seven days, in seconds since 1970; 0 if there is no such token.");
    const std::map<v1::Role, int64_t> expiries = FirstExpiries();
    for (const v1::Role role : kRoles) {
      const auto found = expiries.find(role);
      AddValue({{"role", RoleName(role)}},
               found == expiries.end() ? 0 : static_cast<double>(found->second), family);
    }
    return {std::move(family)};
  }

 private:
  std::map<v1::Role, int64_t> FirstExpiries() const {
    // A token that is to be replaced does not count once its principal has a newer one.
    std::map<std::pair<v1::Role, std::string>, int64_t> last;
    const auto tokens = tokens_.List();
    if (!tokens.ok()) return {};
    const int64_t now = absl::ToUnixSeconds(absl::Now());
    for (const v1::Token& token : tokens->tokens()) {
      int64_t& expiry = last[{token.role(), token.principal()}];
      expiry = std::max(expiry, token.expire_time().seconds());
    }
    std::map<v1::Role, int64_t> first;
    for (const auto& [of, expiry] : last) {
      // Of a principal who has left.
      if (expiry <= now - kForgottenAfter) continue;
      const auto [found, is_new] = first.emplace(of.first, expiry);
      found->second = std::min(found->second, expiry);
    }
    return first;
  }

  // An expired token that nobody has replaced or revoked is noticed by then.
  static constexpr int64_t kForgottenAfter = 7 * 24 * 3600;

  TokenStore& tokens_;
};

// Exports when the certificates of the API's port expire, read at every scrape. Thread-safe.
class CertificateMetrics final : public prometheus::Collectable {
 public:
  // `files` may be null, and outlives the object.
  explicit CertificateMetrics(const CertificateFiles* files) : files_(files) {}

  std::vector<MetricFamily> Collect() const override {
    MetricFamily expiry = MakeFamily(
        "lengthwise_certificate_expiry_timestamp_seconds", MetricType::Gauge,
        "Time at which the first certificate of the file in force expires, in seconds since 1970; "
        "0 if there is no such file.");
    const auto add = [&](const char* certificate, absl::Time time) {
      const int64_t seconds = time == absl::InfiniteFuture() ? 0 : absl::ToUnixSeconds(time);
      AddValue({{"certificate", certificate}}, static_cast<double>(seconds), expiry);
    };
    const auto expiries = files_ == nullptr ? CertificateFiles::Expiries() : files_->expiries();
    add("server", expiries.server);
    add("client_authority", expiries.client_authority);
    MetricFamily unusable = MakeFamily(
        "lengthwise_certificate_files_unusable", MetricType::Gauge,
        "1 if the files of certificates have changed and cannot be used, so that the old ones stay "
        "in force; else 0.");
    AddValue({}, files_ == nullptr || files_->usable() ? 0 : 1, unusable);
    return {std::move(expiry), std::move(unusable)};
  }

 private:
  const CertificateFiles* const files_;
};

// Exports the watchers' lag behind the event log, read at every scrape. Thread-safe.
class StreamMetrics final : public prometheus::Collectable {
 public:
  explicit StreamMetrics(std::shared_ptr<OpenStreams> streams) : streams_(std::move(streams)) {}

  std::vector<MetricFamily> Collect() const override {
    const OpenStreams::Lags lags = streams_->ReadLags(absl::Now());
    MetricFamily lag = MakeFamily("lengthwise_watcher_lag_seconds", MetricType::Gauge,
                                  "Lag of the slowest watcher, in seconds; 0 when all watchers are "
                                  "up to date.");
    AddValue({}, absl::ToDoubleSeconds(lags.longest), lag);
    MetricFamily behind =
        MakeFamily("lengthwise_watchers_behind", MetricType::Gauge, "Watchers with unsent events.");
    AddValue({}, static_cast<double>(lags.behind), behind);
    return {std::move(lag), std::move(behind)};
  }

 private:
  const std::shared_ptr<OpenStreams> streams_;
};

}  // namespace

MonitoringEndpoint::MonitoringEndpoint()
    : registry_(std::make_shared<prometheus::Registry>()),
      rpc_metrics_(*registry_),
      streams_(std::make_shared<OpenStreams>()) {}

absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> MonitoringEndpoint::Start(
    const std::string& listen, std::function<Statistics()> statistics, const AuditLog* audit,
    TokenStore* tokens, const CertificateFiles* certificates) {
  std::unique_ptr<MonitoringEndpoint> endpoint(new MonitoringEndpoint);
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables = {
      endpoint->registry_, std::make_shared<StatisticsMetrics>(std::move(statistics)),
      std::make_shared<StreamMetrics>(endpoint->streams_),
      std::make_shared<CertificateMetrics>(certificates)};
  if (audit != nullptr) collectables.push_back(std::make_shared<AuditMetrics>(*audit));
  if (tokens != nullptr) collectables.push_back(std::make_shared<TokenMetrics>(*tokens));
  ASSIGN_OR_RETURN(endpoint->http_,
                   monitoring::HttpEndpoint::Start(listen, "server", std::move(collectables)));
  return endpoint;
}

}  // namespace lengthwise::server
