// The client side of the API: calls with deadlines that return values and hide gRPC.
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
#include "google/protobuf/message.h"
#include "platform/status_macros.h"
#include "proto/access_service.pb.h"
#include "proto/administration_service.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "rpc/channel.h"

namespace lengthwise::client {

// Thread-safe. Errors are those that each rpc documents, with the server's message. Two more have
// the address in the message, and IsUnreachable is true for them:
//  UNAVAILABLE: no server listens at the address, or the connection broke;
//  DEADLINE_EXCEEDED: the server did not answer in time. INVALID_ARGUMENT has one line "field:
//  description" for each mistake.
//
// A Connection makes all text of responses and errors printable (platform::PrintableText), so that
// a submitter cannot inject terminal escape sequences into another user's listing.
class Connection {
 public:
  struct Options {
    // Deadline of a call.
    absl::Duration timeout = absl::Seconds(15);
    // Deadline of calls that may expand a large grid or read much data.
    absl::Duration create_timeout = absl::Seconds(60);
    // Maximum time for retries of a call that the server rejects with RESOURCE_EXHAUSTED and a
    // delay.
    // Each retry waits for the delay that the server asks for.
    absl::Duration patience = absl::Seconds(60);
  };

  // Connects on the first call. Errors are those of rpc/channel.h.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const rpc::ChannelOptions& channel,
                                                          const Options& options);
  // In plain text and without a token; `address` is HOST:PORT.
  explicit Connection(const std::string& address);

  const std::string& address() const { return channel_options_.server; }
  // Server address and credentials.
  const rpc::ChannelOptions& channel_options() const { return channel_options_; }
  // Default owner of submitted experiments: $USER, or empty if calls present a token. The server
  // then uses the token's principal.
  std::string DefaultOwner() const;

  // Makes a call with one answer. Its method follows from the request's type. INTERNAL if that
  // method does not answer with a `Response`.
  template <typename Response>
  absl::StatusOr<Response> Call(const google::protobuf::Message& request) const {
    Response response;
    RETURN_IF_ERROR(CallInto(request, response));
    return response;
  }

  absl::StatusOr<v1::Experiment> GetExperiment(const std::string& name);
  // What a user means by a text.
  using FindRequest = v1::FindExperimentRequest;
  absl::StatusOr<v1::FindExperimentResponse> Find(
      const std::string& text, FindRequest::Use use = FindRequest::READ,
      FindRequest::Kind kind = FindRequest::EXPERIMENT_OR_TRIAL);
  // Reads all pages, newest first. An empty `owner` means all owners, a `limit` of 0 no limit.
  // `queue_pause` gets the response's field, unless it is null.
  absl::StatusOr<std::vector<v1::Experiment>> ListExperiments(size_t limit,
                                                              const std::string& owner = "",
                                                              std::string* queue_pause = nullptr);
  // Reads all pages, in grid order.
  absl::StatusOr<std::vector<v1::Trial>> ListTrials(const std::string& experiment,
                                                    const std::string& filter);
  // Returns a trial's log lines and state changes up to now, oldest first.
  absl::StatusOr<std::vector<v1::Event>> Log(const std::string& trial);
  // Of these, the state changes.
  absl::StatusOr<std::vector<v1::Event>> ListStateChanges(const std::string& trial);
  absl::StatusOr<v1::QueryLengthAccuraciesResponse> QueryLengthAccuracies(const std::string& name,
                                                                          bool include_intervals);
  // Returns a trial's attention maps, each with all layers. A `length` of 0 means all lengths.
  // Empty if the trial recorded none.
  absl::StatusOr<std::vector<v1::AttentionMap>> QueryAttentionMaps(const std::string& trial,
                                                                   int length);
  // `name` is an experiment or a trial.
  absl::StatusOr<std::vector<v1::Event>> QueryAnalyses(const std::string& name);
  // Returns the archive of a trial's network (UploadData). NOT_FOUND if it is a built-in one.
  absl::StatusOr<std::string> DownloadNetwork(const std::string& trial);
  // Uploads the file at `path`, which must have this SHA-256 and size. Has no deadline.
  // FAILED_PRECONDITION: the file changed; errors of platform/files.h: it cannot be read.
  absl::Status UploadData(const std::string& path, const std::string& sha256, int64_t bytes);
  // Waits for the backup without a deadline and returns the last response. Calls `progress` with
  // each response.
  absl::StatusOr<v1::BackUpResponse> BackUp(
      const v1::BackUpRequest& request,
      const std::function<void(const v1::BackUpResponse&)>& progress);
  // One call of WatchExperiment. Next and Finish are for one thread; Cancel is thread-safe.
  class Stream {
   public:
    virtual ~Stream() = default;
    // False at the end.
    virtual bool Next(v1::WatchExperimentResponse& response) = 0;
    // Returns why the stream ended. Call it after Next returned false.
    virtual absl::Status Finish() = 0;
    virtual void Cancel() = 0;
  };
  // Ends with DEADLINE_EXCEEDED after ten minutes; resume from the last next_position.
  std::unique_ptr<Stream> Watch(const v1::WatchExperimentRequest& request);

 private:
  // Calls with streams.
  struct Streams;
  Connection(rpc::ChannelOptions channel_options, const Options& options,
             std::shared_ptr<grpc::Channel> channel);

  absl::Status CallInto(const google::protobuf::Message& request,
                        google::protobuf::Message& response) const;

  const rpc::ChannelOptions channel_options_;
  const Options options_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// Returns "quickstart-1" for "experiments/quickstart-1", and the trial's id for a trial's name.
inline std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// Connection::Find for a text that must mean an experiment, or a trial.
absl::StatusOr<v1::Experiment> FindExperiment(
    Connection& connection, const std::string& text,
    Connection::FindRequest::Use use = Connection::FindRequest::READ);
absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text);

// Returns true if an error of a Connection means that no server answered. A server may also answer
// UNAVAILABLE, when it is stopping or its disk is full; this is false then.
bool IsUnreachable(const absl::Status& status);

// Returns true if nothing listens at the address: no server runs there, or the address is wrong.
bool NothingListens(const absl::Status& status);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_CONNECTION_H_
