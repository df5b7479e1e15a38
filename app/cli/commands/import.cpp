// tessera import nccl-topology | nvidia-smi | simgrid: foreign descriptions of machines as our
// YAML.
#include <filesystem>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/import/imported.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "hw/units/text.h"
#include "sim/config/files/cluster_text.h"
#include "sim/config/files/cluster_yaml.h"
#include "sim/config/files/text_file.h"
#include "sim/config/load.h"

namespace tessera {
namespace {

using Importer = Imported (*)(const std::string&, const std::string&, const ImportOptions&,
                              const GpuFinder&);

struct ImportCommand {
  Importer importer = nullptr;
  std::string file;
  std::string gpu;
  std::string nic_bandwidth;
  std::string output;
};

std::string comment(const std::string& kind, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "# " + kind + ": " + line + "\n";
  return text;
}

void run_import(const ImportCommand& command) {
  const Catalog catalog = shipped_catalog();
  const std::string name = shown_path(command.file);
  ImportOptions options;
  options.gpu = command.gpu;
  if (!command.nic_bandwidth.empty())
    options.nic_bandwidth = parse_bandwidth(command.nic_bandwidth);
  const auto find_gpu = [&](const std::string& id) { return load_gpu(id, catalog); };
  Imported imported = command.importer(read_text_file(command.file), name, options, find_gpu);
  const std::string stem = std::filesystem::path(command.file).stem().string();
  if (!stem.empty()) imported.cluster.id = stem;
  const std::string yaml =
      "# Made by tessera import from " + std::filesystem::path(command.file).filename().string() +
      ". Use: cluster: [this file] in a scenario.\n" + comment("assumed", imported.assumed) +
      comment("ignored", imported.ignored) + cluster_yaml(imported.cluster, imported.gpu, catalog);
  cluster_in(yaml, name + ", as a cluster", catalog);  // what is written can be used
  for (const std::string& line : imported.ignored) spdlog::warn("ignored: {}", line);
  if (command.output.empty()) return print(yaml);
  replace_file(command.output, yaml);
}

void add_importer(CLI::App& import, const std::string& name, const std::string& what,
                  Importer importer) {
  auto options = std::make_shared<ImportCommand>();
  options->importer = importer;
  CLI::App* command = import.add_subcommand(name, what);
  command->add_option("FILE", options->file)->required();
  command->add_option("--gpu", options->gpu, "id of tessera list gpus, or a file")
      ->type_name(kGpuId);
  command->add_option("--nic-bandwidth", options->nic_bandwidth, "of each NIC, e.g. '400 Gb/s'");
  command->add_option("-o,--output,--out", options->output, "write here instead of to stdout");
  command->callback([options] { run_import(*options); });
}

}  // namespace

void add_import_command(CLI::App& app) {
  CLI::App* import = app.add_subcommand(
      "import", "Turn files of other programs into a cluster or a scenario (YAML)");
  import->require_subcommand(1);
  add_importer(*import, "nccl-topology", "NCCL's topology (NCCL_TOPO_DUMP_FILE)",
               import_nccl_topology);
  add_importer(*import, "nvidia-smi", "the matrix of nvidia-smi topo -m", import_smi_matrix);
  add_importer(*import, "simgrid", "a SimGrid platform (XML)", import_simgrid_platform);
  add_import_job_commands(*import);
}

}  // namespace tessera
