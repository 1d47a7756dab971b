// lengthwise.v1.CatalogueService: lists a fixed set of entries, and resolves specifications.
#ifndef LENGTHWISE_SERVER_API_CATALOGUE_SERVICE_H_
#define LENGTHWISE_SERVER_API_CATALOGUE_SERVICE_H_

#include <utility>
#include <vector>

#include "catalogue/entry.h"
#include "proto/catalogue_service.grpc.pb.h"
#include "server/api/calls.h"

namespace lengthwise::server {

// The entry as the API shows it, without facts.
v1::CatalogueEntry ToProto(v1::CatalogueKind kind, const catalogue::Entry& entry);

class CatalogueService final : public v1::CatalogueService::CallbackService {
 public:
  // `calls` must outlive the service.
  CatalogueService(std::vector<v1::CatalogueEntry> entries, Calls& calls)
      : entries_(std::move(entries)), calls_(calls) {}

  // Returns entries in the order in which the service got them. INVALID_ARGUMENT for an unknown
  // kind.
  grpc::ServerUnaryReactor* ListCatalogueEntries(
      grpc::CallbackServerContext* context, const v1::ListCatalogueEntriesRequest* request,
      v1::ListCatalogueEntriesResponse* response) override;

  grpc::ServerUnaryReactor* ResolveSpecification(
      grpc::CallbackServerContext* context, const v1::ResolveSpecificationRequest* request,
      v1::ResolveSpecificationResponse* response) override;

 private:
  const std::vector<v1::CatalogueEntry> entries_;
  Calls& calls_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_CATALOGUE_SERVICE_H_
