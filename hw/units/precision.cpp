#include "hw/units/precision.h"

#include <string>

#include "hw/units/input_error.h"

namespace tessera {

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::fp8:
      return "fp8";
    case Precision::int64:
      return "int64";
    case Precision::int8:
      return "int8";
    case Precision::fp4:
      return "fp4";
  }
  return "";
}

Precision parse_precision(std::string_view name) {
  std::string accepted;
  for (const Precision precision : kAllPrecisions) {
    if (name_of(precision) == name) return precision;
    if (!accepted.empty()) accepted += ", ";
    accepted += name_of(precision);
  }
  throw InputError(
      {"", "unknown precision \"" + std::string(name) + "\"", "use one of " + accepted});
}

}  // namespace tessera
