// The instructions of Python's pickle format, protocols 0 to 5 (Lib/pickletools.py documents them),
// by name: those that plain data needs are understood, all others are refused.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tidemark::importers {

/// What a reader of plain data does with an instruction.
enum class OpcodeUse : std::uint8_t {
  Understood,
  RunsCode,  ///< imports or calls what the file names
  Other,     ///< data of kinds that recordings do not have
};

struct OpcodeRow {
  char code;
  std::string_view name;
  OpcodeUse use;
};

inline constexpr std::array opcode_rows = {
    OpcodeRow{'(', "MARK", OpcodeUse::Understood},
    OpcodeRow{'.', "STOP", OpcodeUse::Understood},
    OpcodeRow{'0', "POP", OpcodeUse::Other},
    OpcodeRow{'1', "POP_MARK", OpcodeUse::Other},
    OpcodeRow{'2', "DUP", OpcodeUse::Other},
    OpcodeRow{'F', "FLOAT", OpcodeUse::Other},
    OpcodeRow{'I', "INT", OpcodeUse::Other},
    OpcodeRow{'J', "BININT", OpcodeUse::Understood},
    OpcodeRow{'K', "BININT1", OpcodeUse::Understood},
    OpcodeRow{'L', "LONG", OpcodeUse::Other},
    OpcodeRow{'M', "BININT2", OpcodeUse::Understood},
    OpcodeRow{'N', "NONE", OpcodeUse::Understood},
    OpcodeRow{'P', "PERSID", OpcodeUse::RunsCode},
    OpcodeRow{'Q', "BINPERSID", OpcodeUse::RunsCode},
    OpcodeRow{'R', "REDUCE", OpcodeUse::RunsCode},
    OpcodeRow{'S', "STRING", OpcodeUse::Other},
    OpcodeRow{'T', "BINSTRING", OpcodeUse::Other},
    OpcodeRow{'U', "SHORT_BINSTRING", OpcodeUse::Other},
    OpcodeRow{'V', "UNICODE", OpcodeUse::Other},
    OpcodeRow{'X', "BINUNICODE", OpcodeUse::Understood},
    OpcodeRow{'a', "APPEND", OpcodeUse::Understood},
    OpcodeRow{'b', "BUILD", OpcodeUse::RunsCode},
    OpcodeRow{'c', "GLOBAL", OpcodeUse::RunsCode},
    OpcodeRow{'d', "DICT", OpcodeUse::Other},
    OpcodeRow{'}', "EMPTY_DICT", OpcodeUse::Understood},
    OpcodeRow{'e', "APPENDS", OpcodeUse::Understood},
    OpcodeRow{'g', "GET", OpcodeUse::Other},
    OpcodeRow{'h', "BINGET", OpcodeUse::Understood},
    OpcodeRow{'i', "INST", OpcodeUse::RunsCode},
    OpcodeRow{'j', "LONG_BINGET", OpcodeUse::Understood},
    OpcodeRow{'l', "LIST", OpcodeUse::Other},
    OpcodeRow{']', "EMPTY_LIST", OpcodeUse::Understood},
    OpcodeRow{'o', "OBJ", OpcodeUse::RunsCode},
    OpcodeRow{'p', "PUT", OpcodeUse::Other},
    OpcodeRow{'q', "BINPUT", OpcodeUse::Understood},
    OpcodeRow{'r', "LONG_BINPUT", OpcodeUse::Understood},
    OpcodeRow{'s', "SETITEM", OpcodeUse::Understood},
    OpcodeRow{'t', "TUPLE", OpcodeUse::Understood},
    OpcodeRow{')', "EMPTY_TUPLE", OpcodeUse::Understood},
    OpcodeRow{'u', "SETITEMS", OpcodeUse::Understood},
    OpcodeRow{'G', "BINFLOAT", OpcodeUse::Understood},
    OpcodeRow{'\x80', "PROTO", OpcodeUse::Understood},
    OpcodeRow{'\x81', "NEWOBJ", OpcodeUse::RunsCode},
    OpcodeRow{'\x82', "EXT1", OpcodeUse::RunsCode},
    OpcodeRow{'\x83', "EXT2", OpcodeUse::RunsCode},
    OpcodeRow{'\x84', "EXT4", OpcodeUse::RunsCode},
    OpcodeRow{'\x85', "TUPLE1", OpcodeUse::Understood},
    OpcodeRow{'\x86', "TUPLE2", OpcodeUse::Understood},
    OpcodeRow{'\x87', "TUPLE3", OpcodeUse::Understood},
    OpcodeRow{'\x88', "NEWTRUE", OpcodeUse::Understood},
    OpcodeRow{'\x89', "NEWFALSE", OpcodeUse::Understood},
    OpcodeRow{'\x8a', "LONG1", OpcodeUse::Understood},
    OpcodeRow{'\x8b', "LONG4", OpcodeUse::Understood},
    OpcodeRow{'B', "BINBYTES", OpcodeUse::Other},
    OpcodeRow{'C', "SHORT_BINBYTES", OpcodeUse::Other},
    OpcodeRow{'\x8c', "SHORT_BINUNICODE", OpcodeUse::Understood},
    OpcodeRow{'\x8d', "BINUNICODE8", OpcodeUse::Understood},
    OpcodeRow{'\x8e', "BINBYTES8", OpcodeUse::Other},
    OpcodeRow{'\x8f', "EMPTY_SET", OpcodeUse::Other},
    OpcodeRow{'\x90', "ADDITEMS", OpcodeUse::Other},
    OpcodeRow{'\x91', "FROZENSET", OpcodeUse::Other},
    OpcodeRow{'\x92', "NEWOBJ_EX", OpcodeUse::RunsCode},
    OpcodeRow{'\x93', "STACK_GLOBAL", OpcodeUse::RunsCode},
    OpcodeRow{'\x94', "MEMOIZE", OpcodeUse::Understood},
    OpcodeRow{'\x95', "FRAME", OpcodeUse::Understood},
    OpcodeRow{'\x96', "BYTEARRAY8", OpcodeUse::Other},
    OpcodeRow{'\x97', "NEXT_BUFFER", OpcodeUse::RunsCode},
    OpcodeRow{'\x98', "READONLY_BUFFER", OpcodeUse::RunsCode}};

}  // namespace tidemark::importers
