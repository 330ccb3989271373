// One function per instruction that does more than push a number. Nothing recurses, and no count
// of the file is believed before as many bytes were seen.
#include "importers/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "importers/pickle_opcodes.h"

namespace tidemark::importers {
namespace {

constexpr int oldest_protocol = 2, newest_protocol = 5;
constexpr std::uint8_t deepest = 64;
constexpr char proto = '\x80';

constexpr std::array<const OpcodeRow*, 256> rows_by_code = [] {
  std::array<const OpcodeRow*, 256> rows{};
  for (const OpcodeRow& row : opcode_rows) rows[static_cast<unsigned char>(row.code)] = &row;
  return rows;
}();

bool is_container(Value value) {
  return value.kind == ValueKind::List || value.kind == ValueKind::Tuple ||
         value.kind == ValueKind::Dict;
}

std::string_view name_of(ValueKind kind) {
  return kind == ValueKind::List ? "list" : kind == ValueKind::Dict ? "dict" : "tuple";
}

}  // namespace

Value PickleReader::read(const Take& take) {
  take_ = &take;
  begin();
  while (step()) {
  }
  if (stack_.size() != 1 || !marks_.empty())
    fail(fmt::format("opcode STOP with {} values; need one (the file is damaged)", stack_.size()));
  if (!input_.at_end()) fail("opcode STOP, but the file goes on; need one pickle only");
  return resolved(stack_.front());
}

void PickleReader::begin() {
  at_ = input_.offset();
  const bool has_protocol = !input_.at_end() && input_.byte("PROTO") == 0x80;
  const int protocol = has_protocol ? input_.byte("PROTO") : -1;
  if (protocol < oldest_protocol || protocol > newest_protocol)
    fail(
        fmt::format("no pickle of protocol {} to {} begins here (torch.cuda.memory."
                    "_dump_snapshot writes one)",
                    oldest_protocol, newest_protocol));
}

void PickleReader::refuse(char code) const {
  const OpcodeRow* row = rows_by_code[static_cast<unsigned char>(code)];
  if (!row)
    fail(fmt::format("no opcode is 0x{:02x} (the file is damaged)",
                     static_cast<unsigned char>(code)));
  if (row->use == OpcodeUse::RunsCode)
    fail(
        fmt::format("opcode {}: this file could run code; it is no plain snapshot and was not "
                    "read further",
                    row->name));
  fail(
      fmt::format("opcode {}: no part of a memory snapshot (torch.cuda.memory._dump_snapshot "
                  "writes one)",
                  row->name));
}

bool PickleReader::step() {
  at_ = input_.offset();
  const auto code = static_cast<char>(input_.byte("an opcode"));
  const OpcodeRow* row = rows_by_code[static_cast<unsigned char>(code)];
  if (!row || row->use != OpcodeUse::Understood || code == proto) refuse(code);
  instruction_ = row->name;
  const auto small = [&](int bytes) {
    push({ValueKind::Integer, 0, static_cast<std::int64_t>(number(bytes))});
  };
  switch (code) {
    case '.':
      return false;
    case '(':
      require_share(marks_.size(), "marks");
      marks_.push_back(stack_.size());
      break;
    case 'N':
      push({});
      break;
    case '\x88':
    case '\x89':
      push({ValueKind::Bool, 0, code == '\x88'});
      break;
    case 'K':
      small(1);
      break;
    case 'M':
      small(2);
      break;
    case 'J':
      push({ValueKind::Integer, 0, static_cast<std::int32_t>(number(4))});
      break;
    case '\x8a':
      push_long(number(1));
      break;
    case '\x8b':
      push_long(number(4));
      break;
    case 'G':
      number(8);
      push({ValueKind::Float, 0, 0});
      break;
    case '\x8c':
      push_text(number(1));
      break;
    case 'X':
      push_text(number(4));
      break;
    case '\x8d':
      push_text(number(8));
      break;
    case ']':
      push_container(ValueKind::List, {});
      break;
    case '}':
      push_container(ValueKind::Dict, {});
      break;
    case ')':
      push_container(ValueKind::Tuple, {});
      break;
    case '\x85':
    case '\x86':
    case '\x87':
      push_tuple(static_cast<std::size_t>(code - '\x84'));
      break;
    case 't':
      push_tuple(stack_.size() - pop_mark());
      break;
    case 'a':
      need(2);
      append(stack_.size() - 1);
      break;
    case 's':
      need(3);
      set_items(stack_.size() - 2);
      break;
    case 'e':
      append(pop_mark());
      break;
    case 'u':
      set_items(pop_mark());
      break;
    case '\x94':
      memoize(memo_.size());
      break;
    case 'q':
      memoize(number(1));
      break;
    case 'r':
      memoize(number(4));
      break;
    case 'h':
      recall(number(1));
      break;
    case 'j':
      recall(number(4));
      break;
    case '\x95':
      number(8);  // how long a frame is helps who reads from a pipe
      break;
    default:
      refuse(code);
  }
  return true;
}

std::uint64_t PickleReader::number(int bytes) {
  const std::string_view found = input_.bytes(static_cast<std::uint64_t>(bytes), instruction_);
  std::uint64_t sum = 0;
  for (int i = bytes; i-- > 0;)
    sum = sum << 8 | static_cast<unsigned char>(found[static_cast<std::size_t>(i)]);
  return sum;
}

// Plain data of this size has far fewer: an event or block takes dozens of bytes. So a file that
// was made to fill the memory ends here instead.
void PickleReader::require_share(std::size_t count, std::string_view what) const {
  constexpr std::uint64_t bytes_each = 8, always = 1 << 16;
  if (count > at_ / bytes_each + always)
    fail(fmt::format("more {} than {} bytes of a snapshot have (the file is damaged)", what, at_));
}

void PickleReader::push(Value value) {
  require_share(stack_.size(), "values in waiting");
  stack_.push_back(value);
}

// Never across a mark: what is below belongs to another opcode.
void PickleReader::need(std::size_t values) const {
  const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - bottom < values)
    fail(fmt::format("opcode {} needs {} values and finds {} (the file is damaged)", instruction_,
                     values, stack_.size() - bottom));
}

