// A worker reduced to its calls, for load programs that need no training.
#ifndef LENGTHWISE_BENCHMARKS_SERVICE_WORKER_STUB_H_
#define LENGTHWISE_BENCHMARKS_SERVICE_WORKER_STUB_H_

#include <memory>
#include <string>

#include "benchmarks/service/server_process.h"
#include "proto/worker_service.grpc.pb.h"

namespace lengthwise::benchmarks {

// The first call of a worker that trains one trial at once and wants a lease.
v1::SynchronizeRequest FirstCall(const std::string& worker_id);
// The next call of the worker, which holds the lease.
void Hold(const v1::Lease& lease, v1::SynchronizeRequest& request);

// Leases one pack. Heartbeat keeps the lease alive.
class WorkerStub {
 public:
  WorkerStub(const ServerProcess& server, const std::string& worker_id);

  v1::WorkerService::Stub& stub() { return *stub_; }
  const v1::Lease& lease() const { return lease_; }
  void Heartbeat();
  // An event of the lease's first trial with the next sequence number and the current time.
  v1::Event NextEvent();
  // A request without events.
  v1::StreamEventsRequest Request() const;

 private:
  v1::SynchronizeResponse Synchronize();

  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  v1::SynchronizeRequest request_;
  v1::Lease lease_;
  int64_t sequence_ = 0;
};

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_SERVICE_WORKER_STUB_H_
