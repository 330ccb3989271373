// Time advances from one change to the next: a run starts or ends on some stream. Between changes
// every active run progresses at the same rate, the largest at which the sum of SM shares and
// the sum of bandwidth shares both stay at or below one; collectives more slowly if their links
// cannot carry them all. A run whose end is the next change ends there because it was chosen, not
// because nothing seems left of it: doubles cannot tell.
#include "simulator/simulate.h"

#include <algorithm>

#include "base/large_pages.h"

namespace tidemark {
namespace {

constexpr Nanoseconds never = Nanoseconds::max();

struct Active {
  bool busy = false;
  std::uint32_t run = 0;  // index into the timeline's runs
  double sm_share = 0, memory_share = 0, link_share = 0;
  // Since the rate last changed, so that a run that nothing disturbs takes exactly its own time.
  Nanoseconds since{};
  double rate = 0;
  double left = 0;  // ns of its own time that were still to do then
  Nanoseconds end{};
};

class Simulation {
 public:
  Simulation(const CostModel& costs, const Schedule& schedule, std::size_t streams)
      : schedule_(schedule),
        costs_(costs),
        host_launch_(costs.device().host_launch),
        is_alone_(streams == 1),
        queues_(streams),
        active_(streams),
        recorded_(schedule.events, never) {
    reserve_in_large_pages(timeline_.memory, 2 * schedule.buffers.size());
    for (const Buffer& buffer : schedule.buffers)
      if (buffer.persistent)
        timeline_.baseline[static_cast<std::size_t>(buffer.category)] += buffer.size;
    make_room();
  }

  Timeline run() && {
    for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) issue(i);
    while (advance()) {
    }
    timeline_.host = host_;
    timeline_.duration = std::max(now_, host_);
    return std::move(timeline_);
  }

 private:
  struct Item {
    std::uint32_t step;
    std::uint32_t cost;  // index into queued_costs_, if it takes time
    Nanoseconds issued;
  };
  struct Queue {
    std::vector<Item> items;
    std::size_t next = 0;
  };

  // Steps are many, and growing an array copies it.
  void make_room() {
    std::size_t runs = 0;
    std::vector<std::size_t> steps(queues_.size());
    for (const Step& step : schedule_.steps) {
      if (takes_time(step)) ++runs;
      if (!is_alone_) ++steps[index(stream_of(step))];
    }
    reserve_in_large_pages(timeline_.runs, runs);
    if (is_alone_) return;
    queued_costs_.reserve(runs);
    for (std::size_t s = 0; s < queues_.size(); ++s) queues_[s].items.reserve(steps[s]);
  }

  StreamId stream_of(const Step& step) const {
    return std::visit(Overload{[&](const Allocate& s) { return schedule_[s.buffer].stream; },
                               [](const Synchronize&) { return StreamId::Compute; },
                               [](const auto& s) { return s.stream; }},
                      step);
  }

  // The host gives each kernel its launch time, and stops only to synchronize.
  void issue(std::uint32_t i) {
    const Step& step = schedule_.steps[i];
    if (const auto* sync = std::get_if<Synchronize>(&step)) {
      if (is_alone_) return;
      const Nanoseconds& time = recorded_[index(sync->event)];
      for (bool more = true; time == never; more = advance()) CHECK(more);
      host_ = std::max(host_, time);
      return;
    }
    if (takes_time(step)) return issue_run(i);
    if (is_alone_) return happen(i);
    queues_[index(stream_of(step))].items.push_back({i, 0, host_});
  }

  void issue_run(std::uint32_t i) {
    const Step& step = schedule_.steps[i];
    const Cost cost = cost_of(step);
    host_ = host_ + host_launch_ * cost.kernels;
    if (is_alone_) return run_alone(i, cost);
    const auto place = static_cast<std::uint32_t>(queued_costs_.size());
    queues_[index(stream_of(step))].items.push_back({i, place, host_});
    queued_costs_.push_back(cost);
  }

  Cost cost_of(const Step& step) {
    return std::visit(
        Overload{[&](const Run& run) { return costs_.of(schedule_, run); },
                 [&](const CopyOut& copy) { return costs_.of_copy(schedule_[copy.buffer].size); },
                 [&](const CopyIn& copy) { return costs_.of_copy(schedule_[copy.buffer].size); },
                 [](const auto&) { return Cost{}; }},
        step);
  }

  // With one stream nothing is shared: each run starts when it is issued and the last one ended.
  void run_alone(std::uint32_t i, const Cost& cost) {
    if (host_ > now_) wait_for_host(host_);
    now_ = std::max(now_, host_);
    start(i, cost, 0, host_);
    reach(now_ + cost.time);
    finish(0);
  }

  static bool takes_time(const Step& step) {
    return std::holds_alternative<Run>(step) || std::holds_alternative<CopyOut>(step) ||
           std::holds_alternative<CopyIn>(step);
  }

  // Steps without duration, at the time at which their stream reaches them.
  void happen(std::uint32_t i) {
    std::visit(Overload{[&](const Allocate& s) { appear(s.buffer, true); },
                        [&](const Free& s) { appear(s.buffer, false); },
                        [&](const Record& s) { recorded_[index(s.event)] = now_, records_ = true; },
                        [](const auto&) {}},
               schedule_.steps[i]);
  }

  void appear(BufferId buffer, bool appears) {
    timeline_.memory.push_back({now_, buffer, appears});
  }

