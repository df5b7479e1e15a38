#include "predictor/tessera_predictor.h"

namespace tessera {

KernelPrediction TesseraPredictor::predict(const Kernel& kernel) const {
  return TensorCorePredictor::covers(kernel) ? tensor_cores_.predict(kernel)
                                             : cuda_cores_.predict(kernel);
}

Seconds TesseraPredictor::isolated_launch_overhead(const Kernel& kernel) const {
  if (!TensorCorePredictor::covers(kernel)) return cuda_cores_.isolated_launch_overhead(kernel);
  const Seconds queued = duration(kernel);
  // The host takes as long to launch a kernel of another format.
  const KernelKind kind = kernel.kind == KernelKind::attention ? KernelKind::gemm : kernel.kind;
  return cuda_cores_.launch_gap(kind, queued - tensor_cores_.launch_seconds(kernel), queued);
}

std::vector<std::string> TesseraPredictor::notes(const Kernel& kernel) const {
  return TensorCorePredictor::covers(kernel) ? tensor_cores_.notes(kernel)
                                             : cuda_cores_.notes(kernel);
}

}  // namespace tessera
