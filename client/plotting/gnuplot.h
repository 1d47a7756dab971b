// gnuplot as a child process: from a figure to picture files.
#ifndef LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_H_
#define LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/plotting/figure.h"
#include "client/plotting/gnuplot_script.h"

namespace lengthwise::client {

struct GnuplotOptions {
  // A program's name or path.
  std::string program = "gnuplot";
  // For all pictures of one figure.
  absl::Duration timeout = absl::Minutes(5);
};

// Draws the figure into the files that `pictures` name; each appears whole or not at all, and a
// file that was there is replaced. Call it on a thread that lives longer than the call
// (ChildProcess).
//
// Errors: FAILED_PRECONDITION: gnuplot is not installed (says how to install it), or a file cannot
// be written; INTERNAL: gnuplot failed (says what it said); INVALID_ARGUMENT as LayOut.
absl::Status DrawPictures(const Figure& figure, const PictureSize& size,
                          const std::vector<Picture>& pictures, const GnuplotOptions& options = {});

// The same pictures as bytes, one for each of `formats`. Errors as above but for files.
absl::StatusOr<std::vector<std::string>> DrawToMemory(const Figure& figure, const PictureSize& size,
                                                      const std::vector<PictureFormat>& formats,
                                                      const GnuplotOptions& options = {});

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_H_
