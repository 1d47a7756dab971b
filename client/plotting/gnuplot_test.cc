// Runs the real gnuplot and looks at what it made.
#include "client/plotting/gnuplot.h"

#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

std::string TestDirectory() {
  const std::string path = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_TRUE(platform::CreateDirectories(path).ok());
  return path;
}

// What describe_picture.py, which parses XML and PNG with Python's own libraries, says of a file.
std::string Describe(const std::string& path) {
  const std::string output = path + ".txt";
  auto python = platform::ChildProcess::Start(
      {.arguments = {"python3", "client/plotting/describe_picture.py", path},
       .output_file = output});
  EXPECT_TRUE(python.ok()) << python.status();
  const auto exit = (*python)->WaitFor(absl::Seconds(60));
  const std::string text = platform::ReadFile(output).value_or("");
  EXPECT_TRUE(exit.has_value() && exit->ok()) << text;
  return text;
}

Series Line(const std::string& name, SeriesStyle style) {
  return {.name = name,
          .style = style,
          .points = {{1, 1.0, 0.9, 1.0}, {20, 0.8, 0.7, 0.9}, {60, 0.3, 0.2, 0.4}}};
}

Figure Accuracies(int panels) {
  Figure figure{
      .kind = "accuracy_by_length",
      .title = "Accuracy: quickstart-1",
      .caption = "Mean over 3 seeds.",
      .x = {.label = "input length", .range = {{0.0, 60.0}}},
      .y = {.label = "token accuracy", .ticks = Axis::Ticks::kPercent, .range = {{0.0, 1.0}}},
      .columns = panels > 1 ? 2 : 1,
      .shaded_label = "seen in training: lengths 1 to 20"};
  for (int i = 0; i < panels; ++i) {
    Panel panel{.title = absl::StrCat("Task ", i + 1),
                .series = {Line("sin / cos", {}), Line("Randomized", {.dashed = true})}};
    panel.shaded = {0, 20};
    panel.references = {{0.2, "random guess 20 %"}};
    figure.panels.push_back(panel);
  }
  return figure;
}

Figure Maps() {
  Figure figure{.kind = "attention", .title = "Attention", .columns = 2, .map_label = "attention"};
  for (int i = 0; i < 2; ++i) {
    Panel panel{.title = absl::StrCat("layer ", i + 1)};
    panel.map = {.size = 2, .values = {0, 0.25f, 0.5f, 1}, .tokens = 2, .first_output = 1};
    figure.panels.push_back(panel);
  }
  figure.row_titles = {"sin / cos\nlength 1"};
  return figure;
}

TEST(GnuplotTest, MakesAnSvgThatParsesAndSaysWhatTheFigureSays) {
  const std::string path = TestDirectory() + "/figure.svg";
  const Figure figure = Accuracies(1);
  ASSERT_TRUE(DrawPictures(figure, {.width = 700}, {{PictureFormat::kSvg, path}}).ok());
  const std::string text = Describe(path);
  EXPECT_THAT(text, HasSubstr("svg 700 x "));
  for (const std::string label :
       {"Accuracy: quickstart-1", "input length", "token accuracy", "sin / cos", "Randomized",
        "Task 1", "seen in training: lengths 1 to 20", "random guess 20 %", "100 %", "60",
        "Mean over 3 seeds."}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("text: ", label, "\n")));
  }
}

// A curve and its sample in the legend, also beside those of a solid one of the same colour.
TEST(GnuplotTest, DashedLinesAreDashedInTheLegend) {
  const std::string path = TestDirectory() + "/figure.svg";
  Figure figure = Accuracies(1);
  figure.panels[0].references.clear();
  ASSERT_TRUE(DrawPictures(figure, {}, {{PictureFormat::kSvg, path}}).ok());
  const std::string svg = platform::ReadFile(path).value();
  int dashed = 0;
  for (size_t at = svg.find("stroke-dasharray="); at != std::string::npos;
       at = svg.find("stroke-dasharray=", at + 1)) {
    ++dashed;
  }
  EXPECT_EQ(dashed, 2);
}

TEST(GnuplotTest, MakesAPngOfTheAskedSizeThatIsNotBlank) {
  const std::string path = TestDirectory() + "/figure.png";
  ASSERT_TRUE(DrawPictures(Accuracies(3), {640, 480}, {{PictureFormat::kPng, path}}).ok());
  const std::string text = Describe(path);
  EXPECT_THAT(text, HasSubstr("png 640 x 480\n"));
  int values = 0;
  ASSERT_EQ(std::sscanf(text.substr(text.find("values")).c_str(), "values: %d", &values), 1);
  EXPECT_GT(values, 50);  // a blank picture has 2
}

TEST(GnuplotTest, DrawsTextAsItIs) {
  Figure figure = Accuracies(1);
  figure.title = "a_b^c {x} @ & <y> ~ \\n 'q' \"d\" – é &amp; $0 `date` %d";
  figure.panels[0].series[0].name = "randomized_sin_cos_max_position=4096";
  const std::string path = TestDirectory() + "/figure.svg";
  const absl::Status status = DrawPictures(figure, {}, {{PictureFormat::kSvg, path}});
  ASSERT_TRUE(status.ok()) << status;
  const std::string text = Describe(path);
  EXPECT_THAT(text, HasSubstr(absl::StrCat("text: ", figure.title, "\n")));
  EXPECT_THAT(text, HasSubstr("text: randomized_sin_cos_max_position=4096\n"));
}

