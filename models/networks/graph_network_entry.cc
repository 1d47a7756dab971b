#include <string>

#include "models/networks/graph_network.h"
#include "models/networks/transformer_entry.h"

namespace lengthwise::models {
namespace {

EncodingContext Context(const catalogue::Parameters& parameters) {
  EncodingContext context = TransformerContext(parameters);
  context.as_vectors = true;
  return context;
}

}  // namespace

const NetworkEntry& GraphNetworkEntry() {
  static const NetworkEntry& entry = *new NetworkEntry{
      {.name = "graph_network",
       .title = "Graph network",
       .documentation =
           "A graph convolutional or graph attention network whose nodes are the tokens "
           "(positional attention, appendix H, which does not say how large they are: here as deep "
           "and wide as the paper's other networks).",
       .parameters = {{.name = "architecture",
                       .default_value = std::string("convolution"),
                       .documentation = "\"convolution\" (GCN) or \"attention\" (GAT).",
                       .allowed = {"convolution", "attention"}},
                      {.name = "graph",
                       .default_value = std::string("complete"),
                       .documentation =
                           "\"complete\": every token is joined to every other; \"star\": all "
                           "to the last one, the scratchpad.",
                       .allowed = {"complete", "star"}},
                      {.name = "blocks",
                       .default_value = int64_t{4},
                       .documentation = "Rounds of messages between neighbours.",
                       .minimum = 1,
                       .maximum = 256},
                      {.name = "heads",
                       .default_value = int64_t{2},
                       .documentation = "Heads of graph attention; a divisor of d_model.",
                       .minimum = 1,
                       .maximum = 256},
                      WidthParameter(64)}},
      /*task_kinds=*/{tasks::TaskKind::kRegression},
      CheckHeads,
      Context};
  return entry;
}

}  // namespace lengthwise::models
