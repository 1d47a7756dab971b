// Graph neural networks on a graph that the task does not have: every token a node of a complete
// graph, or all joined to the last one, the scratchpad, as a star ("Positional Attention",
// appendix H, whose text gives neither sizes nor code; these are those of its other networks).
//
//   h = x W_e + b_e                                  x: a token's number and its position's vector
//   per block, "convolution" (Kipf and Welling 2017):  h = relu(D^-1/2 (A + I) D^-1/2 h W + b)
//              "attention" (Velickovic et al. 2018):   h = relu(concat_k(sum_j a_kij h_j W_k) + b),
//       a_kij = softmax over i's neighbours and i itself of leaky_relu(s_k . h_i W_k + t_k . h_j
//       W_k)
//   outputs = h W + b
//
// Weights start by Xavier and biases at zero, embedding and output as torch.nn.Linear.
#ifndef LENGTHWISE_MODELS_NETWORKS_GRAPH_NETWORK_H_
#define LENGTHWISE_MODELS_NETWORKS_GRAPH_NETWORK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/networks/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Network;
struct NetworkShape;

const NetworkEntry& GraphNetworkEntry();

// As CreateNetwork.
absl::StatusOr<std::unique_ptr<Network>> CreateGraphNetwork(
    const catalogue::Parameters& parameters, absl::string_view encoding_name,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_GRAPH_NETWORK_H_
