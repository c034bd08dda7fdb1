//! Tests of the election rules, with a model of a server. Each candidate has its own clock; a seed
//! determines the faults.
//!
//! A candidate repeats the loop of `LeaderElector`, one step at a time. Its work ends as late as
//! the rules allow.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::election::{Election, Next, Outcome, Request, Response};
use super::{LeaderElectionConfig, record};

/// The true time that passes in each step of the model. The clocks of candidates can run faster or
/// slower.
const STEP: Duration = Duration::from_millis(50);

/// The time for which faults are injected.
const UNREST: Duration = Duration::from_secs(240);

/// The maximum time from the last fault until there is a leader. It covers the expiry of a lease
/// that no candidate renews, two waits of a candidate, and requests that time out.
const RECOVERY: Duration = Duration::from_secs(35);

/// A model of an API server that stores one lease or none.
#[derive(Default)]
struct Server {
    lease: Option<Lease>,
    version: u64,
}

impl Server {
    fn response(&mut self, request: &Request) -> Response {
        match (request, &self.lease) {
            (Request::Get, None) => Response::NotFound,
            (Request::Get, Some(lease)) => Response::Lease(Box::new(lease.clone())),
            (Request::Create(lease), None) => self.store(lease),
            (Request::Replace(lease), Some(current))
                if record::version(lease) == record::version(current) =>
            {
                // As in the API server, a replacement without a change writes nothing.
                if lease.spec == current.spec { Response::Lease(lease.clone()) } else { self.store(lease) }
            }
            _ => Response::Conflict,
        }
    }

    fn store(&mut self, lease: &Lease) -> Response {
        let mut lease = lease.clone();
        self.version += 1;
        lease.metadata.uid = Some("only".to_owned());
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        Response::Lease(Box::new(lease))
    }
}

/// A request in transit between a candidate and the server, and its response, unless the response
/// is lost.
struct Message {
    from: usize,
    id: u64,
    request: Request,
    arrives: Duration,
    back: Option<Duration>,
    response: Option<Response>,
}

struct Candidate {
    election: Election,
    /// The speed of the candidate's clock, relative to the true time.
    rate: f64,
    /// The wall-clock time of the candidate at the start.
    date: Timestamp,
    next_try: Instant,
    waiting: Option<(u64, Request, Instant)>,
    at_work: bool,
    offline_until: Duration,
}

struct World {
    server: Server,
    candidates: Vec<Candidate>,
    messages: Vec<Message>,
    random: fastrand::Rng,
    began: Instant,
    now: Duration,
    last_id: u64,
    terms: HashMap<usize, u32>,
}

impl World {
    fn new(seed: u64, rates: &[f64]) -> Self {
        let began = Instant::now();
        let mut random = fastrand::Rng::with_seed(seed);
        let candidates = rates.iter().map(|&rate| Candidate {
            // All candidates have the same identity, because the rules must not depend on it.
            election: Election::new(LeaderElectionConfig::new("shop", "till").identity("clerk")),
            rate,
            date: Timestamp::from_second(random.i64(0..4_000_000_000)).expect("the timestamp is valid"),
            next_try: began,
            waiting: None,
            at_work: false,
            offline_until: Duration::ZERO,
        });
        let candidates = candidates.collect();
        let (server, messages, terms) = (Server::default(), Vec::new(), HashMap::new());
        Self { server, candidates, messages, random, began, now: Duration::ZERO, last_id: 0, terms }
    }

    fn clock(&self, who: usize) -> (Instant, Timestamp) {
        let candidate = &self.candidates[who];
        let local = self.now.mul_f64(candidate.rate);
        // The wall clock of one candidate stands still.
        let date = if who == 1 { candidate.date } else { candidate.date + local };
        (self.began + local, date)
    }

    fn send(&mut self, who: usize, request: Request) {
        let (sent, _) = self.clock(who);
        self.last_id += 1;
        self.candidates[who].waiting = Some((self.last_id, request.clone(), sent));
        let quiet = self.now >= UNREST;
        if !quiet && self.now < self.candidates[who].offline_until {
            return;
        }
        // Until `UNREST`, a request or response is sometimes slow, or the response is lost.
        let slow = |random: &mut fastrand::Rng| match random.u8(..40) {
            0 if !quiet => Duration::from_millis(random.u64(1..25_000)),
            1..6 if !quiet => Duration::from_millis(random.u64(1..5_000)),
            _ => Duration::from_millis(random.u64(1..200)),
        };
        let (there, back) = (slow(&mut self.random), slow(&mut self.random));
        let arrives = self.now + there;
        let back = (quiet || self.random.u8(..25) > 0).then(|| arrives + back);
        let message = Message { from: who, id: self.last_id, request, arrives, back, response: None };
        self.messages.push(message);
    }

    fn step(&mut self) {
        self.now += STEP;
        (0..self.candidates.len()).for_each(|who| self.end_late_work(who));
        self.deliver();
        for who in 0..self.candidates.len() {
            self.fail_randomly(who);
            self.turn(who);
        }
    }

    fn end_late_work(&mut self, who: usize) {
        let (local, _) = self.clock(who);
        let candidate = &mut self.candidates[who];
        if candidate.at_work && candidate.election.work_until().is_none_or(|until| local >= until) {
            candidate.at_work = false;
            candidate.election.step_down();
        }
    }

