#include "app/cli/commands.h"

#include "app/cli/lab.h"

namespace tessera {

void add_commands(CLI::App& app, ExitCode& exit_code) {
  add_simulate_command(app, exit_code);
  add_run_command(app, exit_code);
  add_fit_command(app, exit_code);
  add_expect_command(app, exit_code);
  add_replay_command(app);
  add_neighbours_command(app);
  add_lab_commands(app);
  add_collective_command(app);
  add_check_command(app);
  add_explain_command(app);
  add_explain_kernel_command(app);
  add_explain_step_command(app);
  add_compare_command(app);
  add_schema_command(app);
  add_show_command(app);
  add_list_command(app);
  add_plan_command(app, exit_code);
  add_sweep_command(app, exit_code);
  add_topology_command(app);
  add_snapshot_command(app);
  add_import_command(app);
  add_serve_command(app);
  add_manual_command(app);
  add_completion_command(app);
}

}  // namespace tessera
