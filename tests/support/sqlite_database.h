// Databases of SQLite for tests, as statements make them.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tidemark {

/// The bytes of a database's file.
inline std::string sqlite_database(const std::string& statements) {
  sqlite3* made = nullptr;
  sqlite3_open(":memory:", &made);
  char* problem = nullptr;
  sqlite3_exec(made, ("PRAGMA page_size=512;" + statements).c_str(), nullptr, nullptr, &problem);
  EXPECT_EQ(problem, nullptr) << problem;
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(made, "main", &size, 0);
  std::string file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(made);
  return file;
}

/// A training step as Nsight Systems exports it, changed by more statements.
inline std::string nsys_step(const std::string& statements = "") {
  std::ifstream file(TIDEMARK_TESTS_DIR "/reference/nsys/step.sql");
  return sqlite_database(std::string(std::istreambuf_iterator<char>(file), {}) + statements);
}

}  // namespace tidemark
