#include "benchmarks/service/worker_stub.h"

#include "absl/time/clock.h"
#include "platform/version.h"
#include "proto/timestamps.h"

namespace lengthwise::benchmarks {

v1::SynchronizeRequest FirstCall(const std::string& worker_id) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id(worker_id);
  request.mutable_worker()->set_max_pack_size(1);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  request.set_session("benchmark");
  request.set_number(1);
  request.set_wants_lease(true);
  request.mutable_wait()->set_seconds(10);
  return request;
}

void Hold(const v1::Lease& lease, v1::SynchronizeRequest& request) {
  v1::HeldLease& held = *request.add_leases();
  held.set_lease_id(lease.lease_id());
  held.set_fencing_token(lease.fencing_token());
  request.clear_wants_lease();
  request.clear_wait();
}

WorkerStub::WorkerStub(const ServerProcess& server, const std::string& worker_id)
    : stub_(v1::WorkerService::NewStub(server.Connect())), request_(FirstCall(worker_id)) {
  // The server holds an answer without a lease for a while.
  for (int calls = 0; calls < 4 && lease_.trials_size() == 0; ++calls)
    lease_ = Synchronize().lease();
  if (lease_.trials_size() == 0) Fail("no lease");
  Hold(lease_, request_);
}

v1::SynchronizeResponse WorkerStub::Synchronize() {
  grpc::ClientContext context;
  v1::SynchronizeResponse response;
  const grpc::Status status = stub_->Synchronize(&context, request_, &response);
  if (!status.ok()) Fail("call failed: " + status.error_message());
  request_.set_number(request_.number() + 1);
  return response;
}

void WorkerStub::Heartbeat() { Synchronize(); }

v1::Event WorkerStub::NextEvent() {
  v1::Event event;
  event.set_trial(lease_.trials(0).trial());
  event.set_attempt(lease_.trials(0).attempt());
  event.set_sequence(++sequence_);
  event.set_step(sequence_);
  *event.mutable_time() = ToTimestamp(absl::Now());
  v1::TrainingPoints& points = *event.mutable_training_points();
  points.add_steps(sequence_);
  points.add_losses(1.0f);
  points.add_accuracies(0.5f);
  points.add_gradient_norms(2.0f);
  points.add_lengths(7);
  return event;
}

v1::StreamEventsRequest WorkerStub::Request() const {
  v1::StreamEventsRequest request;
  request.set_lease_id(lease_.lease_id());
  request.set_fencing_token(lease_.fencing_token());
  return request;
}

}  // namespace lengthwise::benchmarks
