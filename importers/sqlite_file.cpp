// What https://sqlite.org/security.html advises for files from anywhere, and three bounds of our
// own: only tables can be read, instructions and texts are counted against the size of the file.
// Pages may refer to one page many times over, so that a small file could be read forever.
#include "importers/sqlite_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/gzip.h"
#include "base/quoted.h"

namespace tidemark::importers {
namespace {

/// As of snapshots and runs: what one would wait for.
constexpr std::uint64_t largest_file = std::uint64_t{4} << 30;

// Characters that mean something in a URI are written as their numbers.
std::string uri_of(const std::string& path) {
  std::string uri = "file://";
  for (const char letter : std::filesystem::absolute(path).string()) {
    const bool is_special = letter == '%' || letter == '?' || letter == '#';
    uri += is_special ? fmt::format("%{:02x}", static_cast<unsigned char>(letter))
                      : std::string(1, letter);
  }
  return uri + "?mode=ro&immutable=1";
}

// Reading columns of tables, and asking which there are. Everything else in a statement is refused,
// whatever a schema would bring into it.
int authorize(void*, int action, const char* first, const char*, const char*, const char*) {
  if (action == SQLITE_SELECT || action == SQLITE_READ) return SQLITE_OK;
  const bool asks_for_columns =
      action == SQLITE_PRAGMA && first != nullptr && std::string_view(first) == "table_xinfo";
  return asks_for_columns ? SQLITE_OK : SQLITE_DENY;
}

}  // namespace

bool SqliteRow::has(std::size_t column) const {
  return sqlite3_column_type(statement_, static_cast<int>(column)) != SQLITE_NULL;
}

std::int64_t SqliteRow::integer(std::size_t column) const {
  if (sqlite3_column_type(statement_, static_cast<int>(column)) != SQLITE_INTEGER)
    fail(fmt::format("{} is no whole number", columns_[column].name));
  return sqlite3_column_int64(statement_, static_cast<int>(column));
}

std::string_view SqliteRow::text(std::size_t column) const {
  if (sqlite3_column_type(statement_, static_cast<int>(column)) != SQLITE_TEXT)
    fail(fmt::format("{} is no text", columns_[column].name));
  const unsigned char* const text = sqlite3_column_text(statement_, static_cast<int>(column));
  if (text == nullptr) fail(fmt::format("{} cannot be read", columns_[column].name));
  const int bytes = sqlite3_column_bytes(statement_, static_cast<int>(column));
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes)};
}

void SqliteRow::fail(std::string_view problem) const {
  throw InputError(fmt::format("{}, row {}: {}", place_, number_, problem));
}

void SqliteFile::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void SqliteFile::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteFile::SqliteFile(const std::string& path, std::string remedy)
    : name_(path), remedy_(std::move(remedy)) {
  std::error_code error;
  bytes_ = std::filesystem::file_size(path, error);
  if (error) fail(error.message());
  if (bytes_ > largest_file) fail("is larger than 4 GiB, which is not read");
  sqlite3* opened = nullptr;
  // One thread uses it: without the locks that each value of each row would take.
  constexpr int how = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(uri_of(path).c_str(), &opened, how, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) fail_as(code);
  guard();
  read_schema();
}

