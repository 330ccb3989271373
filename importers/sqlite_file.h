// Databases of SQLite that others have written, read table by table. Nothing in a file is run: no
// view, trigger or function of its, and no more is done than its size explains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace tidemark::importers {

struct SqliteColumn {
  std::string_view name;
  bool is_needed = true;  ///< else it may be missing, as in what older versions wrote
};

/// One row, as the columns were asked for. InputError says file, table, row, and what is wrong.
class SqliteRow {
 public:
  SqliteRow(const std::string& place, const std::vector<SqliteColumn>& columns,
            sqlite3_stmt* statement)
      : place_(place), columns_(columns), statement_(statement) {}

  bool has(std::size_t column) const;  ///< is there, and not NULL
  std::int64_t integer(std::size_t column) const;
  std::int64_t integer_or(std::size_t column, std::int64_t otherwise) const {
    return has(column) ? integer(column) : otherwise;
  }
  std::string_view text(std::size_t column) const;  ///< until the next row
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  friend class SqliteFile;
  const std::string& place_;
  const std::vector<SqliteColumn>& columns_;
  sqlite3_stmt* statement_;
  std::uint64_t number_ = 0;  ///< from 1
};

class SqliteFile {
 public:
  /// What to do about a damaged file is said by `remedy`, which follows a colon.
  SqliteFile(const std::string& path, std::string remedy);
  SqliteFile(const SqliteFile&) = delete;  // the library calls back, by address
  SqliteFile& operator=(const SqliteFile&) = delete;

  /// Tables alone: neither views nor virtual tables.
  bool has(std::string_view table) const { return tables_.contains(std::string(table)); }
  bool has(std::string_view table, std::string_view column) const;

  /// In the order of the file. A table that is not there has no rows.
  void each_row(std::string_view table, const std::vector<SqliteColumn>& columns,
                const std::function<void(const SqliteRow&)>& take);

  [[noreturn]] void fail(std::string_view problem) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void guard();
  void read_schema();
  Statement prepare(const std::string& sql) const;
  bool step(sqlite3_stmt* statement) const;
  [[noreturn]] void fail_as(int code) const;

  std::string name_, remedy_;
  std::uint64_t bytes_ = 0;
  mutable std::uint64_t instructions_ = 0;  ///< of the statement under way, at most
  std::unique_ptr<sqlite3, Close> database_;
  std::unordered_map<std::string, std::vector<std::string>> tables_;  ///< with their columns
};

/// Said by its first bytes, whatever it is called.
bool is_sqlite(const std::string& path);

}  // namespace tidemark::importers