TEST(GnuplotTest, DrawsMapsAsImages) {
  const std::string directory = TestDirectory();
  ASSERT_TRUE(DrawPictures(Maps(), {},
                           {{PictureFormat::kSvg, directory + "/a.svg"},
                            {PictureFormat::kPng, directory + "/a.png"}})
                  .ok());
  const std::string text = Describe(directory + "/a.svg");
  EXPECT_THAT(text, HasSubstr("images: 2\n"));
  EXPECT_THAT(text, HasSubstr("text: layer 2\n"));
  EXPECT_THAT(text, HasSubstr("text: length 1\n"));
  EXPECT_THAT(Describe(directory + "/a.png"), HasSubstr("png "));
}

TEST(GnuplotTest, DrawsFiguresWithGapsAndLogarithmicAxes) {
  Figure figure = Accuracies(1);
  figure.y = {.label = "loss", .scale = Axis::Scale::kLog10, .range = {{1e-4, 2.0}}};
  figure.x = {.label = "L", .scale = Axis::Scale::kLog2, .range = {{1.0, 64.0}}};
  figure.panels[0].series[0].points[1].y = std::nan("");
  figure.panels[0].series.push_back({.kind = Series::Kind::kScatter, .points = {}});
  const std::string path = TestDirectory() + "/figure.svg";
  const absl::Status status = DrawPictures(figure, {}, {{PictureFormat::kSvg, path}});
  ASSERT_TRUE(status.ok()) << status;
  const std::string text = Describe(path);
  EXPECT_THAT(text, HasSubstr("text: 0.001\n"));
  EXPECT_THAT(text, HasSubstr("text: 32\n"));
}

TEST(GnuplotTest, TheKeptScriptDrawsThePicturesAgain) {
  const std::string directory = TestDirectory();
  const auto script = GnuplotScript(Accuracies(2), {},
                                    {{PictureFormat::kSvg, directory + "/it's.svg"},
                                     {PictureFormat::kPng, directory + "/it's.png"}});
  ASSERT_TRUE(script.ok());
  const std::string path = directory + "/figure.gp";
  ASSERT_TRUE(platform::WriteFileAtomically(path, *script).ok());
  auto gnuplot = platform::ChildProcess::Start({.arguments = {"gnuplot", path}});
  ASSERT_TRUE(gnuplot.ok());
  const auto exit = (*gnuplot)->WaitFor(absl::Seconds(60));
  ASSERT_TRUE(exit.has_value() && exit->ok());
  EXPECT_THAT(Describe(directory + "/it's.svg"), HasSubstr("text: Task 2\n"));
  EXPECT_THAT(Describe(directory + "/it's.png"), HasSubstr("png "));
}

TEST(GnuplotTest, FilesGetThePermissionsThatTheUserGives) {
  const std::string path = TestDirectory() + "/figure.svg";
  const mode_t mask = umask(022);
  ASSERT_TRUE(DrawPictures(Accuracies(1), {}, {{PictureFormat::kSvg, path}}).ok());
  umask(mask);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(GnuplotTest, SaysHowToInstallItWhereItIsMissing) {
  const std::string path = TestDirectory() + "/figure.svg";
  const absl::Status status = DrawPictures(Accuracies(1), {}, {{PictureFormat::kSvg, path}},
                                           {.program = "gnuplot-that-is-not-there"});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("apt-get install gnuplot-nox"));
  EXPECT_FALSE(platform::ReadFile(path).ok());
}

TEST(GnuplotTest, SaysWhatGnuplotSaidWhenItFails) {
  const std::string directory = TestDirectory();
  const std::string program = directory + "/gnuplot";
  std::ofstream(program) << "#!/bin/sh\necho 'no such terminal' >&2\nexit 3\n";
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  const absl::Status status = DrawPictures(
      Accuracies(1), {}, {{PictureFormat::kSvg, directory + "/figure.svg"}}, {.program = program});
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(std::string(status.message()),
            "gnuplot exited with code 3 and said:\nno such terminal");
}

TEST(GnuplotTest, SaysWhichFileCannotBeWritten) {
  const std::string path = TestDirectory() + "/missing/figure.svg";
  const absl::Status status = DrawPictures(Accuracies(1), {}, {{PictureFormat::kSvg, path}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("cannot write ", path,
                         ": No such file or directory; make its directory, or name another file"));
}

TEST(GnuplotTest, LeavesNoTemporaryFiles) {
  const std::string directory = TestDirectory();
  setenv("TMPDIR", directory.c_str(), 1);
  ASSERT_TRUE(
      DrawPictures(Accuracies(1), {}, {{PictureFormat::kSvg, directory + "/figure.svg"}}).ok());
  unsetenv("TMPDIR");
  EXPECT_THAT(*platform::ListDirectory(directory), testing::ElementsAre("figure.svg"));
}

}  // namespace
}  // namespace lengthwise::client
