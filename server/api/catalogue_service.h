// lengthwise.v1.CatalogueService: lists a fixed set of entries, and resolves specifications.
#ifndef LENGTHWISE_SERVER_API_CATALOGUE_SERVICE_H_
#define LENGTHWISE_SERVER_API_CATALOGUE_SERVICE_H_

#include <utility>
#include <vector>

#include "proto/catalogue_service.grpc.pb.h"
#include "server/api/calls.h"
#include "specification/catalogues.h"

namespace lengthwise::server {

// Tasks, encodings, networks, optimizers, schedules and protocols, each in the order of its
// catalogue, with the facts of their kind: for example a task's "chomsky_level", "random_accuracy"
// and "permutation_invariant", and an encoding's "uses_positions".
std::vector<v1::CatalogueEntry> CatalogueEntries(const specification::Catalogues& catalogues);

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
