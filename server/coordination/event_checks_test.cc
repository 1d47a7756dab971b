#include "server/coordination/event_checks.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::HasSubstr;

// What is wrong with an event of this fact; empty for nothing.
std::string Problem(const v1::Event& fact) {
  v1::StreamEventsRequest request;
  *request.add_events() = fact;
  request.mutable_events(0)->set_sequence(1);
  return std::string(CheckEvents(request).message());
}

v1::Event Attention() {
  v1::Event event;
  v1::AttentionMap& map = *event.mutable_attention_map();
  map.set_length(2);
  for (int i = 0; i < 3; ++i) {
    map.add_tokens(i);
    map.add_positions(i * 10);
  }
  map.set_layers(5);
  map.set_heads(4);
  map.set_probabilities(std::string(5 * 4 * 3 * 3 * sizeof(float), '\0'));
  return event;
}

v1::Event Projected() {
  v1::Event event;
  v1::Projection& projection = *event.mutable_projection();
  projection.set_fitted_length(40);
  projection.set_length(150);
  projection.set_sequences(3);
  projection.set_tokens(150);
  projection.set_depths(2);
  projection.set_coordinates(std::string(2 * 3 * 150 * 2 * sizeof(float), '\0'));
  for (int i = 0; i < 4; ++i) projection.add_explained_variance(0.25);
  return event;
}

TEST(EventChecksTest, AnAttentionMapHoldsWhatItsSizesSay) {
  EXPECT_EQ(Problem(Attention()), "");
  v1::Event own_input = Attention();
  own_input.mutable_attention_map()->set_input_number(2);
  EXPECT_EQ(Problem(own_input), "");

  v1::Event wrong = Attention();
  wrong.mutable_attention_map()->mutable_probabilities()->pop_back();
  EXPECT_THAT(Problem(wrong), HasSubstr("events[0]: attention_map.probabilities are not"));
  wrong = Attention();
  wrong.mutable_attention_map()->add_positions(30);
  EXPECT_THAT(Problem(wrong), HasSubstr("one position for each token"));
  wrong = Attention();
  wrong.mutable_attention_map()->set_input_number(-1);
  EXPECT_THAT(Problem(wrong), HasSubstr("input_number is negative"));
  wrong = Attention();
  wrong.mutable_attention_map()->set_length(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("attention_map.length is below 1"));
  wrong.mutable_attention_map()->Clear();
  wrong.mutable_attention_map()->set_length(2);
  EXPECT_NE(Problem(wrong), "");
}

TEST(EventChecksTest, AProjectionHoldsWhatItsSizesSay) {
  EXPECT_EQ(Problem(Projected()), "");
  v1::Event wrong = Projected();
  wrong.mutable_projection()->set_depths(3);
  EXPECT_THAT(Problem(wrong), HasSubstr("events[0]: projection.coordinates are not"));
  wrong = Projected();
  wrong.mutable_projection()->add_explained_variance(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.explained_variance is not"));
  wrong = Projected();
  wrong.mutable_projection()->set_fitted_length(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.fitted_length is below 1"));
  wrong = Projected();
  wrong.mutable_projection()->set_length(-3);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.length is below 1"));
}

TEST(EventChecksTest, SizesWhoseProductOverflowsAreNotTakenForSmallOnes) {
  v1::Event wrong = Projected();
  v1::Projection& projection = *wrong.mutable_projection();
  // 2^30 * 2^30 * 2^30 * 2 is 0 modulo 2^64.
  projection.set_depths(1 << 30);
  projection.set_sequences(1 << 30);
  projection.set_tokens(1 << 30);
  projection.clear_coordinates();
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.coordinates are not"));
  projection.set_depths(std::numeric_limits<int32_t>::min());
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.coordinates are not"));
}

}  // namespace
}  // namespace lengthwise::server
