// The files of a search in parts: which part this process is, and what was simulated already.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "analysis/layouts/layout_records.h"

namespace tidemark::cli {

/// "3/7"; or "auto": that of a task of a Slurm array, of Open MPI, PMI or Slurm, by the variables
/// that they set. Throws UsageError, too where they do not number the tasks one by one.
LayoutPart search_part(const std::string& text);

/// "runs/gpt2.3-of-7.jsonl" of "runs/gpt2.jsonl"; as it is for the one part of one.
std::string records_path(const std::string& path, const LayoutPart& part);

/// A file that grows line by line. One that is there is continued, if it answers the same question.
class SearchRecords {
 public:
  /// `asked` holds no rows. Throws InputError.
  SearchRecords(const std::string& path, LayoutRecords asked);

  const LayoutNumbers* find(const std::string& key) const;
  void add(const FoundLayout& made);
  void finish();

 private:
  void take_up();
  void write(const std::string& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const std::string path_;
  LayoutRecords records_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// The rows of all parts of one search, each of which is there and done. Throws InputError.
LayoutRecords merged_records(const std::vector<std::string>& paths);

}  // namespace tidemark::cli
