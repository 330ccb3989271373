// Answers that take longer than a frame, made beside the drawing: only the newest question counts.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tidemark::gui {

/// Thrown out of an answer that nobody waits for any more.
struct Outdated {};

template <typename Question, typename Answer>
class Newest {
 public:
  /// While an answer is made. Whoever makes it asks now and then whether the question is still the
  /// one that is asked, and throws Outdated if it is not.
  struct Watch {
    std::function<bool()> is_outdated;
    std::function<void(std::shared_ptr<const Answer>)> show;  ///< a part of it already
  };
  /// Makes an answer in a thread of its own, or nothing.
  using Work = std::function<std::shared_ptr<const Answer>(const Question&, const Watch&)>;

  explicit Newest(Work work)
      : work_(std::move(work)), worker_([this](const std::stop_token& stop) { run(stop); }) {}
  Newest(const Newest&) = delete;
  Newest& operator=(const Newest&) = delete;
  ~Newest() {
    worker_.request_stop();
    const std::scoped_lock lock(mutex_);
    ++asked_;  // ends an answer that is under way
    changed_.notify_all();
  }

  /// What was asked before is dropped.
  void ask(Question question) {
    const std::scoped_lock lock(mutex_);
    question_ = std::move(question);
    ++asked_;
    changed_.notify_all();
  }
  /// The newest finished answer; null before the first, and where there is none.
  std::shared_ptr<const Answer> newest() const {
    const std::scoped_lock lock(mutex_);
    return newest_;
  }
  /// Is the newest one not yet of the last question?
  bool is_catching_up() const {
    const std::scoped_lock lock(mutex_);
    return answered_ != asked_;
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return answered_ == asked_; });
  }

 private:
  bool is_outdated(std::uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    return number != asked_;
  }

  void show(std::uint64_t number, std::shared_ptr<const Answer> part) {
    const std::scoped_lock lock(mutex_);
    if (number == asked_) newest_ = std::move(part);
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // The last question of all is none: it only ends an answer that is under way.
    while (changed_.wait(lock, stop, [this] { return answered_ != asked_; }) &&
           !stop.stop_requested()) {
      const std::uint64_t number = asked_;
      const Question question = question_;
      lock.unlock();
      std::shared_ptr<const Answer> made;
      try {
        made = work_(question, {[&] { return is_outdated(number); },
                                [&](auto part) { show(number, std::move(part)); }});
      } catch (const Outdated&) {
      }
      lock.lock();
      // Asked anew while this was made: not shown, not even for a frame.
      if (number != asked_) continue;
      newest_ = std::move(made);
      answered_ = number;
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  Work work_;
  Question question_{};
  std::uint64_t asked_ = 0, answered_ = 0;
  std::shared_ptr<const Answer> newest_;
  std::jthread worker_;  ///< last: it uses the others
};

}  // namespace tidemark::gui
