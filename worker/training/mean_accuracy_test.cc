#include "worker/training/mean_accuracy.h"

#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

TEST(MeanAccuracyTest, LengthsUpToALimitAreSeenAndThoseAboveItAreNot) {
  v1::LengthAccuracies accuracies;
  for (const int32_t length : {40, 10, 41, 500}) accuracies.add_lengths(length);
  for (const double accuracy : {0.5, 1.0, 0.25, 0.75}) accuracies.add_accuracies(accuracy);
  EXPECT_EQ(SeenAccuracy(accuracies, 40), 0.75);
  EXPECT_EQ(UnseenAccuracy(accuracies, 40), 0.5);
  EXPECT_EQ(UnseenAccuracy(accuracies, 41), 0.75);
}

TEST(MeanAccuracyTest, OfNoLengthsIsMinusOne) {
  v1::LengthAccuracies accuracies;
  EXPECT_EQ(SeenAccuracy(accuracies, 40), -1);
  accuracies.add_lengths(40);
  accuracies.add_accuracies(0);
  EXPECT_EQ(SeenAccuracy(accuracies, 40), 0);
  EXPECT_EQ(UnseenAccuracy(accuracies, 40), -1);
}

}  // namespace
}  // namespace lengthwise::worker::training
