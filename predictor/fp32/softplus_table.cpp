#include "predictor/fp32/softplus_table.h"

#include <cmath>

namespace tessera {

// Cubic Hermite pieces of f(t) = log(1 + exp(-t)): their error is width^4 / 384 times the largest
// fourth derivative, 1/8, that is 5e-9.
SoftplusTable::SoftplusTable() {
  constexpr double kWidth = 1.0 / kPiecesPerUnit;
  const auto value = [](double t) { return std::log1p(std::exp(-t)); };
  const auto slope = [](double t) { return -kWidth / (1 + std::exp(t)); };
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const double from = kWidth * static_cast<double>(i), to = from + kWidth;
    const double rise = value(to) - value(from);
    pieces_[i] = {value(from), slope(from), 3 * rise - 2 * slope(from) - slope(to),
                  slope(from) + slope(to) - 2 * rise};
  }
}

const SoftplusTable& SoftplusTable::shared() {
  static const SoftplusTable table;
  return table;
}

}  // namespace tessera
