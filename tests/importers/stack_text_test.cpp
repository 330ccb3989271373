// Of a stack, the frame is named that the user wrote: not PyTorch's, Python's, nor a wrapper's.
#include "importers/stack_text.h"

#include <gtest/gtest.h>

#include "importers/snapshot_timeline.h"

namespace tidemark::importers::stack_text_test {
namespace {

/// The site of a stack of these frames, innermost first.
std::string site(const std::vector<Frame>& frames) {
  MemorySnapshot snapshot;
  snapshot.frames = frames;
  for (std::uint32_t i = 0; i < frames.size(); ++i) snapshot.stack_frames.push_back(i);
  snapshot.stack_ends.push_back(frames.size());
  return site_of(snapshot, StackId{1});
}

const Frame users{"forward", "/code/model.py", 31};
const Frame torchs{"linear", "/opt/lib/python3.11/site-packages/torch/nn/functional.py", 120};

TEST(Site, IsTheUsersOwnFrame) {
  EXPECT_EQ(site({users}), "forward (model.py:31)");
  EXPECT_EQ(site({users, {"main", "/code/train.py", 7}}), "forward (model.py:31)");
}

TEST(Site, SaysWhatTheUserCalled) {
  EXPECT_EQ(site({torchs, users}), "linear ← forward (model.py:31)");
  EXPECT_EQ(site({{"malloc", "CUDACachingAllocator.cpp", 5}, torchs, users}),
            "malloc ← forward (model.py:31)");
}

// Other packages are the user's choice; Python's own files are not.
TEST(Site, TellsPackagesFromPythonItself) {
  const Frame package{"step", "/opt/lib/python3.11/site-packages/lion/lion.py", 9};
  const Frame debian{"step", "/usr/lib/python3/dist-packages/lion/lion.py", 9};
  const Frame python{"run", "/usr/lib/python3.11/threading.py", 975};
  EXPECT_EQ(site({torchs, package, users}), "linear ← step (lion.py:9)");
  EXPECT_EQ(site({torchs, debian, users}), "linear ← step (lion.py:9)");
  EXPECT_EQ(site({torchs, python, users}), "linear ← forward (model.py:31)");
  for (const char* file : {"<frozen runpy>", "<__array_function__ internals>", "", "a.cpp"})
    EXPECT_EQ(site({torchs, {"f", file, 1}, users}), "linear ← forward (model.py:31)") << file;
  EXPECT_EQ(site({torchs, {"cell", "<ipython-input-3>", 1}, users}),
            "linear ← cell (<ipython-input-3>:1)");
}

TEST(Site, PassesByWrappers) {
  for (const char* wrapper : {"_call_impl", "_wrapped_call_impl", "__call__"}) {
    const Frame frame{wrapper, "/code/module.py", 3};
    EXPECT_EQ(site({frame, users}), "forward (model.py:31)");
    EXPECT_EQ(site({torchs, frame, users}), "linear ← forward (model.py:31)");
    EXPECT_EQ(site({frame}), "(no stack was recorded)");
  }
}

TEST(Site, WithoutAUserIsTheInnermostFrame) {
  EXPECT_EQ(site({torchs}), "linear (functional.py:120)");
  EXPECT_EQ(site({}), "(no stack was recorded)");
  EXPECT_EQ(site_of(MemorySnapshot(), no_stack), "(no stack was recorded)");
}

TEST(Frame, ShowsTheLastPartOfItsPathAndNothingUnprintable) {
  EXPECT_EQ(frame_text({"f\n", "C:\\me\\a\tb.py", 1}), "f? (a?b.py:1)");
}

}  // namespace
}  // namespace tidemark::importers::stack_text_test
