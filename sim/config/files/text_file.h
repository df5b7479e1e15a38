#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

/// `file` as messages show it: relative to the working directory where it lies below that.
std::string shown_path(const std::filesystem::path& file);

/// Content of a text file. Throws InputError where it is missing, no regular file or over
/// kMaxFileBytes.
std::string read_text_file(const std::filesystem::path& file);

/// Throws InputError naming the first line where `text` is not valid UTF-8.
void check_utf8(std::string_view text, const std::string& where);

/// Throws InputError naming the first place where `text` is not valid UTF-8, holds a control
/// character or indents with a tab.
void check_plain_text(std::string_view text, const std::string& where);

}  // namespace tessera
