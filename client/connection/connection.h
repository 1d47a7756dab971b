// The client's end of the API: calls with deadlines that return values, without gRPC in sight.
#ifndef LENGTHWISE_CLIENT_CONNECTION_CONNECTION_H_
#define LENGTHWISE_CLIENT_CONNECTION_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "rpc/channel.h"

namespace lengthwise::client {

// Thread-safe. Errors are those that each rpc documents, in the server's words, and, with the
// address in the message and IsUnreachable,
//  UNAVAILABLE: nobody serves at the address, or the connection broke;
//  DEADLINE_EXCEEDED: it did not answer in time.
// INVALID_ARGUMENT has one line "field: description" for each mistake.
//
// Text that a server sent, in responses and errors, is fit to be printed when a Connection returns
// it (platform::PrintableText): a submitter cannot steer the terminal of whoever lists experiments.
class Connection {
 public:
  struct Options {
    // For an answer to a call.
    absl::Duration timeout = absl::Seconds(15);
    // For an answer to calls that may have a large grid to expand or much to read.
    absl::Duration create_timeout = absl::Seconds(60);
    // How long a call that the server refuses for now (RESOURCE_EXHAUSTED with a delay) is
    // repeated, after the delays that the server asks for.
    absl::Duration patience = absl::Seconds(60);
  };

  // Connects when the first call is made. Errors are those of rpc/channel.h.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const rpc::ChannelOptions& channel,
                                                          const Options& options);
  // In plain text and without a token; `address` is HOST:PORT.
  Connection(const std::string& address, const Options& options);
  explicit Connection(const std::string& address) : Connection(address, Options()) {}
  ~Connection();

  const std::string& address() const { return channel_options_.server; }
  // How the server is reached.
  const rpc::ChannelOptions& channel_options() const { return channel_options_; }
  // Whom to submit for, unless a user says otherwise: $USER; empty, which is whom the token stands
  // for, where calls show one.
  std::string DefaultOwner() const;

  absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
      const v1::CreateExperimentRequest& request);
  absl::StatusOr<v1::ExtendExperimentResponse> ExtendExperiment(
      const v1::ExtendExperimentRequest& request);
  absl::StatusOr<v1::CreateExperimentResponse> EvaluateTrial(
      const v1::EvaluateTrialRequest& request);
  absl::StatusOr<v1::Experiment> GetExperiment(const std::string& name);
  // All pages, newest first, of `owner` or, where it is empty, of everybody; at most `limit`, where
  // 0 means all.
  absl::StatusOr<std::vector<v1::Experiment>> ListExperiments(size_t limit,
                                                              const std::string& owner = "");
  absl::StatusOr<v1::Experiment> CancelExperiment(const std::string& name,
                                                  const std::string& reason);
  absl::Status DeleteExperiment(const std::string& name);
  absl::StatusOr<v1::Trial> GetTrial(const std::string& name);
  // All pages, in the order of the grid.
  absl::StatusOr<std::vector<v1::Trial>> ListTrials(const std::string& experiment,
                                                    const std::string& filter);
  absl::StatusOr<v1::Trial> CancelTrial(const std::string& name, const std::string& reason);
  // Of an experiment or a trial.
  absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const std::string& name,
                                                      const std::vector<v1::TrialState>& states);
  // A trial's changes of state up to now, in their order.
  absl::StatusOr<std::vector<v1::Event>> ListStateChanges(const std::string& trial);
  absl::StatusOr<v1::SummarizeExperimentResponse> SummarizeExperiment(const std::string& name,
                                                                      bool omit_lengths);
  absl::StatusOr<v1::QueryLengthAccuraciesResponse> QueryLengthAccuracies(const std::string& name,
                                                                          bool include_intervals);
  absl::StatusOr<v1::QueryLossCurvesResponse> QueryLossCurves(const std::string& name,
                                                              int max_points);
  // Of one trial, each with all its layers; `length` 0 stands for all. None for a trial that has
  // recorded none.
  absl::StatusOr<std::vector<v1::AttentionMap>> QueryAttentionMaps(const std::string& trial,
                                                                   int length);
  absl::StatusOr<std::vector<v1::Projection>> QueryProjections(const std::string& trial);
  // Of an experiment or a trial.
  absl::StatusOr<std::vector<v1::Event>> QueryAnalyses(const std::string& name);
  struct Model {
    v1::Checkpoint checkpoint;
    // Training steps that it has had.
    int64_t step = 0;
  };
  // Calls `take` with the bytes of a trial's newest stored model, in their order; an error of it
  // ends the download and is returned. However long it takes. NOT_FOUND: nothing is stored;
  // DATA_LOSS: damaged in the store or on the way.
  absl::StatusOr<Model> DownloadModel(const std::string& trial,
                                      const std::function<absl::Status(absl::string_view)>& take);
  // Stores the file at `path`, which must have this SHA-256 and size; however long it takes.
  // FAILED_PRECONDITION: the file changed; errors of platform/files.h where it cannot be read.
  absl::Status UploadData(const std::string& path, const std::string& sha256, int64_t bytes);
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers();
  absl::StatusOr<v1::GetWantedWorkersResponse> GetWantedWorkers(
      const v1::GetWantedWorkersRequest& request);
  // Waits for the backup, however long it takes, and returns its path on the server. `progress`
  // hears of each response.
  absl::StatusOr<std::string> BackUp(
      const std::string& name, const std::function<void(const v1::BackUpResponse&)>& progress);
  absl::StatusOr<v1::Storage> GetStorage();
  absl::StatusOr<v1::Server> GetServer();

  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens();
  absl::Status RevokeToken(const std::string& token_id);
  absl::StatusOr<v1::Caller> GetCaller();

  // One call of WatchExperiment. Next and Finish are for one thread; Cancel may come from any.
  class Stream {
   public:
    virtual ~Stream() = default;
    // False at the end.
    virtual bool Next(v1::WatchExperimentResponse& response) = 0;
    // Why it ended; call it after Next was false.
    virtual absl::Status Finish() = 0;
    virtual void Cancel() = 0;
  };
  // Ends with DEADLINE_EXCEEDED after `lifetime`: call again from the last next_position.
  std::unique_ptr<Stream> Watch(const v1::WatchExperimentRequest& request, absl::Duration lifetime);

 private:
  struct Stubs;
  Connection(rpc::ChannelOptions channel_options, const Options& options,
             std::unique_ptr<Stubs> stubs);

  const rpc::ChannelOptions channel_options_;
  const Options options_;
  std::unique_ptr<Stubs> stubs_;
};

// Whether an error of a Connection says that no answer came from a server. A server that answers
// may be UNAVAILABLE, too: it is stopping, or its disk is full.
bool IsUnreachable(const absl::Status& status);

// Whether such an error says that nothing answers at the address: no server was started there, or
// the address is wrong.
bool NothingListens(const absl::Status& status);

// For how long the server refuses a call that it refuses for now; zero for other errors.
absl::Duration RetryDelay(const absl::Status& status);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_CONNECTION_H_
