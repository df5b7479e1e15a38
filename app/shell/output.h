#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tessera {

/// Call before any file is opened. Where the caller closed a standard stream, the next file would
/// get its number and, say, the answer that is meant for stdout.
void reserve_standard_streams();

/// Writes `text` to stdout. Throws InputError where stdout is closed or full.
void print(const std::string& text);

/// Adds `--format` with the accepted values; the first is the default.
void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& accepted);

/// Adds `--set path=value`, repeatable.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// Adds `--form`, the form of the kernel model.
void add_form_option(CLI::App& command, std::string& form);

}  // namespace tessera
