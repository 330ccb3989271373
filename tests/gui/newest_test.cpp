// Of questions that are asked while another is answered only the last one counts.
#include "gui/newest.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tidemark::gui::newest_test {
namespace {

using Doubling = Newest<int, int>;

void until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Newest, HasNoAnswerBeforeTheFirstQuestion) {
  const Doubling newest([](int n, const Doubling::Watch&) { return std::make_shared<int>(2 * n); });
  EXPECT_EQ(newest.newest(), nullptr);
  EXPECT_FALSE(newest.is_catching_up());
  newest.wait();  // for nothing
}

TEST(Newest, AnswersOneAfterTheOther) {
  Doubling newest([](int n, const Doubling::Watch&) { return std::make_shared<int>(2 * n); });
  for (int n = 1; n < 20; ++n) {
    newest.ask(n);
    newest.wait();
    ASSERT_NE(newest.newest(), nullptr);
    EXPECT_EQ(*newest.newest(), 2 * n);
    EXPECT_FALSE(newest.is_catching_up());
  }
}

TEST(Newest, HasNoAnswerWhereThereIsNone) {
  Doubling newest(
      [](int n, const Doubling::Watch&) { return n < 0 ? nullptr : std::make_shared<int>(2 * n); });
  newest.ask(3);
  newest.wait();
  newest.ask(-1);
  newest.wait();
  EXPECT_EQ(newest.newest(), nullptr);
}

// The first answer notices that it is outdated, and gives up: the second is not kept waiting.
TEST(Newest, TellsAnAnswerThatItIsOutdated) {
  std::atomic<bool> has_begun = false;
  Doubling newest([&](int n, const Doubling::Watch& watch) -> std::shared_ptr<const int> {
    if (n == 1) {
      EXPECT_FALSE(watch.is_outdated());
      has_begun = true;
      while (!watch.is_outdated()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      throw Outdated();
    }
    return std::make_shared<int>(2 * n);
  });
  newest.ask(1);
  until(has_begun);
  EXPECT_TRUE(newest.is_catching_up());
  newest.ask(2);
  newest.wait();
  ASSERT_NE(newest.newest(), nullptr);
  EXPECT_EQ(*newest.newest(), 4);
}

// An answer that did not look is dropped all the same, and so are its parts.
TEST(Newest, NeverShowsWhatIsOutdated) {
  std::atomic<bool> has_begun = false, may_end = false, is_second = false;
  Doubling newest([&](int n, const Doubling::Watch& watch) -> std::shared_ptr<const int> {
    if (n == 1) {
      has_begun = true;
      until(may_end);
      watch.show(std::make_shared<int>(100));
      return std::make_shared<int>(101);
    }
    is_second = true;
    until(may_end);
    return std::make_shared<int>(2 * n);
  });
  newest.ask(1);
  until(has_begun);
  newest.ask(2);
  may_end = true;
  until(is_second);
  const auto shown = newest.newest();
  EXPECT_TRUE(!shown || *shown == 4) << *shown;
  newest.wait();
  EXPECT_EQ(*newest.newest(), 4);
}

TEST(Newest, ShowsAPartOfWhatIsComing) {
  std::atomic<bool> is_shown = false, may_end = false;
  Doubling newest([&](int n, const Doubling::Watch& watch) -> std::shared_ptr<const int> {
    watch.show(std::make_shared<int>(n));
    is_shown = true;
    until(may_end);
    return std::make_shared<int>(2 * n);
  });
  newest.ask(7);
  until(is_shown);
  ASSERT_NE(newest.newest(), nullptr);
  EXPECT_EQ(*newest.newest(), 7);
  EXPECT_TRUE(newest.is_catching_up());
  may_end = true;
  newest.wait();
  EXPECT_EQ(*newest.newest(), 14);
}

TEST(Newest, EndsWhileAnAnswerIsUnderWay) {
  std::atomic<bool> has_begun = false, was_told = false;
  {
    Doubling newest([&](int, const Doubling::Watch& watch) -> std::shared_ptr<const int> {
      has_begun = true;
      while (!watch.is_outdated()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      was_told = true;
      throw Outdated();
    });
    newest.ask(1);
    until(has_begun);
  }  // waits for the answer, and tells it
  EXPECT_TRUE(was_told);
}

}  // namespace
}  // namespace tidemark::gui::newest_test
