#pragma once

namespace tessera {

/// What the process returns to the shell.
enum class ExitCode : int {
  ok = 0,
  internal = 1,          ///< our own bug
  usage = 2,             ///< unknown command or option
  bad_input = 3,         ///< a file or a value that the user gave, or too little memory
  does_not_fit = 4,      ///< the step needs more memory than a GPU has
  out_of_tolerance = 5,  ///< `validate --tolerance` or `expect --tolerance` was missed
  out_of_time = 6,  ///< `simulation.time_limit`, or the search's `--time-limit` with nothing found
  interrupted = 130,  ///< Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
};

}  // namespace tessera
