#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tessera {

class Statement;

/// A SQLite file that this process alone uses while it is open. What goes wrong throws InputError
/// naming the file: it cannot be opened, read or written, is no database, is damaged, the disk is
/// full, another process has it open.
class Database {
 public:
  /// Makes the file where there is none.
  explicit Database(const std::filesystem::path& file);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql);
  Statement prepare(const std::string& sql);
  const std::filesystem::path& file() const { return file_; }

 private:
  friend class Statement;
  [[noreturn]] void fail(int code) const;
  void check_soundness();

  std::filesystem::path file_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement. Parameters and columns count from 1 and 0, as in SQLite.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);
  /// The next row; false at the end, after which the statement can be bound and run again.
  bool step();
  /// Runs a statement without rows.
  void run() {
    while (step()) {
    }
  }
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  bool is_null(int column) const;

 private:
  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// Everything between construction and commit() becomes part of the file at once, or not at all.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace tessera
