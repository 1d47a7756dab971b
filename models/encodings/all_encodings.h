// The one list of all positional encodings, in the order in which they are shown. A line here joins
// the encoding's section of catalogue.cc, a function NAME(), to its implementation, CreateNAME() of
// factory.h; a line without either does not build.
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
