// The list of all positional encodings, in display order. Each line joins a section of
// catalogue.cc, the function NAME(), to an implementation, CreateNAME() of factory.h. A line
// without either does not build.
#ifndef LENGTHWISE_MODELS_ENCODINGS_ALL_ENCODINGS_H_
#define LENGTHWISE_MODELS_ENCODINGS_ALL_ENCODINGS_H_

// clang-format off
#define LENGTHWISE_ENCODINGS(ENCODING) \
  ENCODING(None) \
  ENCODING(SinCos) \
  ENCODING(Learned) \
  ENCODING(Relative) \
  ENCODING(Alibi) \
  ENCODING(Rope) \
  ENCODING(Shaw) \
  ENCODING(SinCos2d) \
  ENCODING(Fire) \
  ENCODING(KerpleLog) \
  ENCODING(T5) \
  ENCODING(OneHot) \
  ENCODING(Binary) \
  ENCODING(Formula)
// clang-format on

#endif  // LENGTHWISE_MODELS_ENCODINGS_ALL_ENCODINGS_H_
