#include "specification/catalogues.h"

#include "models/optimizers/catalogue.h"

namespace lengthwise::specification {

Catalogues AllCatalogues() {
  return {.tasks = tasks::EveryTaskEntry(),
          .networks = models::NetworkEntries(),
          .encodings = models::EncodingEntries(),
          .optimizers = models::OptimizerEntries(),
          .schedules = models::ScheduleEntries(),
          .protocols = ProtocolEntries()};
}

}  // namespace lengthwise::specification
