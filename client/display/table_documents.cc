// Implements tables for documents: Markdown and LaTeX.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/display/table.h"

namespace lengthwise::client {

std::string EscapeMarkdown(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"},
                                    {"|", "\\|"},
                                    {"*", "\\*"},
                                    {"_", "\\_"},
                                    {"`", "\\`"},
                                    {"<", "&lt;"},
                                    {"\n", " "}});
}

std::string EscapeLatex(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\textbackslash{}"},
                                    {"&", "\\&"},
                                    {"%", "\\%"},
                                    {"$", "\\$"},
                                    {"#", "\\#"},
                                    {"_", "\\_"},
                                    {"{", "\\{"},
                                    {"}", "\\}"},
                                    {"~", "\\textasciitilde{}"},
                                    {"^", "\\textasciicircum{}"},
                                    {"\n", " "},
                                    {"†", "$^\\dagger$"},
                                    {"±", "$\\pm$"},
                                    {"−", "$-$"},
                                    {"–", "--"},
                                    {"--", "-{}-"},
                                    {"…", "\\dots{}"},
                                    {"Δ", "$\\Delta$"}});
}

std::string Table::RenderMarkdown() const {
  std::vector<std::string> heads;
  std::vector<std::string> rule;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const auto group = std::find_if(groups_.begin(), groups_.end(), [c](const Group& candidate) {
      return candidate.first <= c && c <= candidate.last;
    });
    heads.push_back(EscapeMarkdown(group == groups_.end()
                                       ? columns_[c].header
                                       : absl::StrCat(group->header, " ", columns_[c].header)));
    rule.push_back(columns_[c].align == Align::kRight ? "---:" : "---");
  }
  std::string text =
      absl::StrCat("| ", absl::StrJoin(heads, " | "), " |\n| ", absl::StrJoin(rule, " | "), " |\n");
  for (const auto& row : rows_) {
    absl::StrAppend(&text, "|");
    for (const Cell& cell : row) {
      const std::string escaped = EscapeMarkdown(cell.text);
      absl::StrAppend(&text, " ", cell.best ? absl::StrCat("**", escaped, "**") : escaped, " |");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string Table::RenderLatex() const {
  std::string alignment;
  for (const Column& column : columns_) alignment += column.align == Align::kRight ? "r" : "l";
  std::string text =
      absl::StrCat("% \\usepackage{booktabs}\n\\begin{tabular}{", alignment, "}\n\\toprule\n");
  if (!groups_.empty()) {
    std::vector<std::string> heads;
    std::vector<std::string> rules;
    for (size_t c = 0; c < columns_.size();) {
      const auto group = std::find_if(groups_.begin(), groups_.end(),
                                      [c](const Group& candidate) { return candidate.first == c; });
      if (group == groups_.end()) {
        heads.push_back("");
        ++c;
        continue;
      }
      const size_t columns = group->last - group->first + 1;
      heads.push_back(
          absl::StrCat("\\multicolumn{", columns, "}{c}{", EscapeLatex(group->header), "}"));
      rules.push_back(absl::StrCat("\\cmidrule(lr){", c + 1, "-", c + columns, "}"));
      c += columns;
    }
    absl::StrAppend(&text, absl::StrJoin(heads, " & "), " \\\\\n", absl::StrJoin(rules, " "), "\n");
  }
  std::vector<std::string> heads;
  for (const Column& column : columns_) heads.push_back(EscapeLatex(column.header));
  absl::StrAppend(&text, absl::StrJoin(heads, " & "), " \\\\\n\\midrule\n");
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) {
      const std::string escaped = EscapeLatex(cell.text);
      cells.push_back(cell.best ? absl::StrCat("\\textbf{", escaped, "}") : escaped);
    }
    absl::StrAppend(&text, absl::StrJoin(cells, " & "), " \\\\\n");
  }
  absl::StrAppend(&text, "\\bottomrule\n\\end{tabular}\n");
  return text;
}

}  // namespace lengthwise::client
