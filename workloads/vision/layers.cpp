#include "workloads/vision/layers.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"
#include "workloads/ops/vision/batch_norm.h"
#include "workloads/ops/vision/pooling.h"

namespace tessera {

Tensor convolution_norm_relu(Tape& tape, const std::string& name, const Tensor& x,
                             const ConvolutionLayer& layer) {
  const Tensor convolved = conv2d(tape, name + ".conv", x, layer);
  return relu_(tape, name + ".relu", batch_norm(tape, name + ".norm", convolved));
}

Tensor pooled_classifier(Tape& tape, const Tensor& x, std::int64_t classes, double dropout_share) {
  const Tensor means = adaptive_average_pool2d(tape, "avgpool", x, 1);
  const Tensor rows = view(tape, means, {x.sizes()[0], x.sizes()[1]});
  return linear(tape, "fc", dropout(tape, "dropout", rows, dropout_share), classes);
}

}  // namespace tessera
