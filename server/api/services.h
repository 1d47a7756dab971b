// The services of the API, each defined in its own file. All references must outlive a service.
#ifndef LENGTHWISE_SERVER_API_SERVICES_H_
#define LENGTHWISE_SERVER_API_SERVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "platform/work_pool.h"
#include "proto/catalogue_service.pb.h"
#include "server/api/calls.h"
#include "server/api/push_stream.h"
#include "server/coordination/core.h"
#include "server/security/token_store.h"
#include "specification/catalogues.h"

namespace lengthwise::server {

// `transfers` read models and large answers.
std::unique_ptr<Service> NewExperimentService(Core& core, TransferThreads& transfers, Calls& calls);

// `downloads` and `uploads` serve only workers' checkpoints, one direction each, so that neither
// users who download models nor a resuming fleet delay uploads.
std::unique_ptr<Service> NewWorkerService(Core& core, TransferThreads& downloads,
                                          TransferThreads& uploads, Calls& calls);

std::unique_ptr<Service> NewFleetService(Core& core, Calls& calls);

// Lists `entries` in their order.
std::unique_ptr<Service> NewCatalogueService(std::vector<v1::CatalogueEntry> entries, Calls& calls);

// `transfers` stream the progress of backups.
std::unique_ptr<Service> NewAdministrationService(Backups& backups, TransferThreads& transfers,
                                                  Calls& calls);

// `tokens` is null for a server that never has tokens.
std::unique_ptr<Service> NewAccessService(Calls& calls, TokenStore* tokens);

// For callers with a token. `services` are full names.
std::unique_ptr<Service> NewReflectionService(std::vector<std::string> services, Calls& calls);

// Tasks, encodings, networks, optimizers, schedules and protocols, each in the order of its
// catalogue, with the facts of their kind: for example a task's "chomsky_level", "random_accuracy"
// and "permutation_invariant", and an encoding's "uses_positions".
std::vector<v1::CatalogueEntry> CatalogueEntries(const specification::Catalogues& catalogues);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_SERVICES_H_
