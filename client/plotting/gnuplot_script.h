// A figure as a script for gnuplot 5.4 and later, with its data in it.
#ifndef LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_SCRIPT_H_
#define LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"

namespace lengthwise::client {

enum class PictureFormat { kSvg, kPng };

struct Picture {
  PictureFormat format = PictureFormat::kSvg;
  // Where gnuplot writes it.
  std::string path;
};

struct PictureSize {
  // Pixels; 0 stands for what suits the figure.
  int width = 0;
  int height = 0;
};

// A script that makes all of the pictures. Texts are drawn as they are: none of gnuplot's markup
// means anything in them. INVALID_ARGUMENT as LayOut.
absl::StatusOr<std::string> GnuplotScript(const Figure& figure, const PictureSize& size,
                                          const std::vector<Picture>& pictures);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_SCRIPT_H_
