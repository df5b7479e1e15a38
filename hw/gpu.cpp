#include "hw/gpu.h"

namespace tessera {

FlopsPerSecond GpuSpec::peak(Precision precision) const {
  switch (precision) {
    case Precision::fp32:
      return fp32;
    case Precision::tf32:
      return tf32;
    case Precision::bf16:
      return bf16;
    case Precision::fp16:
      return fp16;
    case Precision::fp8:
      return fp8;
    case Precision::int8:
      return int8;
    case Precision::fp4:
      return fp4;
    case Precision::int64:
      return FlopsPerSecond(0);
  }
  return FlopsPerSecond(0);
}

}  // namespace tessera
