// The lists of all networks, in display order: those that read whole sequences, then those that
// continue text. Each line joins a section of catalogue.cc, the function NAME(), to an
// implementation, CreateMADE() of factory.h: (NAME, MADE).
#ifndef LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
#define LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_

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

#endif  // LENGTHWISE_MODELS_NETWORKS_ALL_NETWORKS_H_
