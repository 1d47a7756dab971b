#include "server/coordinator.h"

#include <memory>
#include <utility>

#include "server/coordination/coordinator_impl.h"
#include "specification/resolve.h"

namespace lengthwise::server {

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Open(const Options& options) {
  CoordinatorImpl::Dependencies dependencies;
  dependencies.resolve = [limits = specification::Limits{.max_trials = options.max_trials}](
                             const v1::CreateExperimentRequest& request) {
    return request.has_specification_text()
               ? specification::Resolve(request.specification_text(), limits)
               : specification::Resolve(request.specification(), limits);
  };
  return CoordinatorImpl::Open(options, std::move(dependencies));
}

}  // namespace lengthwise::server
