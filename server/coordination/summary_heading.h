// The words above an experiment's results: what their lengths and scores are, and which lengths
// training showed. Clients print them as they are.
#ifndef LENGTHWISE_SERVER_COORDINATION_SUMMARY_HEADING_H_
#define LENGTHWISE_SERVER_COORDINATION_SUMMARY_HEADING_H_

#include <vector>

#include "proto/experiment_service.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::server {

// Trial.trained_lengths.
std::vector<v1::LengthRange> TrainedLengths(const v1::Component& task,
                                            const v1::Training& training);

// `summary` has the lengths of its cells.
v1::SummarizeExperimentResponse::Heading HeadingOf(const v1::ExperimentSpecification& specification,
                                                   const v1::SummarizeExperimentResponse& summary);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUMMARY_HEADING_H_
