#include "app/cli/commands/plan_program.h"

#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/formats/output_file.h"
#include "sim/process/command.h"
#include "sim/remat/io/integer_program.h"

namespace tessera {

void write_program(const remat::Graph& graph, const remat::PlanRequest& request,
                   const std::string& file) {
  const remat::IntegerProgram program = remat::recompute_program(graph, request.budget);
  write_output_file(file,
                    file.ends_with(".mps") ? remat::mps_text(program) : remat::lp_text(program));
}

SolverAnswer solve_program(const std::string& file) {
  const CommandResult run = run_command({"cbc", file, "solve"});
  constexpr int kNoProgram = 127;
  if (run.exit_code == kNoProgram)
    throw InputError({"--solve", "needs COIN-OR's cbc, which is not installed",
                      "install coinor-cbc, or give the file of --program to another solver"});
  const auto behind = [&](const std::string& words) {
    const std::size_t at = run.output.find(words);
    if (at == std::string::npos) return std::string();
    const std::size_t begin = run.output.find_first_not_of(' ', at + words.size());
    return run.output.substr(begin, run.output.find('\n', begin) - begin);
  };
  SolverAnswer answer{.status = behind("Result -")};
  answer.optimal = answer.status == "Optimal solution found";
  if (answer.optimal)
    answer.overhead = std::strtod(behind("Objective value:").c_str(), nullptr) - 1;
  if (answer.status.empty()) answer.status = "no result";
  return answer;
}

}  // namespace tessera