    fn deliver(&mut self) {
        let mut arrived = Vec::new();
        for message in &mut self.messages {
            if message.response.is_none() && message.arrives <= self.now {
                message.response = Some(self.server.response(&message.request));
            }
            if let (Some(response), Some(_)) =
                (&message.response, message.back.filter(|back| *back <= self.now))
            {
                arrived.push((message.from, message.id, response.clone()));
            }
        }
        let now = self.now;
        self.messages
            .retain(|message| message.response.is_none() || message.back.is_some_and(|back| back > now));
        for (who, id, response) in arrived {
            if let Some((_, request, sent)) = self.candidates[who].waiting.take_if(|waiting| waiting.0 == id)
            {
                self.process_response(who, &request, response, sent);
            }
        }
    }

    fn process_response(&mut self, who: usize, request: &Request, response: Response, sent: Instant) {
        let (local, date) = self.clock(who);
        let candidate = &mut self.candidates[who];
        let next = candidate.election.process_response(request, response, sent, local, date);
        match next {
            Next::Send(request) => return self.send(who, request),
            Next::End(Outcome::Leading) if !candidate.at_work => {
                candidate.at_work = true;
                *self.terms.entry(who).or_default() += 1;
            }
            Next::End(Outcome::Lost) => {
                candidate.at_work = false;
                candidate.election.step_down();
            }
            Next::End(Outcome::Leading | Outcome::Failed) => {}
        }
        let share = self.random.f64();
        let candidate = &mut self.candidates[who];
        candidate.next_try = local + candidate.election.pause(share);
    }

    fn turn(&mut self, who: usize) {
        let (local, date) = self.clock(who);
        let candidate = &mut self.candidates[who];
        if candidate.at_work && candidate.election.renew_by().is_some_and(|by| local >= by) {
            // The renew deadline is over: the work was cancelled, and the leader sends no more renewals.
            candidate.waiting = None;
            return;
        }
        match candidate.waiting.take() {
            Some((_, request, sent)) if local >= sent + Duration::from_secs(5) => {
                self.process_response(who, &request, Response::Failed, sent);
            }
            Some(waiting) => candidate.waiting = Some(waiting),
            None if local >= candidate.next_try => {
                let request = candidate.election.begin(date);
                self.send(who, request);
            }
            None => {}
        }
    }

    /// Sometimes disconnects, restarts or stops a candidate.
    fn fail_randomly(&mut self, who: usize) {
        if self.now >= UNREST {
            return;
        }
        let (local, date) = self.clock(who);
        let (fate, length) = (self.random.u16(..1_000), Duration::from_millis(self.random.u64(..30_000)));
        let candidate = &mut self.candidates[who];
        match fate {
            0 | 1 => candidate.offline_until = self.now + length,
            2 => {
                candidate.election =
                    Election::new(LeaderElectionConfig::new("shop", "till").identity("clerk"));
                (candidate.at_work, candidate.waiting, candidate.next_try) = (false, None, local);
            }
            3 if candidate.at_work => {
                candidate.at_work = false;
                candidate.election.step_down();
                candidate.next_try = local + length;
                // Sends only the first request of a release, and ignores its response.
                if let Some(request) = candidate.election.begin_release(date) {
                    self.send(who, request);
                }
                self.candidates[who].waiting = None;
            }
            _ => {}
        }
    }

    fn at_work(&self) -> usize {
        self.candidates.iter().filter(|candidate| candidate.at_work).count()
    }
}

/// Runs the model. Returns the number of terms of leadership, or as an error the time at which two
/// candidates worked at once.
fn run(seed: u64, rates: &[f64]) -> Result<u32, Duration> {
    let mut world = World::new(seed, rates);
    while world.now < UNREST {
        world.step();
        if world.at_work() > 1 {
            return Err(world.now);
        }
    }
    while world.at_work() != 1 {
        world.step();
        assert!(world.now < UNREST + RECOVERY, "seed {seed}: no candidate leads");
        assert!(world.at_work() < 2, "seed {seed}: two candidates work at once");
    }
    Ok(world.terms.values().sum())
}

#[test]
fn model_never_has_two_leaders_and_recovers() {
    let mut terms = 0;
    for seed in 0..150 {
        match run(seed, &[0.92, 1.0, 1.08]) {
            Ok(count) => terms += count,
            Err(at) => panic!("seed {seed}: two candidates work at once after {at:?}"),
        }
    }
    assert!(terms > 150 * 3, "too few terms: {terms}");
}

#[test]
fn late_answer_does_not_make_a_leader() {
    let (mut election, mut server) =
        (Election::new(LeaderElectionConfig::new("shop", "till")), Server::default());
    let (sent, date) = (Instant::now(), Timestamp::now());
    let Next::Send(create) = election.process_response(&Request::Get, Response::NotFound, sent, sent, date)
    else {
        panic!("a missing lease must lead to a create request");
    };
    let late = sent + Duration::from_secs(10);
    let response = server.response(&create);
    assert_eq!(election.process_response(&create, response, sent, late, date), Next::End(Outcome::Failed));
    // The claim is recognized and renewed at once.
    assert_eq!(election.begin(date), Request::Get);
    let response = server.response(&Request::Get);
    let Next::Send(renew) = election.process_response(&Request::Get, response, late, late, date) else {
        panic!("the candidate must recognize and renew its own claim");
    };
    let response = server.response(&renew);
    let received = late + Duration::from_secs(4);
    let next = election.process_response(&renew, response, late, received, date);
    assert_eq!(next, Next::End(Outcome::Leading));
    // The time counts from the start of the request, because other candidates can have seen the
    // write since then.
    assert_eq!(election.work_until(), Some(late + Duration::from_millis(12_500)));
}

#[test]
fn model_finds_two_leaders_with_too_different_clocks() {
    assert!((0..150).any(|seed| run(seed, &[0.7, 1.0, 1.4]).is_err()));
}
