// The catalogues of this build, as the API lists them.
#ifndef LENGTHWISE_SERVER_API_CATALOGUE_ENTRIES_H_
#define LENGTHWISE_SERVER_API_CATALOGUE_ENTRIES_H_

#include <vector>

#include "proto/catalogue_service.pb.h"
#include "specification/catalogues.h"

namespace lengthwise::server {

// Tasks, encodings, networks, optimizers, schedules and protocols, each in the order of its
// catalogue, with the facts of their kind: for example a task's "chomsky_level", "random_accuracy"
// and "permutation_invariant", and an encoding's "uses_positions".
std::vector<v1::CatalogueEntry> CatalogueEntries(const specification::Catalogues& catalogues);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_CATALOGUE_ENTRIES_H_
