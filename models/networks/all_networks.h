// The lists of all networks, in the order in which they are shown: those that read sequences whole,
// and behind them those that continue text. A line joins the network's section of catalogue.cc, a
// function NAME(), to its implementation, CreateNAME() of factory.h.
#ifndef LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
#define LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_

// clang-format off
#define LENGTHWISE_NETWORKS(NETWORK) \
  NETWORK(Encoder) \
  NETWORK(LayerwiseEncoder) \
  NETWORK(PositionalAttention) \
  NETWORK(GraphNetwork)

#define LENGTHWISE_LANGUAGE_MODELS(MODEL) \
  MODEL(CausalDecoder)
// clang-format on

#endif  // LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
