#include "benchmarks/service/worker_stub.h"

#include "absl/time/clock.h"
#include "platform/version.h"
#include "proto/timestamps.h"

namespace lengthwise::benchmarks {

WorkerStub::WorkerStub(const ServerProcess& server, const std::string& worker_id)
    : worker_id_(worker_id), stub_(v1::WorkerService::NewStub(server.Connect())) {
  v1::RegisterWorkerRequest registration;
  registration.mutable_worker()->set_worker_id(worker_id);
  registration.mutable_worker()->set_max_pack_size(1);
  registration.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  v1::RegisterWorkerResponse registered;
  grpc::ClientContext register_context;
  grpc::Status status = stub_->RegisterWorker(&register_context, registration, &registered);
  if (!status.ok()) Fail("the registration was rejected: " + status.error_message());
  v1::AcquireLeaseRequest acquire;
  acquire.set_worker_id(worker_id);
  acquire.mutable_wait()->set_seconds(10);
  v1::AcquireLeaseResponse acquired;
  grpc::ClientContext acquire_context;
  status = stub_->AcquireLease(&acquire_context, acquire, &acquired);
  if (!status.ok() || !acquired.has_lease()) Fail("no lease: " + status.error_message());
  lease_ = acquired.lease();
}

void WorkerStub::Heartbeat() {
  v1::HeartbeatRequest request;
  request.set_worker_id(worker_id_);
  v1::HeldLease& held = *request.add_leases();
  held.set_lease_id(lease_.lease_id());
  held.set_fencing_token(lease_.fencing_token());
  grpc::ClientContext context;
  v1::HeartbeatResponse response;
  const grpc::Status status = stub_->Heartbeat(&context, request, &response);
  if (!status.ok()) Fail("heartbeat failed: " + status.error_message());
}

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
