#include "client/connection/testing/real_server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

// The same as in server/process.cc.
absl::StatusOr<specification::Grid> Resolve(const v1::CreateExperimentRequest& request) {
  return request.has_specification_text()
             ? specification::Resolve(request.specification_text(), specification::Limits())
             : specification::Resolve(request.specification(), specification::Limits());
}

}  // namespace

RealServer::RealServer() : TestServer(Resolve) { Serve(); }

std::string RealServer::Submit(const std::string& name, const std::vector<std::string>& encodings,
                               const std::string& owner) {
  return SubmitText(
      absl::StrCat(
          "name: ", name, "\ntasks: bucket_sort\n",
          "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n", "encodings: [",
          absl::StrJoin(encodings, ", "), "]\nlearning_rates: 0.001\nseeds: 0\n",
          "training: {steps: 200, batch_size: 4, lengths: {min: 1, max: 2}, examples: 100}\n",
          "evaluation: {lengths: [1, 4], sequences: 8}\n"),
      owner);
}

std::string RealServer::SubmitText(const std::string& yaml, const std::string& owner) {
  v1::CreateExperimentRequest request;
  request.set_owner(owner);
  request.mutable_specification_text()->set_text(yaml);
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  return calls().TryCreate(request).value().experiment().name();
}

std::string RealServer::TrialName(const std::string& experiment, const std::string& encoding) {
  return absl::StrCat(experiment, "/trials/bucket_sort-encoder-", encoding, "-lr0.001-seed0");
}

std::vector<std::string> RealServer::TrialsOf(const std::string& experiment) {
  v1::ListTrialsRequest request;
  request.set_parent(experiment);
  std::vector<std::string> names;
  do {
    const v1::ListTrialsResponse page = core().reads().ListTrials(request).value();
    for (const v1::Trial& trial : page.trials()) names.push_back(trial.name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return names;
}

v1::Lease RealServer::Train(const std::string& worker, int trials,
                            const std::vector<double>& accuracies) {
  EXPECT_EQ(calls().Register(worker, trials), absl::OkStatus());
  const v1::Lease lease = calls().Acquire(worker);
  EXPECT_EQ(lease.trials_size(), trials);
  for (int i = 0; i < lease.trials_size(); ++i) {
    EXPECT_TRUE(calls().Complete(lease, i, 10, accuracies));
  }
  return lease;
}

}  // namespace lengthwise::client
