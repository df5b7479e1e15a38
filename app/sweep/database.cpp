#include "app/sweep/database.h"

#include <utility>

#include <sqlite3.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

std::string hint_for(int code) {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process has it open: wait for it, or use another --out or --shard";
    case SQLITE_FULL:
      return "free space and run again with --resume: what is stored is safe";
    case SQLITE_IOERR:
      return "check the disk, its free space and quotas, and run again with --resume";
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "name a folder that exists and that you may write";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "move it away and run again; rows that can be read: sqlite3 FILE .recover";
    default:
      return "check the file and its folder";
  }
}

}  // namespace

void Database::fail(int code) const {
  std::string what = sqlite3_errstr(code);
  const char* detail = handle_ == nullptr ? nullptr : sqlite3_errmsg(handle_);
  if (detail != nullptr && what != detail) what += std::string(" (") + detail + ")";
  throw InputError(Problem{file_.string(), "cannot be used as a store: " + what, hint_for(code)});
}

Database::Database(const std::filesystem::path& file) : file_(file) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(file.c_str(), &handle_, flags, nullptr);
  try {
    if (code != SQLITE_OK) fail(code);
    // Exclusive: one writer, no shared memory, so that network file systems will do. The log
    // survives kill -9; what it holds is taken over by the next who opens the file.
    run("PRAGMA locking_mode=EXCLUSIVE");
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=NORMAL");
    check_soundness();
    run("BEGIN EXCLUSIVE");
    run("COMMIT");
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Database::~Database() {
  sqlite3_close(handle_);
}

void Database::check_soundness() {
  Statement check = prepare("PRAGMA quick_check(1)");
  if (!check.step() || check.text(0) == "ok") return;
  throw InputError(
      Problem{file_.string(), "is damaged: " + check.text(0), hint_for(SQLITE_CORRUPT)});
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

Statement Database::prepare(const std::string& sql) {
  return {*this, sql};
}

Statement::Statement(Database& database, const std::string& sql) : database_(&database) {
  const int code = sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &handle_, nullptr);
  if (code != SQLITE_OK) database.fail(code);
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::bind(int parameter, std::string_view text) {
  const int code = sqlite3_bind_text64(handle_, parameter, text.data(), text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_->fail(code);
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t number) {
  const int code = sqlite3_bind_int64(handle_, parameter, number);
  if (code != SQLITE_OK) database_->fail(code);
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  const int code = sqlite3_bind_double(handle_, parameter, number);
  if (code != SQLITE_OK) database_->fail(code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  if (code != SQLITE_DONE) database_->fail(code);
  return false;
}

std::string Statement::text(int column) const {
  const auto* text = sqlite3_column_text(handle_, column);
  if (text == nullptr) return "";
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(handle_, column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.run("BEGIN");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const InputError&) {
    // The failure that led here has ended the transaction already.
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace tessera