std::size_t PickleReader::pop_mark() {
  if (marks_.empty())
    fail(fmt::format("opcode {} without a MARK before it (the file is damaged)", instruction_));
  const std::size_t from = marks_.back();
  marks_.pop_back();
  return from;
}

void PickleReader::push_text(std::uint64_t length) {
  const std::string_view found = input_.bytes(length, instruction_);
  const auto known = text_places_.find(found);
  if (known != text_places_.end()) return push({ValueKind::Text, 0, known->second});
  require_share(2 * texts_.size(), "texts");
  const auto place = static_cast<std::int64_t>(texts_.size());
  text_places_.emplace(texts_.emplace_back(found), place);
  push({ValueKind::Text, 0, place});
}

void PickleReader::push_long(std::uint64_t length) {
  if (length > sizeof(std::int64_t))
    fail(fmt::format("a whole number of {} bytes; need at most {}", length, sizeof(std::int64_t)));
  if (length == 0) return push({ValueKind::Integer, 0, 0});
  const int unused = 64 - 8 * static_cast<int>(length);
  // Its highest bit is the sign.
  const auto shifted = std::bit_cast<std::int64_t>(number(static_cast<int>(length)) << unused);
  push({ValueKind::Integer, 0, shifted >> unused});
}

std::uint32_t PickleReader::free_place() {
  if (free_places_.empty()) {
    pool_.emplace_back();
    return static_cast<std::uint32_t>(pool_.size() - 1);
  }
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  return place;
}

void PickleReader::push_container(ValueKind kind, std::span<const Value> items) {
  require_share(containers_.size(), "lists and dicts");
  Container made{.place = free_place(), .kind = kind};
  if (!items.empty()) {
    complete(items, made);
    hold(items, made);
  }
  if (kind == ValueKind::Tuple) {
    made.is_complete = true;
    try_to_take(made);
  }
  containers_.push_back(made);
  push({kind, 0, static_cast<std::int64_t>(containers_.size() - 1)});
}

void PickleReader::push_tuple(std::size_t count) {
  need(count);
  const std::size_t from = stack_.size() - count;
  push_container(ValueKind::Tuple, std::span(stack_).subspan(from));
  std::swap(stack_[from], stack_.back());
  stack_.resize(from + 1);
}

