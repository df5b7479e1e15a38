// `tessera neighbours`: several jobs on one cluster.
#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "app/neighbours/neighbour_answer.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "sim/config/shipped_file.h"

namespace tessera {
namespace {

struct NeighbourOptions {
  std::string file;
  std::string format;
  int steps = 2;
  std::size_t links = 10;
};

void run_neighbours(const NeighbourOptions& options) {
  const Catalog catalog = shipped_catalog();
  const PlacedJobs placed =
      read_neighbours(shipped_or_own_file(CatalogKind::neighbours, options.file, catalog), catalog);
  const NeighbourAnswer answer = neighbours_answer(placed, options.steps, shipped_weights());
  print(options.format == "json" ? json_text(answer, TESSERA_VERSION)
                                 : for_people(table_text(answer, options.links)));
}

}  // namespace

void add_neighbours_command(CLI::App& app) {
  auto options = std::make_shared<NeighbourOptions>();
  CLI::App* command = app.add_subcommand(
      "neighbours", "Simulate jobs that share a cluster: steps alone and together, shared links");
  command
      ->add_option("FILE", options->file,
                   "with cluster: and jobs:, or an id of tessera list neighbours")
      ->type_name(kNeighboursId)
      ->required();
  command->add_option("--steps", options->steps, "that every job takes at least")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--links", options->links, "lines of the table (JSON has all)")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_neighbours(*options); });
}

}  // namespace tessera
