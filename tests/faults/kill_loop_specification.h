// The specification that the kill loop submits.
#ifndef LENGTHWISE_TESTS_FAULTS_KILL_LOOP_SPECIFICATION_H_
#define LENGTHWISE_TESTS_FAULTS_KILL_LOOP_SPECIFICATION_H_

namespace lengthwise::faults {

// Eight trials of 150 steps. A real worker trains one in about a second; a scripted one takes its
// configured milliseconds for each step.
inline constexpr char kKillLoopSpecification[] = R"(
name: killed
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: [sin_cos, {name: relative, randomized: true, max_position: 64}]
learning_rates: [0.001, 0.0003]
seeds: [1, 2]
training: {steps: 150, batch_size: 8, lengths: {min: 1, max: 10}, report_every_steps: 3,
           checkpoint_every_steps: 20}
evaluation: {lengths: [5, 10, 20], sequences: 16, every_steps: 40}
)";

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_KILL_LOOP_SPECIFICATION_H_