// Below what is put into it.
PickleReader::Container& PickleReader::target(ValueKind kind, std::size_t from) {
  const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (from <= bottom || stack_[from - 1].kind != kind)
    fail(fmt::format("opcode {} without a {} to put things into (the file is damaged)",
                     instruction_, name_of(kind)));
  Container& container = containers_[static_cast<std::size_t>(stack_[from - 1].number)];
  if (container.is_complete)
    fail(
        fmt::format("opcode {} changes a {} that is already part of something else; no plain "
                    "snapshot does",
                    instruction_, name_of(kind)));
  return container;
}

void PickleReader::append(std::size_t from) { put(from, target(ValueKind::List, from)); }

void PickleReader::set_items(std::size_t from) {
  Container& dict = target(ValueKind::Dict, from);
  if ((stack_.size() - from) % 2 != 0)
    fail(fmt::format("opcode {} with a key that has no value (the file is damaged)", instruction_));
  put(from, dict);
  // Not only when it is put into something: where a whole list of dicts lies on the stack before it
  // is appended at once, they would all be there as dicts.
  try_to_take(dict);
}

void PickleReader::put(std::size_t from, Container& into) {
  const auto items = std::span(stack_).subspan(from);
  complete(items, into);
  if (into.is_complete)
    fail(fmt::format("a {} that contains itself; no plain snapshot does", name_of(into.kind)));
  hold(items, into);
  stack_.resize(from);
}

void PickleReader::hold(std::span<const Value> items, const Container& container) {
  held_ += items.size();
  require_share(held_, "parts of lists and dicts");
  auto& list = pool_[container.place];
  std::ranges::transform(items, std::back_inserter(list),
                         [this](Value item) { return resolved(item); });
}

void PickleReader::complete(std::span<const Value> items, Container& into) {
  for (const Value item : items) {
    if (!is_container(item)) continue;
    Container& part = containers_[static_cast<std::size_t>(item.number)];
    if (!part.is_complete) {
      part.is_complete = true;
      try_to_take(part);
    }
    if (part.depth >= deepest)
      fail(
          fmt::format("more than {} lists and dicts inside each other; no plain snapshot has so "
                      "many",
                      deepest));
    into.depth = std::max(into.depth, static_cast<std::uint8_t>(part.depth + 1));
  }
}

void PickleReader::try_to_take(Container& container) {
  if (container.kind == ValueKind::Record) return;
  std::vector<Value>& items = pool_[container.place];
  const std::optional<Value> record = (*take_)(container.kind, items);
  if (!record) return;
  held_ -= items.size();
  items.clear();
  free_places_.push_back(container.place);
  container.place = static_cast<std::uint32_t>(record->number);
  container.kind = ValueKind::Record;
  container.type = record->type;
  container.is_complete = true;
}

void PickleReader::memoize(std::uint64_t place) {
  need(1);
  // A pickler counts up; places far ahead would be memory that no byte of the file pays for.
  require_share(memo_.size(), "values by number");
  if (place > memo_.size())
    fail(fmt::format("opcode {} names place {} where {} is next (the file is damaged)",
                     instruction_, place, memo_.size()));
  if (place >= memo_.size()) memo_.resize(place + 1);
  memo_[place] = stack_.back();
}

void PickleReader::recall(std::uint64_t place) {
  if (place >= memo_.size())
    fail(fmt::format("opcode {} names place {} of {} (the file is damaged)", instruction_, place,
                     memo_.size()));
  push(memo_[place]);
}

Value PickleReader::resolved(Value value) const {
  if (!is_container(value)) return value;
  const Container& container = containers_[static_cast<std::size_t>(value.number)];
  if (container.kind != ValueKind::Record) return value;
  return {ValueKind::Record, container.type, container.place};
}

std::span<const Value> PickleReader::items(Value value) const {
  if (!is_container(value)) return {};
  const Container& container = containers_[static_cast<std::size_t>(value.number)];
  if (container.kind == ValueKind::Record) return {};
  return pool_[container.place];
}

bool looks_like_pickle(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[2] = {};
  return file.read(head, 2) && head[0] == proto && head[1] >= oldest_protocol &&
         head[1] <= newest_protocol;
}

}  // namespace tidemark::importers
