// Checkpoints open in the Python package safetensors, with the same names, types, shapes and bytes.
//
// LENGTHWISE_TEST_PYTHON is a Python that has the package; tests/run.sh installs one.
#include "models/parameters/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/parameters/layout.h"
#include "platform/child_process.h"
#include "platform/sha256.h"
#include "tests/end_to_end/programs.h"
#include "worker/data/trial_checkpoint.h"

namespace lengthwise::end_to_end {
namespace {

constexpr char kDescribe[] = "tests/end_to_end/describe_safetensors.py";

template <typename T>
std::string Checkpoint() {
  models::ParameterLayout layout;
  layout.Add("embedding", {5, 3}, {});
  layout.Add("blocks.0.attention.query", {3, 2, 2}, {});
  layout.Add("output_bias", {1}, {});
  std::vector<T> rows(static_cast<size_t>(3 * layout.row_size()));
  std::iota(rows.begin(), rows.end(), T{-7} / 3);
  const size_t size = sizeof(T) * static_cast<size_t>(layout.row_size());
  const auto all = absl::MakeSpan(reinterpret_cast<char*>(rows.data()), 3 * size);
  return worker::checkpoints::WriteTrialCheckpoint(
      layout, {.step = 12, .program_version = "1", .fingerprint = "f"},
      {sizeof(T) == 8 ? models::DataType::kFloat64 : models::DataType::kFloat32,
       all.subspan(0, size), all.subspan(size, size), all.subspan(2 * size, size)});
}

// The script's expected output, computed with this implementation's reader.
std::vector<std::string> ByOurReader(const std::string& bytes) {
  const auto file = models::ReadSafetensors(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<std::string> lines;
  for (const auto& tensor : file->tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", models::DataTypeName(tensor.type), " ",
                                 absl::StrJoin(tensor.shape, "x"), " ",
                                 platform::Sha256Hex(tensor.bytes)));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> ByPython(const std::string& python, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/checkpoint.safetensors";
  const std::string output = testing::TempDir() + "/description";
  std::remove(output.c_str());
  std::ofstream(path, std::ios::binary) << bytes;
  auto process = platform::ChildProcess::Start(
      {.arguments = {python, kDescribe, path}, .output_file = output});
  EXPECT_TRUE(process.ok()) << process.status();
  const auto exit = (*process)->WaitFor(kDeadline);
  std::ifstream file(output);
  const std::string printed{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(exit.has_value() && exit->ok()) << printed;
  return absl::StrSplit(printed, '\n', absl::SkipEmpty());
}

TEST(SafetensorsPackageTest, MatchesThisReader) {
  const char* python = std::getenv("LENGTHWISE_TEST_PYTHON");
  if (python == nullptr || *python == '\0') {
    GTEST_SKIP() << "LENGTHWISE_TEST_PYTHON is not set to a Python with the package safetensors; "
                    "tests/run.sh installs one";
  }
  for (const std::string& bytes : {Checkpoint<float>(), Checkpoint<double>()}) {
    const std::vector<std::string> expected = ByPython(python, bytes);
    EXPECT_EQ(ByOurReader(bytes), expected);
    EXPECT_THAT(expected, testing::SizeIs(9));  // three parameters and their two moments
    EXPECT_THAT(expected, testing::Contains(testing::HasSubstr(" 3x2x2 ")));
  }
}

}  // namespace
}  // namespace lengthwise::end_to_end
