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
#include "prometheus/metric_family.h"
#include "proto/role_name.h"
#include "server/metrics/statistics_metrics.h"

namespace lengthwise::server {
namespace {

using monitoring::AddValue;
using monitoring::Families;
using monitoring::MakeFamily;
using prometheus::MetricFamily;

// The audit log's line counts.
Families AuditMetrics(const AuditLog& log) {
  const AuditLog::Counts counts = log.counts();
  MetricFamily lines = MakeFamily("lengthwise_audit_lines_total");
  const auto add = [&](const char* result, int64_t count) {
    AddValue({{"result", result}}, static_cast<double>(count), lines);
  };
  add("written", counts.written);
  add("suppressed", counts.suppressed);
  add("lost", counts.lost);
  return {std::move(lines)};
}

// An expired token that nobody has replaced or revoked is noticed by then.
constexpr int64_t kForgottenAfter = 7 * 24 * 3600;

std::map<v1::Role, int64_t> FirstExpiries(TokenStore& store) {
  // A token that is to be replaced does not count once its principal has a newer one.
  std::map<std::pair<v1::Role, std::string>, int64_t> last;
  const auto tokens = store.List();
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

// When tokens expire.
Families TokenMetrics(TokenStore& tokens) {
  MetricFamily family = MakeFamily("lengthwise_token_expiry_timestamp_seconds");
  std::map<v1::Role, int64_t> expiries = FirstExpiries(tokens);
  for (const v1::Role role : kRoles) {
    AddValue({{"role", RoleName(role)}}, static_cast<double>(expiries[role]), family);
  }
  return {std::move(family)};
}

// When the certificates of the API's port expire. `files` may be null.
Families CertificateMetrics(const CertificateFiles* files) {
  MetricFamily expiry = MakeFamily("lengthwise_certificate_expiry_timestamp_seconds");
  const auto add = [&](const char* certificate, absl::Time time) {
    const int64_t seconds = time == absl::InfiniteFuture() ? 0 : absl::ToUnixSeconds(time);
    AddValue({{"certificate", certificate}}, static_cast<double>(seconds), expiry);
  };
  const auto expiries = files == nullptr ? CertificateFiles::Expiries() : files->expiries();
  add("server", expiries.server);
  add("client_authority", expiries.client_authority);
  MetricFamily unusable = MakeFamily("lengthwise_certificate_files_unusable");
  AddValue({}, files == nullptr || files->usable() ? 0 : 1, unusable);
  return {std::move(expiry), std::move(unusable)};
}

// The watchers' lag behind the event log.
Families StreamMetrics(OpenStreams& streams) {
  const OpenStreams::Lags lags = streams.ReadLags(absl::Now());
  MetricFamily lag = MakeFamily("lengthwise_watcher_lag_seconds");
  AddValue({}, absl::ToDoubleSeconds(lags.longest), lag);
  MetricFamily behind = MakeFamily("lengthwise_watchers_behind");
  AddValue({}, static_cast<double>(lags.behind), behind);
  return {std::move(lag), std::move(behind)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> MonitoringEndpoint::Start(
    const std::string& listen, std::function<Statistics()> statistics, const AuditLog* audit,
    TokenStore* tokens, const CertificateFiles* certificates) {
  std::unique_ptr<MonitoringEndpoint> endpoint(new MonitoringEndpoint);
  std::vector<monitoring::Source> sources = {
      [&registry = endpoint->registry_] { return registry.Collect(); },
      [statistics = std::move(statistics)] { return ToMetrics(statistics()); },
      [streams = endpoint->streams_] { return StreamMetrics(*streams); },
      [certificates] { return CertificateMetrics(certificates); }};
  if (audit != nullptr) sources.push_back([audit] { return AuditMetrics(*audit); });
  if (tokens != nullptr) sources.push_back([tokens] { return TokenMetrics(*tokens); });
  ASSIGN_OR_RETURN(endpoint->http_,
                   monitoring::HttpEndpoint::Start(listen, "server", std::move(sources)));
  return endpoint;
}

}  // namespace lengthwise::server
