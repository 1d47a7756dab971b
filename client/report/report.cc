#include "client/report/report.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection/names.h"
#include "client/plotting/accuracy_by_length.h"
#include "client/plotting/accuracy_over_time.h"
#include "client/plotting/loss_figure.h"
#include "client/plotting/projection_figure.h"
#include "client/rendering/accuracy_summary.h"
#include "client/rendering/message_json.h"
#include "client/rendering/numbers.h"
#include "client/rendering/table.h"
#include "client/report/assets.h"
#include "client/report/attention_maps.h"
#include "client/watching/live_lines.h"
#include "platform/sha256.h"
#include "platform/version.h"

namespace lengthwise::client {
namespace {

// Columns of the accuracy table, as characters of a terminal, and of the one that phones show
// first.
constexpr int kTableWidth = 130;
constexpr int kPhoneTableWidth = 44;
constexpr size_t kMostFailures = 50;

struct Section {
  std::string id;
  std::string title;
  std::string body;
};

std::string FormatTimestamp(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

std::string Item(absl::string_view name, absl::string_view value) {
  if (value.empty()) return "";
  return absl::StrCat("<dt>", EscapeHtml(name), "</dt><dd>", EscapeHtml(value), "</dd>\n");
}

// An image element, so that a picture's identifiers and styles are its own. Empty where the figure
// has nothing to show.
absl::StatusOr<std::string> Picture(const absl::StatusOr<Figure>& figure,
                                    const GnuplotOptions& gnuplot) {
  if (!figure.ok()) return "";
  const auto drawn = DrawToMemory(*figure, PictureSize(), {PictureFormat::kSvg}, gnuplot);
  if (!drawn.ok()) return drawn.status();
  return absl::StrCat("<figure><img alt=\"", EscapeHtml(figure->title),
                      "\" src=\"data:image/svg+xml;base64,", absl::Base64Escape(drawn->front()),
                      "\"></figure>\n");
}

std::string Head(const ReportData& data, const ReportOptions& options) {
  const v1::Experiment& experiment = data.experiment;
  const v1::ExperimentSpecification& specification = experiment.specification();
  double seconds = 0;
  for (const v1::Trial& trial : data.plots[0].trials) {
    seconds += trial.outcome().training_seconds() + trial.outcome().evaluation_seconds();
  }
  std::string head = absl::StrCat("<h1>", EscapeHtml(ShortName(experiment.name())), "</h1>\n");
  if (!specification.description().empty()) {
    absl::StrAppend(&head, "<p>", EscapeHtml(specification.description()), "</p>\n");
  }
  absl::StrAppend(
      &head, "<dl>\n", Item("trials", DescribeCounts(experiment.trials())),
      Item("owner", experiment.owner()), Item("protocol", specification.protocol()),
      Item("submitted", FormatTimestamp(experiment.create_time())),
      experiment.has_end_time() ? Item("ended", FormatTimestamp(experiment.end_time())) : "",
      Item("device time", seconds > 0 ? FormatClock(absl::Seconds(seconds)) : ""), "</dl>\n",
      "<p class=\"soft\">Made on ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", options.now, absl::UTCTimeZone()), " by lengthwise ",
      EscapeHtml(platform::kVersion), ".</p>\n");
  return head;
}

absl::StatusOr<Section> Accuracy(const ReportData& data, const ReportOptions& options) {
  const AccuracySummary summary = Summarize(data.experiment.specification(), data.summary);
  Section section{
      .id = "accuracy",
      .title = absl::StrCat(summary.is_loss ? "Error by " : "Accuracy by ", summary.axis_title)};
  if (summary.rows.empty()) {
    section.body = "<p>No trial has been evaluated in full.</p>\n";
    return section;
  }
  section.body = absl::StrCat(
      "<p class=\"soft\">", Caption(summary), ".",
      summary.missing_trials > 0
          ? absl::StrCat(" ",
                         Counted(summary.missing_trials, "trial that has not succeeded is",
                                 "trials that have not succeeded are"),
                         " not in it.")
          : "",
      "</p>\n<div class=\"wide phone\">", MakeAccuracyTable(summary, kPhoneTableWidth).RenderHtml(),
      "</div>\n<div class=\"wide\">", MakeAccuracyTable(summary, kTableWidth).RenderHtml(),
      "</div>\n");
  for (const auto& figure :
       {AccuracyByLengthFigure(data.plots), AccuracyOverTimeFigure(data.plots)}) {
    auto picture = Picture(figure, options.gnuplot);
    if (!picture.ok()) return picture.status();
    section.body += *picture;
  }
  return section;
}

Section Published(const ReportData& data) {
  return {.id = "published", .title = "Beside published numbers", .body = data.comparisons};
}

absl::StatusOr<Section> Losses(const ReportData& data, const ReportOptions& options) {
  auto picture = Picture(LossFigure(data.plots), options.gnuplot);
  if (!picture.ok()) return picture.status();
  return Section{.id = "loss", .title = "Training loss", .body = *std::move(picture)};
}

absl::StatusOr<Section> Attention(const ReportData& data, const ReportOptions& options) {
  Section section{.id = "attention", .title = "Attention"};
  const auto maps = MakeAttentionMaps(data.plots, options.max_attention_bytes);
  if (!maps.ok()) return maps.status();
  if (maps->left_out > 0) {
    absl::StrAppend(
        &section.body, "<p class=\"soft\">", Counted(maps->left_out, "map is", "maps are"),
        " left out, because this file would be too large; `lengthwise attention` shows ",
        maps->left_out == 1 ? "it" : "them", ".</p>\n");
  }
  if (maps->maps == 0) return section;
  absl::StrAppend(
      &section.body,
      "<p class=\"soft\">Of each task, network and encoding the trial that is best on what "
      "training did not show.</p>\n"
      "<div class=\"attention\" id=\"attention-viewer\">\n<div class=\"choices\">"
      "<label>Model <select></select></label> <label>Input <select></select></label> "
      "<label>Sequence <select></select></label> <label>Layer <select></select></label> "
      "<label>Head <select></select></label></div>\n"
      "<canvas width=\"560\" height=\"560\" role=\"img\" aria-label=\"Attention map\"></canvas>\n"
      "<output></output>\n</div>\n<noscript><p>The maps need JavaScript.</p></noscript>\n"
      "<script type=\"application/json\" id=\"attention-maps\">",
      maps->json, "</script>\n<script>", kAttentionViewer, "</script>\n");
  return section;
}

absl::StatusOr<Section> Projections(const ReportData& data, const ReportOptions& options) {
  auto picture = Picture(ProjectionFigure(data.plots), options.gnuplot);
  if (!picture.ok()) return picture.status();
  return Section{
      .id = "projections", .title = "Activations in two dimensions", .body = *std::move(picture)};
}

// Trials with the same reason stand together.
Section Failures(const ReportData& data) {
  std::map<std::string, std::vector<std::string>> trials;
  for (const v1::Trial& trial : data.plots[0].trials) {
    if (trial.state() == v1::FAILED) trials[trial.reason()].push_back(ShortName(trial.name()));
  }
  Section section{.id = "failures", .title = "Failures"};
  for (const auto& [reason, names] : trials) {
    const size_t shown = std::min(names.size(), kMostFailures);
    absl::StrAppend(
        &section.body, "<h3 class=\"failed\">", EscapeHtml(reason), "</h3>\n<p>",
        EscapeHtml(absl::StrJoin(names.begin(), names.begin() + static_cast<long>(shown), ", ")),
        names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "", "</p>\n");
  }
  return section;
}

std::string RanOn(const v1::Provenance& provenance) {
  return absl::StrCat(provenance.device(), " ", provenance.instruction_set(), ", ",
                      provenance.threads(), " threads, host ", provenance.host());
}

std::string RanWith(const v1::Provenance& provenance) {
  return absl::StrCat("lengthwise ", provenance.program_version(), " ",
                      provenance.source_revision(), ", LibTorch ", provenance.libtorch_version(),
                      provenance.cuda_version().empty() ? "" : ", CUDA ",
                      provenance.cuda_version());
}

Section Setup(const ReportData& data) {
  std::set<std::string> machines, programs;
  for (const v1::Trial& trial : data.plots[0].trials) {
    if (!trial.outcome().has_provenance()) continue;
    machines.insert(RanOn(trial.outcome().provenance()));
    programs.insert(RanWith(trial.outcome().provenance()));
  }
  const auto json = MessageJson(data.experiment.specification(), /*indented=*/true);
  const std::string specification =
      json.ok() ? *json : data.experiment.specification().DebugString();
  return {.id = "setup",
          .title = "What was run, and on what",
          .body = absl::StrCat("<dl>\n", Item("ran on", absl::StrJoin(machines, "; ")),
                               Item("with", absl::StrJoin(programs, "; ")),
                               "</dl>\n<details><summary>The whole specification, every default "
                               "filled in</summary>\n<pre>",
                               EscapeHtml(specification), "</pre></details>\n")};
}

// What a browser lets the file do, whatever text found its way into it: show its own styles and
// pictures and run its own script. Nothing is fetched, sent or framed.
std::string ContentSecurityPolicy() {
  const std::string hash = absl::HexStringToBytes(platform::Sha256Hex(kAttentionViewer));
  return absl::StrCat(
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-",
      absl::Base64Escape(hash), "'; base-uri 'none'; form-action 'none'");
}

}  // namespace

absl::StatusOr<std::string> RenderReport(const ReportData& data, const ReportOptions& options) {
  std::vector<absl::StatusOr<Section>> sections;
  sections.push_back(Accuracy(data, options));
  sections.push_back(Published(data));
  sections.push_back(Losses(data, options));
  sections.push_back(Attention(data, options));
  sections.push_back(Projections(data, options));
  sections.push_back(Failures(data));
  sections.push_back(Setup(data));
  std::string links, body;
  for (const absl::StatusOr<Section>& section : sections) {
    if (!section.ok()) return section.status();
    if (section->body.empty()) continue;
    absl::StrAppend(&links, "<a href=\"#", section->id, "\">", section->title, "</a>\n");
    absl::StrAppend(&body, "<section>\n<h2 id=\"", section->id, "\">", section->title, "</h2>\n",
                    section->body, "</section>\n");
  }
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      ContentSecurityPolicy(),
      "\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      EscapeHtml(ShortName(data.experiment.name())), "</title>\n<style>\n", kReportStyle,
      "</style>\n</head>\n<body>\n<header>\n", Head(data, options), "<nav>\n", links,
      "</nav>\n</header>\n<main>\n", body, "</main>\n</body>\n</html>\n");
}

}  // namespace lengthwise::client
