// Student's t distribution.
#ifndef LENGTHWISE_STATISTICS_STUDENT_T_H_
#define LENGTHWISE_STATISTICS_STUDENT_T_H_

namespace lengthwise::statistics {

// The probability that |T| is |t| or more for `degrees_of_freedom` > 0: the two-sided p-value.
// 0 for an infinite t; not-a-number stays that.
double TwoSidedPValue(double t, double degrees_of_freedom);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_STUDENT_T_H_
