// Scripts print a line per operation, apply their settings, and are refused with line and remedy.
#include "simulator/allocator/allocator_script.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace tidemark::allocator::allocator_script_test {
namespace {

std::string run(std::string_view text) { return run_allocator_script(text, "x.in"); }

std::string error_of(std::string_view text) {
  try {
    run(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AllocatorScript, PrintsOneLinePerOperation) {
  EXPECT_EQ(run("cap 20971520\n"
                "a 1 5242880 0\n"
                "f 1\n"
                "a 2 20971521 0\n"),
            "a 7f0000000000 al=5242880 ac=5242880 rs=20971520 rq=5242880 sg=1 ab=1 is=1 "
            "isb=15728640 rt=0 da=1 df=0 sy=0 sp=0,20971520\n"
            "f 0 al=0 ac=0 rs=20971520 rq=0 sg=1 ab=0 is=0 isb=0 rt=0 da=1 df=0 sy=0 "
            "sp=0,20971520\n"
            "a 0 al=0 ac=0 rs=0 rq=0 sg=0 ab=0 is=0 isb=0 rt=1 da=1 df=1 sy=1 sp=0,0 OOM\n");
}

TEST(AllocatorScript, PrintsNothingForSettingsCommentsAndBlankLines) {
  EXPECT_EQ(run(""), "");
  EXPECT_EQ(run("# nothing\n\n   \t\ncap 1\nconf expandable_segments:True\nfrac 0.5\n  # end"), "");
}

TEST(AllocatorScript, AcceptsBlanksCarriageReturnsAndAMissingLastNewline) {
  EXPECT_EQ(run("\ta\t1   512 0 \r\n  c"), run("a 1 512 0\nc\n"));
}

TEST(AllocatorScript, AppliesItsSettings) {
  const std::string line = run("conf max_split_size_mb:64, expandable_segments:True\na 1 512 0\n");
  EXPECT_EQ(line.substr(0, 14), "a 100000000000");
  EXPECT_EQ(run("cap 41943040\nfrac 0.5\na 1 20971521 0\n").substr(0, 4), "a 0 ");
}

TEST(AllocatorScript, LetsAFailedAllocationBeFreedRecordedOrRepeated) {
  const std::string oom = "a 1 1152921504606846976 0\n";
  const std::string line = "0 al=0 ac=0 rs=0 rq=0 sg=0 ab=0 is=0 isb=0 rt=0 da=0 df=0 sy=0 sp=0,0";
  EXPECT_EQ(run(oom + "r 1 4096\nf 1\n"), "a " + line + " OOM\nr " + line + "\nf " + line + "\n");
  EXPECT_EQ(run(oom + oom), "a " + line + " OOM\na " + line + " OOM\n");
}

TEST(AllocatorScript, AllocatesNothingForNoBytes) {
  const std::string line = "0 al=0 ac=0 rs=0 rq=0 sg=0 ab=0 is=0 isb=0 rt=0 da=0 df=0 sy=0 sp=0,0";
  EXPECT_EQ(run("a 1 0 0\nr 1 2\nf 1\n"), "a " + line + "\nr " + line + "\nf " + line + "\n");
}

TEST(AllocatorScript, TakesAnyStreamNumber) {
  EXPECT_EQ(run("a 1 512 9223372036854775807\ne 77\n").substr(0, 14), "a 7f0000000000");
}

TEST(AllocatorScript, SaysWhereAndWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(error_of("a 1 512 0\nrelease 1\n"),
            "x.in:2: unknown operation 'release' (known: a, f, r, e, c, cap, conf, frac)");
  EXPECT_EQ(error_of("a 1 512\n"), "x.in:1: STREAM is missing; need 'a ID BYTES STREAM'");
  EXPECT_EQ(error_of("# first\n\na 1 512 0 0\n"),
            "x.in:3: '0' is too much; need 'a ID BYTES STREAM'");
  EXPECT_EQ(error_of("a 1 -5 0\n"),
            "x.in:1: BYTES is '-5'; need a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(error_of("a 1 512 0\na 1 512 0\n"),
            "x.in:2: allocation 1 is still live; free it first or use another ID");
  EXPECT_EQ(error_of("f 3\n"),
            "x.in:1: no live allocation 3; need the ID of an 'a' that is not freed yet");
  EXPECT_EQ(error_of("c\ncap 1000\n"),
            "x.in:2: 'cap' after the first operation; it must come before");
  EXPECT_EQ(error_of("cap 1\ncap 1\n"), "x.in:2: 'cap' is given twice; need it once");
  EXPECT_EQ(error_of("frac 1.5\n"), "x.in:1: F is '1.5'; need a number from 0 to 1");
  EXPECT_EQ(error_of("conf expandable_segment:True\n").substr(0, 82),
            "x.in:1: allocator settings: unknown option 'expandable_segment' (did you mean 'exp");
}

TEST(AllocatorScript, RefusesMoreStreamsThanItHasTablesFor) {
  std::string script;
  for (int i = 0; i <= 1024; ++i)
    script += "a " + std::to_string(i) + " 1 " + std::to_string(i) + "\n";
  EXPECT_EQ(error_of(script), "x.in:1025: more than 1024 different streams");
}

class BadScript : public testing::TestWithParam<const char*> {};

TEST_P(BadScript, IsRefused) { EXPECT_THROW(run(GetParam()), InputError); }

INSTANTIATE_TEST_SUITE_P(
    Texts, BadScript,
    testing::Values("a", "a 1", "a x 512 0", "a 1 5e3 0", "a 1 0x10 0", "a 1 512 -1", "a -1 512 0",
                    "a 1 9223372036854775808 0", "a 1 99999999999999999999999 0", "f", "f 1", "f x",
                    "a 1 512 0\nf 1\nf 1", "a 1 512 0\nf 1 2", "r 1 0", "a 1 512 0\nr 1",
                    "a 1 512 0\nr 1 x", "e", "e x", "e 0 0", "c 1", "A 1 512 0", "cap", "cap 0",
                    "cap -1", "cap x", "cap 1152921504606846977", "cap 1 2", "frac", "frac x",
                    "frac nan", "frac inf", "frac -0.1", "frac 0.5x", "frac 0.5 1",
                    "frac 0.5\nfrac 0.5", "conf x", "conf max_split_size_mb:1",
                    "conf :", "conf backend:native\nconf backend:native", "c\nconf backend:native",
                    "c\nfrac 0.5", "a 1 512 0 # no", "\xff\xfe"));

TEST(AllocatorScript, SurvivesTruncationAtEveryByte) {
  const std::string script =
      "cap 41943040\nconf max_split_size_mb:30,expandable_segments:True\nfrac 0.9\n"
      "a 1 5242880 0\nr 1 4096\nf 1\ne 4096\nc\n";
  for (std::size_t length = 0; length < script.size(); ++length) {
    try {
      run(script.substr(0, length));
    } catch (const InputError& error) {
      EXPECT_EQ(std::string_view(error.what()).substr(0, 5), "x.in:") << script.substr(0, length);
    }
  }
}

}  // namespace
}  // namespace tidemark::allocator::allocator_script_test
