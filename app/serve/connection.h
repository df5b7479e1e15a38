#pragma once

#include <string>

#include "app/serve/server.h"

namespace tessera {

/// Reads one request from the connected `socket`, answers it and closes it. What takes longer than
/// a few seconds to send its request gets nothing. Throws nothing.
void answer_connection(int socket, int port, const std::string& token, const Answer& answer);

/// "a%20b+c" as "a b c"; what is no escape stays.
std::string url_decoded(std::string_view text);

}  // namespace tessera
