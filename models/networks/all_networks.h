// The lists of all networks, in display order: those that read whole sequences, then those that
// continue text. Each line joins a section of catalogue.cc, the function NAME(), to an
// implementation, CreateNAME() of factory.h.
#ifndef LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
#define LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_

// clang-format off
#define LENGTHWISE_NETWORKS(NETWORK) \
  NETWORK(Encoder) \
  NETWORK(LoopedEncoder) \
  NETWORK(LayerwiseEncoder) \
  NETWORK(PositionalAttention) \
  NETWORK(GraphNetwork) \
  NETWORK(Rnn) \
  NETWORK(Lstm) \
  NETWORK(StackRnn) \
  NETWORK(NondeterministicStackRnn) \
  NETWORK(TapeRnn)

#define LENGTHWISE_LANGUAGE_MODELS(MODEL) \
  MODEL(CausalDecoder) \
  MODEL(LoopedDecoder)
// clang-format on

#endif  // LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
