#include "models/parameters/safetensors.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "random/stream.h"

namespace lengthwise::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kFloats[] = {1.0f, -2.5f, 0.0f, 3e38f, 1e-45f, 7.0f};
constexpr double kDoubles[] = {0.1, -1e300};

template <typename T, size_t N>
absl::string_view Bytes(const T (&values)[N]) {
  return {reinterpret_cast<const char*>(values), sizeof(values)};
}

TensorFile SmallFile() {
  return {.metadata = {{"step", "12"}},
          .tensors = {{"weights", DataType::kFloat32, {2, 3}, Bytes(kFloats)},
                      {"empty", DataType::kFloat32, {0, 4}, ""},
                      {"moments", DataType::kFloat64, {2}, Bytes(kDoubles)}}};
}

// A file with this header and `data_bytes` zero bytes of data.
std::string FileOf(absl::string_view header, size_t data_bytes) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(header.size() >> shift));
  }
  return absl::StrCat(bytes, header, std::string(data_bytes, '\0'));
}

std::string ErrorOf(absl::string_view bytes) {
  const auto read = ReadSafetensors(bytes);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << read.status();
  return std::string(read.status().message());
}

TEST(SafetensorsTest, ReadsWhatItWrote) {
  const std::string bytes = WriteSafetensors(SmallFile());
  const auto read = ReadSafetensors(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, SmallFile().metadata);
  ASSERT_EQ(read->tensors.size(), 3);
  EXPECT_EQ(read->tensors[0].name, "weights");
  EXPECT_THAT(read->tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(read->tensors[0].bytes, Bytes(kFloats));
  EXPECT_EQ(read->tensors[2].type, DataType::kFloat64);
  EXPECT_EQ(read->tensors[2].bytes, Bytes(kDoubles));
}

// Checks the documented layout byte by byte.
TEST(SafetensorsTest, WritesTheDocumentedLayout) {
  constexpr float kOne[] = {1.0f};
  const std::string bytes =
      WriteSafetensors({.tensors = {{"a", DataType::kFloat32, {1}, Bytes(kOne)}}});
  const std::string header = R"({"a":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  const size_t padded = (header.size() + 7) / 8 * 8;
  ASSERT_EQ(bytes.size(), 8 + padded + 4);
  EXPECT_EQ(static_cast<size_t>(bytes[0]), padded);
  EXPECT_EQ(bytes.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(bytes.substr(8, padded), header + std::string(padded - header.size(), ' '));
  EXPECT_EQ(bytes.substr(8 + padded), std::string("\x00\x00\x80\x3f", 4));
}

TEST(SafetensorsTest, SameContentsGiveSameBytes) {
  EXPECT_EQ(WriteSafetensors(SmallFile()), WriteSafetensors(SmallFile()));
}

TEST(SafetensorsTest, EveryTruncationIsDataLoss) {
  const std::string bytes = WriteSafetensors(SmallFile());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // An exact copy, so that a memory checker sees reads beyond the end.
    const std::string truncated = bytes.substr(0, size);
    EXPECT_EQ(ReadSafetensors(truncated).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(SafetensorsTest, FlippedBitsNeverReachOutsideTheFile) {
  const std::string bytes = WriteSafetensors(SmallFile());
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string flipped = bytes;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    const auto read = ReadSafetensors(flipped);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    for (const TensorView& tensor : read->tensors) {
      EXPECT_GE(tensor.bytes.data(), flipped.data());
      EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), flipped.data() + flipped.size());
    }
  }
}

TEST(SafetensorsTest, RandomDamageNeverCrashes) {
  const std::string bytes = WriteSafetensors(SmallFile());
  for (uint64_t round = 0; round < 5000; ++round) {
    random::Stream stream(round, random::Purpose::kPreview, 0);
    std::string damaged = bytes;
    for (uint32_t i = stream.Below(8) + 1; i > 0; --i) {
      damaged[stream.Below(static_cast<uint32_t>(damaged.size()))] =
          static_cast<char>(stream.NextUint32());
    }
    (void)ReadSafetensors(damaged);
  }
}

TEST(SafetensorsTest, ErrorsNameTheProblem) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(ErrorOf(std::string(16, '\xff')), HasSubstr("a header of 18446744073709551615"));
  EXPECT_THAT(ErrorOf(FileOf("[1]", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(FileOf("{\"a\"", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(FileOf(std::string(100'000, '['), 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"__metadata__":{"a":1}})", 0)), HasSubstr("not text"));
  EXPECT_THAT(ErrorOf(FileOf("{}", 3)), HasSubstr("3 bytes after the last tensor"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1)),
              HasSubstr("dtype \"I8\"; F32 and F64"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
              HasSubstr("non-negative"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)),
              HasSubstr("4 bytes, which do not match its shape"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)),
              HasSubstr("truncated"));
}

// 2^62 * 4 is 0 in 64 bits.
TEST(SafetensorsTest, OverflowingShapesAreRefused) {
  EXPECT_THAT(
      ErrorOf(
          FileOf(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0)),
      HasSubstr("shape"));
  EXPECT_THAT(
      ErrorOf(FileOf(
          R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0)),
      HasSubstr("shape"));
}

TEST(SafetensorsTest, OverlapsAndHolesAreRefused) {
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
                             6)),
              HasSubstr("an overlap"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}})",
                             9)),
              HasSubstr("a hole"));
}

}  // namespace
}  // namespace lengthwise::models
