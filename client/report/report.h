// A report: one HTML file that needs nothing else, for a colleague who has neither the server nor
// the program.
#ifndef LENGTHWISE_CLIENT_REPORT_REPORT_H_
#define LENGTHWISE_CLIENT_REPORT_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/plotting/gnuplot.h"
#include "client/report/report_data.h"

namespace lengthwise::client {

struct ReportOptions {
  // When the report is made; printed in it.
  absl::Time now;
  // For the viewer of attention maps; what is beyond is left out, and the report says so.
  int64_t max_attention_bytes = int64_t{8} << 20;
  GnuplotOptions gnuplot;
};

// Accuracy by length, the published tables, losses, attention maps, projections, failures and their
// reasons, what was run and on what: HTML in UTF-8. A section that has nothing to show is left out.
// Errors are those of DrawToMemory.
absl::StatusOr<std::string> RenderReport(const ReportData& data, const ReportOptions& options);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_REPORT_REPORT_H_
