// The list of all optimizers, in display order. Each line joins a section of catalogue.cc, the
// function NAME(), to an implementation, CreateNAME() of factory.h.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_

// clang-format off
#define LENGTHWISE_OPTIMIZERS(OPTIMIZER) \
  OPTIMIZER(Adam) \
  OPTIMIZER(AdamW) \
  OPTIMIZER(Sgd)
// clang-format on

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_
