// What every report carries with it.
#ifndef LENGTHWISE_CLIENT_REPORT_ASSETS_H_
#define LENGTHWISE_CLIENT_REPORT_ASSETS_H_

#include "absl/strings/string_view.h"

namespace lengthwise::client {

// report.css and attention_viewer.js.
extern const absl::string_view kReportStyle;
extern const absl::string_view kAttentionViewer;

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_REPORT_ASSETS_H_
