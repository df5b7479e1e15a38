#pragma once

#include "workloads/step_options.h"

namespace tessera {

/// Length of equally long documents with as many pairs of tokens as those packed into a sequence of
/// `step`: E[L^2] / E[L] of their lengths L [tokens]; 0: one document. Lengths up to the longest
/// have the distribution of largest entropy that has their mean, a truncated exponential: 4/3 of a
/// mean that is half of the longest, up to twice a mean that is small beside it.
double equal_document(const StepOptions& step);

}  // namespace tessera
