#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/kernel_query.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/kernel_story.h"
#include "predictor/measured/nearest_measurements.h"
#include "sim/config/load.h"
#include "sim/report/kernel_report.h"

namespace tessera {
namespace {

constexpr std::size_t kNearest = 5;

struct ExplainKernelOptions {
  std::string gpu;
  std::string text;
  KernelOptions kernel;
  std::vector<std::string> overlay_files;
  std::string weights_file;
  std::string data_folder;
  std::string format;
};

/// An overlay that has no effect would be mistaken for one that has.
GpuOverlay overlay_for(const std::string& file, const GpuSpec& gpu, const Catalog& catalog) {
  GpuOverlay overlay = load_overlay(file, catalog);
  if (overlay.gpu == gpu.id) return overlay;
  throw InputError({.where = file,
                    .what = "is an overlay of " + overlay.gpu + ", but the GPU is " + gpu.id,
                    .hint = "remove the overlay, or calibrate " + gpu.id});
}

PredictorWeights weights_in_use(const ExplainKernelOptions& options, const GpuSpec& gpu,
                                const Catalog& catalog) {
  if (options.overlay_files.size() > 1)
    throw InputError({.where = options.overlay_files[1],
                      .what = "is a second overlay of one GPU",
                      .hint = "keep one"});
  std::vector<GpuOverlay> overlays;
  for (const std::string& file : options.overlay_files)
    overlays.push_back(overlay_for(file, gpu, catalog));
  return with_overlays(
      options.weights_file.empty() ? shipped_weights() : load_weights(options.weights_file),
      overlays, gpu);
}

/// $TESSERA_MEASUREMENTS, else beside the source tree; need not exist.
std::filesystem::path usual_measurements() {
  const char* chosen = std::getenv("TESSERA_MEASUREMENTS");
  return chosen && *chosen ? std::filesystem::path(chosen) : home() / "../shared/measurements";
}

void add_nearest(const ExplainKernelOptions& options, const PredictorWeights& weights,
                 const std::optional<KernelMeasurement>& call, KernelReport& report) {
  const Precision precision = report.story.kernel.precision;
  const bool half = precision == Precision::bf16 || precision == Precision::fp16;
  const bool single = precision == Precision::fp32;
  if (!call || !(single || (half && call->op == MeasuredOp::linear))) {
    report.measurements = "not listed for this kernel";
    return;
  }
  const std::string name = half                             ? "tensor_core.csv"
                           : call->op == MeasuredOp::conv2d ? "fp32_conv.csv"
                                                            : "fp32.csv";
  const bool asked = !options.data_folder.empty();
  const std::filesystem::path folder =
      asked ? std::filesystem::path(options.data_folder) : usual_measurements();
  std::filesystem::path file = folder / "kernels" / name;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) file = folder / name;
  if (!asked && !std::filesystem::exists(file, error)) {
    report.measurements = "no " + name + " found; name its folder with --data";
    return;
  }
  report.measurements = name;
  report.nearest = nearest_measurements(read_measurements(file), *call, report.gpu, weights,
                                        shipped_gpu_lookup(), kNearest);
  if (report.nearest.empty())
    report.measurements = "none of " + std::string(name_of(call->op)) + " in " + name;
}

void run_explain_kernel(const ExplainKernelOptions& options) {
  const Catalog catalog = shipped_catalog();
  const GpuSpec gpu = load_gpu(options.gpu, catalog);
  KernelOptions asked = options.kernel;
  if (!options.text.empty()) read_kernel_text(options.text, asked);
  if (asked.op.empty())
    throw InputError(
        {.where = "--op",
         .what = "is missing",
         .hint = "name the operator, or the whole kernel: \"bf16 gemm 4096x4096x1024\""});
  const KernelQuery query = kernel_query(asked, gpu);
  const PredictorWeights weights = weights_in_use(options, gpu, catalog);
  KernelReport report{.op = query.op,
                      .sizes = query.sizes,
                      .gpu = gpu,
                      .story = kernel_story(query.kernel, gpu, weights),
                      .tessera_version = TESSERA_VERSION};
  add_nearest(options, weights, query.call, report);
  print(options.format == "json" ? kernel_json(report) : for_people(kernel_table(report)));
}

}  // namespace

void add_explain_kernel_command(CLI::App& app) {
  auto options = std::make_shared<ExplainKernelOptions>();
  CLI::App* command =
      app.add_subcommand("explain-kernel", "Say how the prediction for one kernel comes about");
  command->add_option("--gpu", options->gpu, "id of tessera list gpus, or a file")
      ->type_name(kGpuId)
      ->required();
  command->add_option(
      "KERNEL", options->text,
      "in words: \"bf16 gemm 4096x4096x1024\", \"bf16 softmax 8192x1024\", \"flash3 "
      "attention 4x32x4096x128 backward kv-heads=8\" (batch, heads, sequence, head "
      "size), \"bf16 grouped_gemm 100,28,0 4096x1024\" (rows of each group, n, k)");
  command->add_option(
      "--op", options->kernel.op,
      "linear, bmm (--m --n --k [--batch]), conv2d (--in-channels --out-channels "
      "--input-size --kernel-size [--batch --stride --padding]), softmax, layer_norm, "
      "add, gelu, ... (--rows --cols), attention (--heads --head-dim --seq [--batch "
      "--kv-heads --seq-kv]), grouped_gemm (--groups --n --k)");
  for (const std::string& size : size_options())
    command->add_option("--" + size, options->kernel.sizes[size], "size of the kernel [elements]");
  command->add_option("--layout", options->kernel.layout, "operand order of linear and bmm")
      ->check(CLI::IsMember({"tn", "nn", "nt"}));
  command->add_option("--precision", options->kernel.precision,
                      "fp32, tf32, bf16, fp16, fp8 (default: fp32; attention, grouped_gemm: bf16)");
  command->add_option(
      "--implementation", options->kernel.implementation,
      "of attention: flash1, flash2, flash3, cudnn, trtllm (default: the GPU's fastest)");
  command->add_option("--direction", options->kernel.direction,
                      "of attention: forward, backward, forward+backward");
  command->add_option("--mask", options->kernel.mask, "of attention: causal or full");
  command->add_option("--groups", options->kernel.groups, "rows of each group, such as 128,64,300");
  command->add_option("--overlay", options->overlay_files, "overlay of the GPU (tessera calibrate)")
      ->allow_extra_args(false);
  command->add_option("--weights", options->weights_file, "trained weights other than the shipped");
  command->add_option("--data", options->data_folder,
                      "folder of measurements, for the nearest measured calls (default: "
                      "$TESSERA_MEASUREMENTS, else ../shared/measurements)");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_explain_kernel(*options); });
}

}  // namespace tessera
