#include "server/api/loss_curve.h"

namespace lengthwise::server {
namespace {

template <typename T>
void AppendColumn(const google::protobuf::RepeatedField<T>& from, int size,
                  google::protobuf::RepeatedField<T>& to) {
  for (int i = 0; i < size; ++i) to.Add(i < from.size() ? from[i] : T());
}

float Mean(const google::protobuf::RepeatedField<float>& column, int begin, int end) {
  double sum = 0;
  for (int i = begin; i < end; ++i) sum += column[i];
  return static_cast<float>(sum / (end - begin));
}

// Appends the points [begin, end) of `points` to `to` as one averaged point.
void AddBucket(const v1::TrainingPoints& points, int begin, int end, v1::TrainingPoints& to) {
  to.add_steps(points.steps(end - 1));
  to.add_losses(Mean(points.losses(), begin, end));
  to.add_accuracies(Mean(points.accuracies(), begin, end));
  to.add_gradient_norms(Mean(points.gradient_norms(), begin, end));
  to.add_lengths(points.lengths(end - 1));
}

}  // namespace

void AppendPoints(const v1::TrainingPoints& from, v1::TrainingPoints& to) {
  const int size = from.steps_size();
  AppendColumn(from.steps(), size, *to.mutable_steps());
  AppendColumn(from.losses(), size, *to.mutable_losses());
  AppendColumn(from.accuracies(), size, *to.mutable_accuracies());
  AppendColumn(from.gradient_norms(), size, *to.mutable_gradient_norms());
  AppendColumn(from.lengths(), size, *to.mutable_lengths());
}

v1::TrainingPoints DownSample(const v1::TrainingPoints& points, int64_t max_points) {
  const int64_t size = points.steps_size();
  if (size <= max_points) return points;
  v1::TrainingPoints result;
  AddBucket(points, 0, 1, result);
  const int64_t between = size - 2;
  const int64_t buckets = max_points - 2;
  for (int64_t b = 0; b < buckets; ++b) {
    AddBucket(points, static_cast<int>(1 + b * between / buckets),
              static_cast<int>(1 + (b + 1) * between / buckets), result);
  }
  AddBucket(points, static_cast<int>(size - 1), static_cast<int>(size), result);
  return result;
}

}  // namespace lengthwise::server
