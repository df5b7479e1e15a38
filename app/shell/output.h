#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/text/text_style.h"

namespace tessera {

/// Call before any file is opened. Where the caller closed a standard stream, the next file would
/// get its number and, say, the answer that is meant for stdout.
void reserve_standard_streams();

/// Writes `text` to stdout. Throws InputError where stdout is closed or full.
void print(const std::string& text);

/// Writes `text`, in whose marks (sim/report/text/text_style.h) a terminal gets colours.
void print_styled(const std::string& text);

/// Whether stdout is one: an answer there is read by a person.
bool is_terminal();

/// Columns of the terminal that `stream` writes to; 80 where it writes to none.
std::size_t width_of(int stream);

/// A table or a text with lines as wide as stdout's terminal: what is longer goes on below. Not for
/// what programs read.
std::string for_people(std::string_view text);

/// Colours and bars on a terminal that has colours and whose user did not set NO_COLOR.
TextStyle text_style(bool notes);

/// Adds `--notes`, which says what the terms of the answer mean.
void add_notes_option(CLI::App& command, bool& notes);

/// Adds `--format` with the accepted values; the first is the default.
void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& accepted);

/// Adds `--set path=value`, repeatable.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// What the value of an option names; completion offers it. Shown in the help behind the option.
inline constexpr const char* kScenarioId = "SCENARIO";
inline constexpr const char* kSweepId = "SWEEP";
inline constexpr const char* kNeighboursId = "JOBS";
inline constexpr const char* kModelId = "MODEL";
inline constexpr const char* kClusterId = "CLUSTER";
inline constexpr const char* kGpuId = "GPU";
inline constexpr const char* kFieldPath = "FIELD=VALUE";
inline constexpr const char* kExplainable = "WHAT";

/// Adds the positional FILE: one scenario, by its id or its file.
void add_scenario_argument(CLI::App& command, std::string& scenario);

/// Adds `--form`, the form of the kernel model.
void add_form_option(CLI::App& command, std::string& form);

}  // namespace tessera
