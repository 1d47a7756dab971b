// The one list of all optimizers, in the order in which they are shown. A line joins the
// optimizer's section of catalogue.cc, a function NAME(), to its implementation, CreateNAME() of
// factory.h.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_

// clang-format off
#define LENGTHWISE_OPTIMIZERS(OPTIMIZER) \
  OPTIMIZER(Adam) \
  OPTIMIZER(AdamW) \
  OPTIMIZER(Sgd)
// clang-format on

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_ALL_OPTIMIZERS_H_