  void start(std::uint32_t i, const Cost& cost, std::size_t stream, Nanoseconds issued) {
    active_[stream] = {.busy = true,
                       .run = static_cast<std::uint32_t>(timeline_.runs.size()),
                       .sm_share = cost.sm_share,
                       .memory_share = cost.memory_share,
                       .link_share = cost.link_share,
                       .since = now_,
                       .left = static_cast<double>(cost.time.count())};
    ++busy_;
    uses_links_ = uses_links_ || cost.link_share > 0;
    timeline_.runs.push_back({i, static_cast<StreamId>(stream), now_, now_, issued});
  }

  void finish(std::size_t stream) {
    timeline_.runs[active_[stream].run].end = now_;
    active_[stream].busy = false;
    --busy_;
  }

  // Starts whatever can start now, then moves to the next end of a run or issue time. False when
  // nothing is left to do with what has been issued.
  bool advance() {
    start_ready();
    const double rate = common_rate(), link_rate = uses_links_ ? rate / links_wanted() : rate;
    Nanoseconds next = never;
    for (std::size_t s = 0; s < queues_.size(); ++s) {
      Active& active = active_[s];
      const double own = active.link_share > 0 ? link_rate : rate;
      next = std::min(next, active.busy ? end_at(own, active) : next_issue(queues_[s]));
    }
    if (next == never) return false;
    move_to(next);
    return true;
  }

  Nanoseconds next_issue(const Queue& queue) const {
    if (queue.next == queue.items.size() || queue.items[queue.next].issued <= now_) return never;
    return queue.items[queue.next].issued;
  }

  // A run that keeps its rate keeps its end.
  Nanoseconds end_at(double rate, Active& active) const {
    if (active.rate == rate) return active.end;
    if (rate == 1 && active.since == now_) {  // it has just begun, and nothing slows it down
      active.rate = rate;
      return active.end = now_ + rounded_ns(active.left);
    }
    const auto passed = static_cast<double>((now_ - active.since).count());
    active.left = std::max(0.0, active.left - passed * active.rate);
    active.since = now_, active.rate = rate;
    return active.end = now_ + rounded_ns(active.left / rate);
  }

  void reach(Nanoseconds next) {
    require_countable(static_cast<double>(next.count()));
    now_ = next;
  }

  // Nothing is busy, so nothing but the host can bring the next change.
  void wait_for_host(Nanoseconds until) {
    timeline_.idle += until - now_;
    timeline_.waits_for_host += until - now_;
  }

  void move_to(Nanoseconds next) {
    if (busy_ > 1) timeline_.overlap += next - now_;
    if (busy_ == 0) wait_for_host(next);
    reach(next);
    for (std::size_t s = 0; s < active_.size(); ++s)
      if (active_[s].busy && active_[s].end <= now_) finish(s);
  }

  // Only an event that has been recorded makes another stream's turn.
  void start_ready() {
    do {
      records_ = false;
      for (std::size_t s = 0; s < queues_.size(); ++s) start_ready(s);
    } while (records_);
  }

  void start_ready(std::size_t s) {
    Queue& queue = queues_[s];
    while (!active_[s].busy && queue.next < queue.items.size()) {
      const Item& item = queue.items[queue.next];
      if (item.issued > now_) break;
      const Step& step = schedule_.steps[item.step];
      if (const auto* wait = std::get_if<Wait>(&step))
        if (recorded_[index(wait->event)] > now_) break;
      ++queue.next;
      if (takes_time(step)) {
        start(item.step, queued_costs_[item.cost], s, item.issued);
      } else {
        happen(item.step);
      }
    }
  }

  double common_rate() const {
    if (busy_ < 2) return 1;
    double sms = 0, bandwidth = 0;
    for (const Active& active : active_)
      if (active.busy) sms += active.sm_share, bandwidth += active.memory_share;
    return 1 / std::max({1.0, sms, bandwidth});
  }

  // Collectives that share a link slow each other down, and nothing else.
  double links_wanted() const {
    double wanted = 0;
    for (const Active& active : active_)
      if (active.busy) wanted += active.link_share;
    return std::max(1.0, wanted);
  }

  const Schedule& schedule_;
  const CostModel& costs_;
  const Nanoseconds host_launch_;
  const bool is_alone_;  ///< one stream: what is issued next happens next
  std::vector<Queue> queues_;
  std::vector<Cost> queued_costs_;
  std::vector<Active> active_;
  std::size_t busy_ = 0;     ///< so many of them are
  bool uses_links_ = false;  ///< any of the runs so far
  std::vector<Nanoseconds> recorded_;
  bool records_ = false;  ///< an event, since the streams were last asked
  Nanoseconds now_{}, host_{};
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Trace& trace, const Schedule& schedule, const Device& device) {
  return simulate(trace, derive_needs(trace), schedule, device);
}

Timeline simulate(const Trace& trace, const Needs& needs, const Schedule& schedule,
                  const Device& device) {
  return simulate(CostModel(trace, needs, device), schedule);
}

Timeline simulate(const CostModel& costs, const Schedule& schedule) {
  return Simulation(costs, schedule, schedule.streams).run();
}

Timeline simulate_alone(const CostModel& costs, const Schedule& schedule) {
  return Simulation(costs, schedule, 1).run();
}

}  // namespace tidemark
