#include "workloads/packed_documents.h"

#include <cmath>

namespace tessera {
namespace {

struct Moments {
  double mean, square;
};

/// Of x in [0, 1] with density proportional to exp(-t x).
Moments moments_of(double t) {
  constexpr double kFlat = 1e-3;  // below it, terms cancel: the first ones of the series
  if (std::abs(t) < kFlat) return {0.5 - t / 12, 1.0 / 3 - t / 12};
  const double end = std::exp(-t), mass = (1 - end) / t;
  const double first = (1 - end * (1 + t)) / (t * t);
  const double second = (2 - end * (2 + 2 * t + t * t)) / (t * t * t);
  return {first / mass, second / mass};
}

/// E[x^2] / E[x] of the truncated exponential on [0, 1] with `mean`.
double weighted_mean(double mean) {
  constexpr double kSteepest = 500;            // its means are 1 / 500 and 499 / 500
  if (mean <= 1 / kSteepest) return 2 * mean;  // an exponential that nothing cuts
  if (mean >= 1 - 1 / kSteepest) return mean;  // as good as equal
  double low = -kSteepest, high = kSteepest;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (moments_of(middle).mean > mean ? low : high) = middle;
  }
  return moments_of(low).square / mean;
}

}  // namespace

double equal_document(const StepOptions& step) {
  if (step.mean_document == 0 || step.longest_document == 0) return step.mean_document;
  return step.longest_document * weighted_mean(step.mean_document / step.longest_document);
}

}  // namespace tessera