void SqliteFile::guard() {
  sqlite3* const database = database_.get();
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                           SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION})
    sqlite3_db_config(database, option, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  constexpr std::array<std::pair<int, int>, 9> limits = {{{SQLITE_LIMIT_SQL_LENGTH, 100'000},
                                                          {SQLITE_LIMIT_EXPR_DEPTH, 10},
                                                          {SQLITE_LIMIT_COMPOUND_SELECT, 3},
                                                          {SQLITE_LIMIT_VDBE_OP, 25'000},
                                                          {SQLITE_LIMIT_FUNCTION_ARG, 8},
                                                          {SQLITE_LIMIT_ATTACHED, 0},
                                                          {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
                                                          {SQLITE_LIMIT_VARIABLE_NUMBER, 10},
                                                          {SQLITE_LIMIT_TRIGGER_DEPTH, 10}}};
  for (const auto& [limit, most] : limits) sqlite3_limit(database, limit, most);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", nullptr, nullptr,
               nullptr);
  sqlite3_set_authorizer(database, authorize, nullptr);

  // A row of n columns takes n instructions and a few, and at least n bytes and a few of the file.
  constexpr int often = 1000;
  constexpr std::uint64_t most_per_byte = 4, before_the_first_row = 20'000;
  sqlite3_progress_handler(
      database, often,
      [](void* self) {
        auto& file = *static_cast<SqliteFile*>(self);
        file.instructions_ += often;
        return file.instructions_ > before_the_first_row + most_per_byte * file.bytes_ ? 1 : 0;
      },
      this);
}

void SqliteFile::read_schema() {
  std::vector<std::string> names;
  const Statement tables = prepare("SELECT type, name, rootpage FROM sqlite_master");
  while (step(tables.get())) {
    const auto text = [&](int column) {
      const unsigned char* const found = sqlite3_column_text(tables.get(), column);
      return found == nullptr ? std::string() : reinterpret_cast<const char*>(found);
    };
    const bool is_virtual = sqlite3_column_int64(tables.get(), 2) == 0;
    if (text(0) == "table" && !is_virtual) names.push_back(text(1));
  }
  for (const std::string& name : names) {
    const bool is_plain = std::ranges::all_of(name, [](char letter) {
      return letter == '_' || (letter >= '0' && letter <= '9') ||
             (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z');
    });
    if (!is_plain) continue;  // nobody asks for such a one
    const Statement columns = prepare(fmt::format("PRAGMA table_xinfo(\"{}\")", name));
    std::vector<std::string>& found = tables_[name];
    while (step(columns.get())) {
      const unsigned char* const column = sqlite3_column_text(columns.get(), 1);
      const bool is_computed = sqlite3_column_int64(columns.get(), 6) != 0;
      if (column != nullptr && !is_computed)
        found.emplace_back(reinterpret_cast<const char*>(column));
    }
  }
}

bool SqliteFile::has(std::string_view table, std::string_view column) const {
  const auto found = tables_.find(std::string(table));
  return found != tables_.end() && std::ranges::find(found->second, column) != found->second.end();
}

void SqliteFile::each_row(std::string_view table, const std::vector<SqliteColumn>& columns,
                          const std::function<void(const SqliteRow&)>& take) {
  if (!has(table)) return;
  std::string list;
  for (const SqliteColumn& column : columns) {
    const bool is_there = has(table, column.name);
    if (!is_there && column.is_needed) fail(fmt::format("{} has no column {}", table, column.name));
    list += fmt::format("{}{}", list.empty() ? "" : ", ",
                        is_there ? fmt::format("\"{}\"", column.name) : "NULL");
  }
  const std::string place = fmt::format("{}: {}", printable(name_, 200), table);
  const Statement rows = prepare(fmt::format("SELECT {} FROM \"{}\" NOT INDEXED", list, table));
  SqliteRow row(place, columns, rows.get());
  std::uint64_t texts = 0;
  while (step(rows.get())) {
    ++row.number_;
    for (int i = 0; i < static_cast<int>(columns.size()); ++i)
      if (sqlite3_column_type(rows.get(), i) == SQLITE_TEXT)
        texts += static_cast<std::uint64_t>(sqlite3_column_bytes(rows.get(), i));
    constexpr std::uint64_t wider = 2;  // a text of UTF-16 takes up to one and a half in UTF-8
    if (texts > wider * bytes_) row.fail("texts of more bytes than the file has: it is damaged");
    take(row);
  }
}

SqliteFile::Statement SqliteFile::prepare(const std::string& sql) const {
  instructions_ = 0;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr);
  Statement prepared(statement);
  if (code != SQLITE_OK) fail_as(code);
  return prepared;
}

bool SqliteFile::step(sqlite3_stmt* statement) const {
  const int code = sqlite3_step(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail_as(code);
  return code == SQLITE_ROW;
}

void SqliteFile::fail_as(int code) const {
  if (code == SQLITE_NOTADB) fail("is no database of SQLite: " + remedy_);
  if (code == SQLITE_INTERRUPT)
    fail("takes more work than its size explains: it is damaged: " + remedy_);
  const std::string said = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
  fail(fmt::format("{} (SQLite): {}", printable(said, 200), remedy_));
}

void SqliteFile::fail(std::string_view problem) const {
  throw InputError(fmt::format("{}: {}", printable(name_, 200), problem));
}

bool is_sqlite(const std::string& path) {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  return first_bytes(path, magic.size()) == magic;
}

}  // namespace tidemark::importers
