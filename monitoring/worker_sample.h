// One worker's identity and measurements at a scrape.
#ifndef LENGTHWISE_MONITORING_WORKER_SAMPLE_H_
#define LENGTHWISE_MONITORING_WORKER_SAMPLE_H_

#include <cstdint>
#include <string>

#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

struct WorkerSample {
  std::string worker_id;
  v1::Provenance provenance;
  int32_t max_pack_size = 0;
  v1::WorkerMeasurements measurements;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_WORKER_SAMPLE_H_
