// Catalogue of all networks by name, without LibTorch. A new network needs a section of
// catalogue.cc, a file with its implementation and a line in a list below.
#ifndef LENGTHWISE_MODELS_NETWORKS_CATALOGUE_H_
#define LENGTHWISE_MODELS_NETWORKS_CATALOGUE_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "tasks/task.h"

// All networks, in display order: those that read whole sequences, then those that continue text.
// Each line joins a section of catalogue.cc, the function NAME(), to an implementation,
// CreateMADE() of factory.h: (NAME, MADE).
// clang-format off
#define LENGTHWISE_NETWORKS(NETWORK) \
  NETWORK(Encoder, Encoder) \
  NETWORK(LoopedEncoder, Encoder) \
  NETWORK(LayerwiseEncoder, LayerwiseEncoder) \
  NETWORK(PositionalAttention, PositionalAttention) \
  NETWORK(GraphNetwork, GraphNetwork) \
  NETWORK(Rnn, Rnn) \
  NETWORK(Lstm, Lstm) \
  NETWORK(StackRnn, StackRnn) \
  NETWORK(NondeterministicStackRnn, NondeterministicStackRnn) \
  NETWORK(TapeRnn, TapeRnn)

#define LENGTHWISE_LANGUAGE_MODELS(MODEL) \
  MODEL(CausalDecoder, CausalDecoder) \
  MODEL(LoopedDecoder, CausalDecoder)
// clang-format on

namespace lengthwise::models {

struct NetworkEntry : catalogue::Entry {
  // Kinds of task that the network can learn.
  std::vector<tasks::TaskKind> task_kinds;
  bool Learns(tasks::TaskKind kind) const { return absl::c_linear_search(task_kinds, kind); }
  // Appends problems of the combination of parameters (heads must divide d_model), with fields
  // under `path`.
  void (*check)(const catalogue::Parameters& parameters, absl::string_view path,
                std::vector<catalogue::Problem>& problems) = nullptr;
  // Requirements on an encoding in this network; never null. The caller sets longest_sequence.
  EncodingContext (*encoding_context)(const catalogue::Parameters& parameters) = nullptr;
};

// The networks that this program has, and these with `python`, the user's own. They live forever.
absl::Span<const NetworkEntry* const> NetworkEntries();
absl::Span<const NetworkEntry* const> EveryNetworkEntry();

// True if the network takes no encoding but `none`.
bool ReadsInOrder(absl::string_view network);

// The name of the network that computes a user's PyTorch module (worker/python_network).
inline constexpr char kPythonNetwork[] = "python";
// The archive of a module's files is JSON that begins with this. Most bytes of one.
inline constexpr char kPythonArchiveStart[] = "{\"lengthwise_network\":1,";
inline constexpr int64_t kMostPythonArchive = int64_t{3} << 19;

// How often a network applies its blocks, with the same weights each time.
struct Loops {
  // From a network's parameters; once if it is not looped.
  explicit Loops(const catalogue::Parameters& parameters);

  // For a sequence with `n` tokens of input or, in a text, of its prompt. At least 1.
  int64_t Of(int64_t n) const;

  int64_t constant = 1;
  double per_token = 0;
  // Adds the embeddings to the input of every loop after the first.
  bool inject_input = false;
};

// Sizes of the hidden layers that `write_layers` of "tape_rnn" lists, such as "64, 64".
absl::StatusOr<std::vector<int64_t>> WriteLayers(absl::string_view text);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_CATALOGUE_H_
