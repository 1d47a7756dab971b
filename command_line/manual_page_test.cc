#include "command_line/description.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::command_line {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CommandDescription Watch() {
  return {.name = "watch",
          .full_name = "lengthwise watch",
          .help = "Shows an experiment live",
          .footer = "Examples:\n  lengthwise watch e-1\n  .hidden\n\nFigures:\n  loss",
          .options = {{.names = {"experiment"},
                       .help = "Its name",
                       .value = "EXPERIMENT",
                       .group = "Positionals",
                       .positional = true,
                       .required = true},
                      {.names = {"--until", "-u"},
                       .help = "When it ends",
                       .value = "STATE",
                       .choices = {"done", "running"},
                       .fallback = "done",
                       .group = "Options"},
                      {.names = {"--server"},
                       .help = "A path such as C:\\x",
                       .value = "HOST:PORT",
                       .group = "Access"}}};
}

TEST(ManualPageTest, DocumentsOptionsAndArguments) {
  const std::string page = ManualPage(Watch(), "0.1.0");
  EXPECT_THAT(page, HasSubstr(".SH NAME\nlengthwise\\-watch \\- Shows an experiment live\n"));
  EXPECT_THAT(page, HasSubstr(".SH SYNOPSIS\n\\fBlengthwise watch\\fR [\\fIOPTION\\fR ...] "
                              "\\fIEXPERIMENT\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH ARGUMENTS\n.TP\n\\fIEXPERIMENT\\fR\nIts name\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-until\\fR, \\fB\\-u\\fR \\fISTATE\\fR\nWhen it ends. "
                              "Accepted: \\fBdone\\fR, \\fBrunning\\fR. Default: \\fBdone\\fR.\n"));
  EXPECT_THAT(page, HasSubstr(".SH ACCESS\n"));
  EXPECT_THAT(page, HasSubstr("C:\\ex"));
  EXPECT_THAT(page, HasSubstr(".SH SEE ALSO\n\\fBlengthwise\\fR(1)\n"));
}

TEST(ManualPageTest, KeepsExamplesAsTheyAre) {
  const std::string page = ManualPage(Watch(), "0.1.0");
  EXPECT_THAT(page,
              HasSubstr(".SH EXAMPLES\n.RS 4\n.nf\nlengthwise watch e\\-1\n\\&.hidden\n.fi\n"));
  EXPECT_THAT(page, HasSubstr(".SH FIGURES\n.RS 4\n.nf\nloss\n.fi\n"));
}

TEST(ManualPageTest, ProgramPageListsCommandsAndCommonFacts) {
  CommandDescription program{
      .name = "lengthwise", .full_name = "lengthwise", .commands = {Watch()}};
  const std::string page = ManualPage(program, "0.1.0");
  EXPECT_THAT(page, HasSubstr(".SH COMMANDS\n.TP\n\\fBwatch\\fR\nShows an experiment live\n"));
  EXPECT_THAT(page, HasSubstr("\\fBLENGTHWISE_SERVER\\fR"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n"));
  EXPECT_THAT(page, HasSubstr("has failed or cancelled trials.\n"));
  EXPECT_THAT(page, HasSubstr("\\fBlengthwise\\-watch\\fR(1)"));
  EXPECT_THAT(ManualPage(Watch(), "0.1.0"), Not(HasSubstr(".SH EXIT STATUS\n")));
}

}  // namespace
}  // namespace lengthwise::command_line
