#pragma once

#include <CLI/CLI.hpp>

#include "app/shell/exit_code.h"

namespace tessera {

/// Every command adds itself to `app`; its callback writes the answer to stdout and what to return
/// into `exit_code`. Commands throw InputError for bad input.
void add_commands(CLI::App& app, ExitCode& exit_code);

void add_simulate_command(CLI::App& app, ExitCode& exit_code);
void add_run_command(CLI::App& app, ExitCode& exit_code);
void add_expect_command(CLI::App& app, ExitCode& exit_code);
void add_fit_command(CLI::App& app, ExitCode& exit_code);
void add_replay_command(CLI::App& app);
void add_neighbours_command(CLI::App& app);
void add_collective_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_explain_kernel_command(CLI::App& app);
void add_explain_step_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_schema_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_list_command(CLI::App& app);
void add_plan_command(CLI::App& app, ExitCode& exit_code);
void add_plan_graph_command(CLI::App& plan, ExitCode& exit_code);  ///< below `plan`
void add_sweep_command(CLI::App& app, ExitCode& exit_code);
void add_plan_parallelism_command(CLI::App& plan, ExitCode& exit_code);    ///< below `plan`
void add_plan_memory_command(CLI::App& plan, ExitCode& exit_code);         ///< below `plan`
void add_plan_export_command(CLI::App& plan, ExitCode& exit_code);         ///< below `plan`
void add_plan_clocks_command(CLI::App& plan);                              ///< below `plan`
void add_plan_micro_batches_command(CLI::App& plan, ExitCode& exit_code);  ///< below `plan`
void add_plan_batch_command(CLI::App& plan);                               ///< below `plan`
void add_topology_command(CLI::App& app);
void add_snapshot_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_import_job_commands(CLI::App& import);  ///< below `import`
void add_serve_command(CLI::App& app);
void add_manual_command(CLI::App& app);
void add_completion_command(CLI::App& app);

}  // namespace tessera
