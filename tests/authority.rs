//! Simulates replicas that share a self-managed CA in a Secret, without a cluster. Replicas read and write at any time,
//! restart between steps, lose the connection to the API server, and have wrong clocks. Users empty the `caBundle` of
//! webhook configurations and delete the Secret.
//!
//! After every event, the tests check an invariant: every API server trusts the leaf certificate of every replica that
//! accepts calls. This must hold even if the API server still uses a replaced bundle, for up to `MAX_BUNDLE_AGE`. At
//! the end of a simulation, all writes must stop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;

use portcullis::authority::Timing;
use portcullis::authority::certificate::{BACKDATED, Certificate};
use portcullis::authority::issue;
use portcullis::authority::provided;
use portcullis::authority::state::{Authority, Next, State};
use portcullis::authority::steps::{self, Bundle, Seen, Step};
use proptest::prelude::*;
use time::{Duration, OffsetDateTime};

const TIMING: Timing = Timing {
    authority: Duration::days(30),
    leaf: Duration::hours(6),
    overlap: Duration::minutes(5),
    // As long as the overlap, because API servers in this simulation use old bundles for longer than the default
    // recovery.
    recovery: Duration::minutes(5),
};
/// Maximum time for which an API server uses an old bundle: the overlap of CAs in a rotation, minus the maximum
/// difference between clocks.
const MAX_BUNDLE_AGE: Duration = Duration::minutes(3);
const REPLICAS: usize = 3;
const CONFIGURATIONS: usize = 2;

fn start() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

/// An event in the simulation. Unless a variant says otherwise, its first field is the index of the replica or of the
/// webhook configuration that the event affects.
#[derive(Debug, Clone)]
enum Event {
    /// The replica reads the bundles of the webhook configurations.
    ReadBundles(usize),
    /// The replica reads the Secret, issues a leaf certificate if necessary, and plans its next step.
    ReadSecret(usize),
    /// The replica executes its planned step, even if the replica planned it long ago.
    ExecuteStep(usize),
    /// The replica reads the bundles and the Secret, and executes its next step.
    Reconcile(usize),
    /// The replica is restarted.
    Restart(usize),
    /// The replica loses the connection to the API server, or gets it back.
    ToggleConnection(usize),
    /// This number of seconds passes. Meanwhile, all running replicas periodically read the stored state.
    PassTime(i64),
    /// This number of minutes passes. Meanwhile, no replica reads the stored state.
    PassTimeWithoutReads(i64),
    /// A user requests the rotation of the CA.
    RequestRotation,
    /// A user empties the bundle of this webhook configuration.
    EmptyBundle(usize),
    /// A user deletes the Secret.
    DeleteSecret,
    /// The clock of the replica jumps by this number of minutes.
    JumpClock(usize, i64),
    /// The replica is replaced by a new one. The second field is the number of the provided CA that signs the
    /// certificate of the new replica. If it is `None`, the certificate is self-managed.
    ReplaceReplica(usize, Option<u8>),
}

#[derive(Clone, Debug)]
struct Leaf {
    signer: Certificate,
    certificate: Certificate,
}

#[derive(Default)]
struct Replica {
    /// The provided CA that signed the certificate of the replica. `None` if the certificate is self-managed.
    provided: Option<Certificate>,
    leaf: Option<Leaf>,
    is_ready: bool,
    is_disconnected: bool,
    offset: Duration,
    /// True from a clock jump until the replica reads the Secret with a corrected clock.
    has_clock_jumped: bool,
    known: Option<(State, OffsetDateTime)>,
    remembered: Option<State>,
    bundles: Option<Vec<(u64, Bundle)>>,
    pending: Option<Pending>,
    last_read: Option<OffsetDateTime>,
}

/// A step that a replica has planned, with the data on which the plan is based: the caBundles, and the state in the
/// Secret.
struct Pending {
    step: Step,
    bundles: Vec<(u64, Bundle)>,
    version: u64,
    state: State,
}

/// A version of the caBundle in a webhook configuration. `is_by_user` is true if a user wrote this version, and false
/// if a replica wrote it.
struct BundleVersion {
    since: OffsetDateTime,
    version: u64,
    bundle: Bundle,
    is_by_user: bool,
}

struct Simulation {
    now: OffsetDateTime,
    state: State,
    version: u64,
    rotation_requested: bool,
    configurations: Vec<Vec<BundleVersion>>,
    replicas: Vec<Replica>,
    created_cas: u8,
    writes: usize,
}

impl Simulation {
    fn new() -> Self {
        let now = start();
        let empty = || vec![BundleVersion { since: now, version: 0, bundle: Bundle::default(), is_by_user: true }];
        Self {
            now,
            state: State::default(),
            version: 0,
            rotation_requested: false,
            configurations: (0..CONFIGURATIONS).map(|_| empty()).collect(),
            replicas: (0..REPLICAS).map(|_| Replica::default()).collect(),
            created_cas: 0,
            writes: 0,
        }
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::ReadBundles(at) => self.read_bundles(at),
            Event::ReadSecret(at) => self.read_secret(at),
            Event::ExecuteStep(at) => self.execute_step(at),
            Event::Reconcile(at) => self.reconcile(at),
            Event::Restart(at) => {
                let Replica { offset, has_clock_jumped, ref provided, .. } = self.replicas[at];
                let provided = provided.clone();
                self.replicas[at] = Replica { offset, has_clock_jumped, provided, ..Replica::default() };
            }
            Event::ReplaceReplica(at, tag) => {
                let Replica { offset, has_clock_jumped, .. } = self.replicas[at];
                let provided = tag.map(provided);
                self.replicas[at] = Replica { offset, has_clock_jumped, provided, ..Replica::default() };
            }
            Event::ToggleConnection(at) => self.replicas[at].is_disconnected ^= true,
            Event::PassTime(seconds) => self.pass_time(Duration::seconds(seconds)),
            Event::PassTimeWithoutReads(minutes) => {
                self.now += Duration::minutes(minutes);
                self.reconcile_due_replicas();
            }
            Event::RequestRotation => self.rotation_requested = true,
            // These events happen only while a bundle with all CAs remains. If the Secret and all bundles were lost,
            // the CAs that signed the current certificates could not be found.
            Event::EmptyBundle(at) if self.state.current.is_some() && self.is_complete_except(Some(at)) => {
                self.write_bundle(at, Bundle::default(), true);
            }
            Event::DeleteSecret if self.is_complete_except(None) => {
                self.state = State::default();
                self.version += 1;
            }
            Event::EmptyBundle(_) | Event::DeleteSecret => {}
            Event::JumpClock(at, minutes) => {
                self.replicas[at].offset += Duration::minutes(minutes);
                self.replicas[at].has_clock_jumped = true;
            }
        }
    }

    /// Returns whether the bundle of at least one webhook configuration is complete: it contains exactly the CAs of the
    /// stored state. Does not look at the configuration with the index `at`, if this is set.
    fn is_complete_except(&self, at: Option<usize>) -> bool {
        let wanted = self.state.bundle();
        let others = self.configurations.iter().enumerate().filter(|(other, _)| Some(*other) != at);
        others.map(|(_, history)| history.last().unwrap()).any(|last| last.bundle.is(&wanted))
    }

    /// Lets `time` pass. Meanwhile, running replicas read the stored state every minute, or every ten minutes if `time`
    /// is longer than half an hour. Real replicas read it twice a minute.
    fn pass_time(&mut self, time: Duration) {
        let interval = if time > Duration::minutes(30) { Duration::minutes(10) } else { Duration::minutes(1) };
        let mut remaining = time;
        while remaining > Duration::ZERO {
            let step = remaining.min(interval);
            self.now += step;
            remaining -= step;
            self.reconcile_due_replicas();
        }
    }

    fn reconcile_due_replicas(&mut self) {
        for at in 0..REPLICAS {
            let last_read = self.replicas[at].last_read;
            if last_read.is_some_and(|last_read| self.now - last_read >= Duration::minutes(1)) {
                self.reconcile(at);
            }
        }
    }

    fn reconcile(&mut self, at: usize) {
        self.read_bundles(at);
        self.read_secret(at);
        self.execute_step(at);
    }

    fn read_bundles(&mut self, at: usize) {
        if self.replicas[at].is_disconnected {
            return;
        }
        let read =
            |history: &Vec<BundleVersion>| history.last().map(|last| (last.version, last.bundle.clone())).unwrap();
        self.replicas[at].pending = None;
        self.replicas[at].bundles = Some(self.configurations.iter().map(read).collect());
    }

    fn read_secret(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let (false, Some(read)) = (replica.is_disconnected, replica.bundles.take()) else { return };
        let wall = self.now + replica.offset;
        let since = match &replica.known {
            Some((state, since)) if state.trusts_the_same(&self.state) => *since,
            _ => self.now,
        };
        replica.known = Some((self.state.clone(), since));
        if self.state.current.is_some() {
            replica.remembered = Some(self.state.clone());
        }
        replica.last_read = Some(self.now);
        replica.has_clock_jumped &= replica.offset != Duration::ZERO;
        let is_leaf_valid = replica.leaf.as_ref().is_some_and(|leaf| leaf.certificate.is_valid(wall));
        replica.is_ready &= is_leaf_valid;
        if let Some(signer) = &replica.provided {
            let certificate = Certificate::new(vec![0], wall, wall + TIMING.authority);
            replica.leaf = Some(Leaf { signer: signer.clone(), certificate });
        } else if let Some(signer) = self.state.signer(is_leaf_valid) {
            let is_due = |leaf: &Leaf| leaf.signer != signer.certificate || leaf.certificate.is_due(wall);
            if replica.leaf.as_ref().is_none_or(is_due) {
                let ends = (wall + TIMING.leaf).min(signer.certificate.expires());
                let certificate = Certificate::new(vec![0], wall, ends);
                replica.leaf = Some(Leaf { signer: signer.certificate.clone(), certificate });
            }
        }
        let bundles: Vec<Bundle> = read.iter().map(|(_, bundle)| bundle.clone()).collect();
        let unchanged = self.now - since;
        let seen = Seen {
            state: &self.state,
            bundles: &bundles,
            remembered: replica.remembered.as_ref(),
            now: wall,
            unchanged,
            rotation_requested: self.rotation_requested,
        };
        let (step, unready) = match replica.provided.as_ref().map(std::slice::from_ref) {
            None => (steps::next(&seen, &TIMING), steps::unready(&seen, &TIMING)),
            Some(authority) => {
                (provided::next(&seen, authority, &TIMING), provided::unready(&seen, authority, &TIMING))
            }
        };
        replica.is_ready |= unready.is_none();
        replica.pending = Some(Pending { step, bundles: read, version: self.version, state: self.state.clone() });
    }

    fn execute_step(&mut self, at: usize) {
        if self.replicas[at].is_disconnected {
            return;
        }
        let Some(Pending { step, bundles: read, version, state }) = self.replicas[at].pending.take() else { return };
        let wall = self.now + self.replicas[at].offset;
        let after = match &step {
            Step::Rest(rest) => {
                assert!(*rest > Duration::ZERO, "{state:?}");
                return;
            }
            Step::Publish(wanted) => {
                for (at, (version, bundle)) in read.iter().enumerate() {
                    let is_present = self.configurations[at].last().unwrap().version == *version;
                    if is_present && !bundle.is(wanted) {
                        self.write_bundle(at, Bundle(wanted.clone()), false);
                    }
                }
                return;
            }
            Step::Prepare => state.prepared(self.create_ca(wall)),
            step => state.after(step, wall),
        };
        if self.version == version {
            self.rotation_requested &= step != Step::Prepare;
            assert_ne!(after, state, "{step:?} changes nothing");
            (self.state, self.version) = (after, version + 1);
            self.writes += 1;
        }
    }

    fn create_ca(&mut self, now: OffsetDateTime) -> Authority {
        self.created_cas += 1;
        let certificate = Certificate::new(vec![self.created_cas], now, now + TIMING.authority);
        Authority { certificate, key: String::new() }
    }

    fn write_bundle(&mut self, at: usize, bundle: Bundle, is_by_user: bool) {
        let history = &mut self.configurations[at];
        let version = history.last().unwrap().version + 1;
        history.push(BundleVersion { since: self.now, version, bundle, is_by_user });
        self.writes += 1;
    }

    /// Checks that every API server trusts the leaf certificate of every replica that accepts calls.
    fn check_trust(&self) -> Result<(), TestCaseError> {
        for (number, replica) in self.replicas.iter().enumerate().filter(|(_, replica)| replica.is_ready) {
            let leaf = replica.leaf.as_ref().expect("a ready replica has a leaf certificate");
            if leaf.certificate.expires() <= self.now {
                // A replica may serve an expired leaf only if it has not read for two minutes, if its clock has jumped,
                // or if the last Secret that it read had no CA.
                let is_paused = replica.last_read.is_none_or(|last_read| self.now - last_read > Duration::minutes(2));
                let had_no_ca = replica.known.as_ref().is_none_or(|(state, _)| state.current.is_none());
                prop_assert!(
                    is_paused || replica.has_clock_jumped || had_no_ca,
                    "replica {number} serves an expired leaf"
                );
                continue;
            }
            for history in &self.configurations {
                for (at, written) in history.iter().enumerate().filter(|(_, written)| !written.is_by_user) {
                    let until = history.get(at + 1).map(|next| next.since);
                    let may_be_seen = until.is_none_or(|until| until + MAX_BUNDLE_AGE >= self.now);
                    prop_assert!(
                        !may_be_seen || written.bundle.holds(&leaf.signer),
                        "replica {number} serves a leaf of {:?}, and a bundle since {} is {:?}; {:?}",
                        leaf.signer.der(),
                        written.since,
                        written.bundle,
                        self.state,
                    );
                }
            }
        }
        Ok(())
    }

    fn is_stable(&self) -> bool {
        let State { current, next, old, .. } = &self.state;
        let due = current.as_ref().map(|current| current.certificate.due());
        next.is_none() && old.is_empty() && due.is_some_and(|due| due > self.now + Duration::hours(2))
    }

    /// Restores all connections and clocks, and checks that the replicas reach a stable state in which they stop
    /// writing.
    fn check_convergence(&mut self) -> Result<(), TestCaseError> {
        for at in 0..REPLICAS {
            self.replicas[at].is_disconnected = false;
            self.replicas[at].offset = Duration::ZERO;
            self.reconcile(at);
        }
        self.pass_time(Duration::hours(1));
        self.check_trust()?;
        // A replica with a slow clock may have created a CA that is due for rotation by now.
        let is_due = |current: &Authority| current.certificate.is_due(self.now);
        let is_rotation_over = self.state.next.is_none() || self.state.current.as_ref().is_some_and(is_due);
        prop_assert!(self.state.current.is_some() && is_rotation_over, "{:?}", self.state);
        self.pass_time(TIMING.leaf + Duration::hours(1));
        // A CA that was created with a slow clock is due soon, possibly during this step.
        for _ in 0..3 {
            if !self.is_stable() {
                self.pass_time(TIMING.leaf + Duration::hours(2));
            }
        }
        prop_assert!(self.is_stable(), "{:?}", self.state);
        let writes = self.writes;
        self.pass_time(Duration::hours(1));
        prop_assert_eq!(writes, self.writes, "replicas do not stop writing");
        for replica in &self.replicas {
            prop_assert!(replica.is_ready);
            prop_assert_eq!(&replica.leaf.as_ref().unwrap().signer, &self.state.current.as_ref().unwrap().certificate);
        }
        self.check_trust()
    }
}

/// Returns a CA that is managed outside of Portcullis. Each value of `tag` stands for a different CA.
fn provided(tag: u8) -> Certificate {
    Certificate::new(vec![200 + tag], start(), start() + Duration::days(3650))
}

/// Replaces all replicas one by one. If `tag` is set, the certificates of the new replicas are issued by the CA
/// `provided(tag)`. If it is `None`, they are issued by the self-managed CA. Checks that in the end, the state contains
/// only the CA of the new certificates.
fn replace_all(simulation: &mut Simulation, tag: Option<u8>) -> Result<(), TestCaseError> {
    for at in 0..REPLICAS {
        simulation.apply(&Event::ReplaceReplica(at, tag));
        simulation.reconcile(at);
        simulation.pass_time(Duration::minutes(12));
        simulation.check_trust()?;
        prop_assert!(simulation.replicas[at].is_ready, "{:?}", simulation.state);
    }
    let Some(tag) = tag else { return simulation.check_convergence() };
    // Replicas report the use of a CA four times per leaf lifetime. The CA is forgotten one leaf lifetime after the
    // last report, so one and a half lifetimes are enough.
    simulation.pass_time(TIMING.leaf * 3 / 2 + Duration::hours(2));
    let State { current, next, old, .. } = &simulation.state;
    prop_assert_eq!((current, next, old), (&None, &None, &vec![provided(tag)]));
    let writes = simulation.writes;
    simulation.pass_time(Duration::hours(1));
    prop_assert_eq!(writes, simulation.writes, "replicas do not stop writing");
    simulation.check_trust()
}

fn run(events: &[Event], offsets: [i64; REPLICAS]) -> Result<(), TestCaseError> {
    let mut simulation = Simulation::new();
    for (replica, offset) in simulation.replicas.iter_mut().zip(offsets) {
        replica.offset = Duration::seconds(offset);
    }
    for event in events {
        simulation.apply(event);
        simulation.check_trust()?;
    }
    simulation.check_convergence()
}

fn replica() -> impl Strategy<Value = usize> {
    0..REPLICAS
}

/// Generates common events. These are all events except clock jumps, lost connections, times without reads, and
/// replacements of replicas.
fn common_events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => replica().prop_map(Event::ReadBundles),
        4 => replica().prop_map(Event::ReadSecret),
        4 => replica().prop_map(Event::ExecuteStep),
        6 => replica().prop_map(Event::Reconcile),
        1 => replica().prop_map(Event::Restart),
        4 => (1..400_i64).prop_map(Event::PassTime),
        1 => Just(Event::RequestRotation),
        1 => (0..CONFIGURATIONS).prop_map(Event::EmptyBundle),
        1 => Just(Event::DeleteSecret),
    ]
}

/// Generates common events and two further events. In one of them, a replica loses its connection or gets it back. In
/// the other one, time passes, and no replica reads the stored state.
fn connection_events() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => common_events(),
        1 => replica().prop_map(Event::ToggleConnection),
        1 => (1..600_i64).prop_map(Event::PassTimeWithoutReads),
    ]
}

/// Generates the events of `common_events`, and events that move the clock of a replica by up to about 21 days.
fn clock_events() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => common_events(),
        1 => (replica(), -30_000..30_000_i64).prop_map(|(at, by)| Event::JumpClock(at, by)),
    ]
}

/// Generates rollouts that switch replicas between self-managed certificates and provided CAs, in any order. Some
/// rollouts take much longer than the lifetime of a leaf certificate.
fn rollout_events() -> impl Strategy<Value = Event> {
    let replacement = (replica(), prop::option::of(0..3_u8)).prop_map(|(at, tag)| Event::ReplaceReplica(at, tag));
    prop_oneof![
        3 => replica().prop_map(Event::ReadBundles),
        3 => replica().prop_map(Event::ReadSecret),
        3 => replica().prop_map(Event::ExecuteStep),
        3 => replica().prop_map(Event::Reconcile),
        2 => (0..180_i64).prop_map(Event::PassTime),
        1 => (0..40_000_i64).prop_map(Event::PassTime),
        1 => replica().prop_map(Event::Restart),
        1 => replacement,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_serves_an_untrusted_leaf(
        events in prop::collection::vec(connection_events(), 0..120),
        offsets in prop::array::uniform3(-60..60_i64),
    ) {
        run(&events, offsets)?;
    }

    #[test]
    fn never_serves_an_untrusted_leaf_while_the_source_of_certificates_changes(
        events in prop::collection::vec(rollout_events(), 0..100),
        offsets in [-50..50_i64, -50..50, -50..50],
        last in prop::option::of(0..3_u8),
    ) {
        let mut simulation = Simulation::new();
        for (replica, offset) in simulation.replicas.iter_mut().zip(offsets) {
            replica.offset = Duration::seconds(offset);
        }
        for event in &events {
            simulation.apply(event);
            simulation.check_trust()?;
        }
        replace_all(&mut simulation, last)?;
    }

    #[test]
    fn tolerates_clock_jumps(events in prop::collection::vec(clock_events(), 0..120)) {
        run(&events, [0; REPLICAS])?;
    }
}

/// Regression test: the state must keep the CA that has signed last, although other CAs have later dates. The clocks of
/// the replicas differ by up to twenty days, and the Secret is deleted twice. So more CAs have signed leaf certificates
/// than the state can keep.
#[test]
fn keeps_the_ca_that_signed_last() {
    use Event::{DeleteSecret, JumpClock, PassTime, ReadBundles, Reconcile};
    let events = [
        JumpClock(1, 1_685),
        Reconcile(0),
        PassTime(120),
        JumpClock(0, 24_513),
        JumpClock(0, 22_096),
        PassTime(180),
        DeleteSecret,
        JumpClock(1, 17_989),
        JumpClock(2, 8_280),
        JumpClock(1, -19_934),
        JumpClock(0, -9_531),
        JumpClock(1, -20_260),
        Reconcile(1),
        Reconcile(2),
        PassTime(300),
        PassTime(300),
        JumpClock(0, -15_440),
        ReadBundles(0),
        JumpClock(1, 13_365),
        PassTime(120),
        PassTime(360),
        DeleteSecret,
        PassTime(120),
    ];
    run(&events, [0; REPLICAS]).unwrap();
}

/// Returns a simulation in a stable state, and the CA in use.
fn stable_simulation() -> (Simulation, Certificate) {
    let mut simulation = Simulation::new();
    (0..REPLICAS).for_each(|at| simulation.reconcile(at));
    simulation.pass_time(Duration::minutes(10));
    let current = simulation.state.current.clone().unwrap().certificate;
    (simulation, current)
}

#[test]
fn the_first_provided_ca_is_ready_at_once_and_another_one_after_a_delay() {
    let mut simulation = Simulation::new();
    simulation.apply(&Event::ReplaceReplica(0, Some(0)));
    (0..4).for_each(|_| simulation.reconcile(0));
    assert!(simulation.replicas[0].is_ready, "no API server trusts another CA yet: {:?}", simulation.state);
    simulation.apply(&Event::ReplaceReplica(1, Some(1)));
    (0..4).for_each(|_| simulation.reconcile(1));
    assert!(!simulation.replicas[1].is_ready, "API servers may not have seen its CA: {:?}", simulation.state);
    assert_eq!(simulation.state.old, [provided(1), provided(0)]);
    simulation.pass_time(TIMING.recovery + Duration::minutes(1));
    assert!(simulation.replicas[1].is_ready);
    simulation.check_trust().unwrap();
    replace_all(&mut simulation, Some(1)).unwrap();
}

#[test]
fn keeps_a_provided_ca_in_the_bundles_if_the_secret_is_deleted() {
    let (mut simulation, _) = stable_simulation();
    for at in 0..REPLICAS {
        simulation.apply(&Event::ReplaceReplica(at, Some(0)));
        simulation.reconcile(at);
    }
    simulation.pass_time(Duration::minutes(10));
    (simulation.state, simulation.version) = (State::default(), simulation.version + 1);
    simulation.pass_time(Duration::minutes(10));
    assert_eq!(simulation.state.old[0], provided(0));
    simulation.check_trust().unwrap();
    replace_all(&mut simulation, None).unwrap();
}

/// Advances the simulated time until two minutes before the replicas remove the CA `authority` from the Secret. No
/// replica uses this CA.
fn wait_until_almost_forgotten(simulation: &mut Simulation, authority: &Certificate) {
    let lease = TIMING.leaf + TIMING.leaf / 4 + TIMING.overlap;
    while simulation.state.last_use(authority).unwrap() + lease - Duration::minutes(2) > simulation.now {
        simulation.pass_time(Duration::minutes(1));
    }
    assert!(simulation.state.bundle().contains(authority));
}

/// Checks that a new replica with a provided CA becomes ready only after it has reported in the Secret that it uses
/// this CA. Without the report, the other replicas would soon remove the CA.
///
/// The CA has not been used for a long time. The new replica reads the webhook configurations, and then pauses. It
/// reads the Secret two minutes before the other replicas remove the CA.
#[test]
fn a_replica_reports_its_provided_ca_before_it_is_ready() {
    let mut simulation = Simulation::new();
    simulation.apply(&Event::ReplaceReplica(1, Some(2)));
    simulation.reconcile(1);
    simulation.reconcile(2);
    simulation.pass_time(Duration::hours(9));
    assert!(simulation.replicas[1].is_ready && simulation.state.old == [provided(2)]);
    simulation.apply(&Event::ReplaceReplica(1, None));
    simulation.reconcile(1);
    simulation.apply(&Event::ReplaceReplica(0, Some(2)));
    simulation.read_bundles(0);
    wait_until_almost_forgotten(&mut simulation, &provided(2));
    simulation.read_secret(0);
    assert!(!simulation.replicas[0].is_ready);
    simulation.pass_time(Duration::minutes(10));
    simulation.check_trust().unwrap();
    assert!(simulation.replicas[0].is_ready);
    replace_all(&mut simulation, Some(2)).unwrap();
}

/// Checks that a new replica becomes ready only after it has reported in the Secret which CA it uses. The new replica
/// signs its certificate with the CA in the Secret, and the other replicas use a provided CA. For a new replica with a
/// provided CA, see `a_replica_reports_its_provided_ca_before_it_is_ready`.
#[test]
fn a_replica_reports_its_own_ca_before_it_is_ready() {
    let (mut simulation, current) = stable_simulation();
    for at in [1, 2] {
        simulation.apply(&Event::ReplaceReplica(at, Some(0)));
        simulation.reconcile(at);
    }
    simulation.apply(&Event::ReplaceReplica(0, None));
    simulation.pass_time(Duration::hours(2));
    simulation.read_bundles(0);
    wait_until_almost_forgotten(&mut simulation, &current);
    simulation.read_secret(0);
    assert!(!simulation.replicas[0].is_ready);
    simulation.pass_time(Duration::minutes(10));
    simulation.check_trust().unwrap();
    assert!(simulation.replicas[0].is_ready);
    replace_all(&mut simulation, None).unwrap();
}

#[test]
fn restores_the_ca_when_the_secret_is_deleted() {
    let (mut simulation, current) = stable_simulation();
    let leaf = simulation.replicas[0].leaf.clone().unwrap().certificate;
    simulation.apply(&Event::DeleteSecret);
    simulation.reconcile(0);
    assert_eq!(simulation.state.current.as_ref().unwrap().certificate, current);
    (0..REPLICAS).for_each(|at| simulation.reconcile(at));
    assert_eq!(simulation.replicas[0].leaf.as_ref().unwrap().certificate, leaf, "the leaf certificate was replaced");
    simulation.apply(&Event::Restart(1));
    simulation.reconcile(1);
    assert!(simulation.replicas[1].is_ready, "a new replica is ready at once");
    simulation.check_convergence().unwrap();
}

#[test]
fn replaces_the_ca_when_the_secret_is_deleted_while_all_replicas_are_stopped() {
    let (mut simulation, former) = stable_simulation();
    (0..REPLICAS).for_each(|at| simulation.apply(&Event::Restart(at)));
    simulation.apply(&Event::DeleteSecret);
    (0..REPLICAS).for_each(|at| simulation.reconcile(at));
    assert!(!simulation.replicas[0].is_ready);
    simulation.pass_time(TIMING.recovery + Duration::minutes(2));
    assert!(simulation.replicas.iter().all(|replica| replica.is_ready));
    assert_ne!(simulation.state.current.as_ref().unwrap().certificate, former);
    assert_eq!(simulation.state.old, [former], "leaves of the former CA stay trusted");
    simulation.check_convergence().unwrap();
}

#[test]
fn recovers_within_a_minute_by_default() {
    assert!(Timing::default().recovery < Duration::minutes(1));
    assert_eq!(Timing::new(Duration::days(1), Duration::hours(1), Duration::seconds(2)).recovery, Duration::seconds(2));
}

#[test]
fn rotates_the_ca_within_a_year() {
    let mut simulation = Simulation::new();
    (0..REPLICAS).for_each(|at| simulation.reconcile(at));
    let mut seen = BTreeMap::new();
    for _ in 0..365 * 12 {
        simulation.apply(&Event::PassTimeWithoutReads(120));
        simulation.pass_time(Duration::minutes(2));
        simulation.check_trust().unwrap();
        let current = simulation.state.current.as_ref().unwrap().certificate.clone();
        assert!(current.is_valid(simulation.now));
        seen.entry(current.der().to_vec()).or_insert(simulation.now);
    }
    // A CA is replaced after two thirds of its thirty days. The first CA is created at the beginning.
    assert!((17..=19).contains(&seen.len()), "{seen:?}");
}

#[test]
fn replaces_an_expired_ca_without_failed_calls() {
    let mut simulation = Simulation::new();
    (0..REPLICAS).for_each(|at| simulation.reconcile(at));
    simulation.pass_time(Duration::minutes(10));
    let first = simulation.state.current.clone().unwrap().certificate;
    // All replicas are stopped for longer than the lifetime of the CA.
    (0..REPLICAS).for_each(|at| simulation.replicas[at] = Replica::default());
    simulation.now += TIMING.authority + Duration::hours(1);
    simulation.reconcile(0);
    assert!(!simulation.replicas[0].is_ready);
    assert_eq!(
        simulation.state.current.as_ref().unwrap().certificate,
        first,
        "the next CA signs before API servers trust it"
    );
    simulation.pass_time(TIMING.overlap / 2);
    assert_eq!(simulation.state.current.as_ref().unwrap().certificate, first);
    simulation.pass_time(TIMING.overlap * 2);
    assert_ne!(simulation.state.current.as_ref().unwrap().certificate, first);
    assert!(simulation.replicas[0].is_ready);
}

#[test]
fn reads_the_state_that_it_wrote() {
    let make = || issue::authority(start(), Duration::days(1)).unwrap();
    let (current, old) = (make(), make().certificate);
    let next = Next { authority: make(), published: Some(start()) };
    let state = State {
        current: Some(current),
        next: Some(next),
        old: vec![old],
        switched: Some(start()),
        announced: Some(start()),
        used: BTreeMap::from([("a".to_owned(), start()), ("b".to_owned(), start())]),
    };
    let mut data = BTreeMap::from([("theirs".to_owned(), b"kept".to_vec())]);
    state.write(&mut data);
    assert_eq!(State::read(&data), (state, Vec::new()));
    State::default().write(&mut data);
    assert_eq!(data, BTreeMap::from([("theirs".to_owned(), b"kept".to_vec())]));
}

#[test]
fn ignores_unreadable_entries_of_the_secret() {
    let current = Some(issue::authority(start(), Duration::days(1)).unwrap());
    let state = State { current, ..State::default() };
    let mut whole = BTreeMap::new();
    state.write(&mut whole);
    let other = issue::authority(start(), Duration::days(1)).unwrap();
    for (key, value) in [
        ("ca.key", other.key.as_bytes()),
        ("ca.key", b"".as_slice()),
        ("ca.crt", b"-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n".as_slice()),
        ("ca.crt", &[0xff, 0xfe]),
        ("ca.crt", &whole["ca.crt"][..100]),
    ] {
        let mut data = whole.clone();
        data.insert(key.to_owned(), value.to_vec());
        let (read, problems) = State::read(&data);
        assert_eq!(read, State::default(), "{key}");
        assert!(problems.iter().any(|problem| problem.contains("ca.crt")), "{problems:?}");
    }
    let mut data = whole.clone();
    data.insert("switched".to_owned(), b"yesterday".to_vec());
    let (read, problems) = State::read(&data);
    assert_eq!((read, problems.len()), (state, 1));
}

#[test]
fn leaves_are_verified_by_their_ca_and_do_not_outlive_it() {
    use rustls::client::WebPkiServerVerifier;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    let authority = issue::authority(start(), Duration::days(2)).unwrap();
    let names = ["portcullis.portcullis-system.svc".to_owned(), "127.0.0.1".to_owned()];
    let leaf = issue::leaf(&authority, &names, start(), Duration::days(7)).unwrap();
    assert_eq!(leaf.certificate.expires(), authority.certificate.expires());

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(authority.certificate.der().to_vec())).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let at = |when: OffsetDateTime, name: &'static str| {
        use rustls::client::danger::ServerCertVerifier as _;
        let when = UnixTime::since_unix_epoch(std::time::Duration::from_secs(when.unix_timestamp() as u64));
        let leaf = CertificateDer::from(leaf.certificate.der());
        verifier.verify_server_cert(&leaf, &[], &ServerName::try_from(name).unwrap(), &[], when).is_ok()
    };
    for name in ["portcullis.portcullis-system.svc", "127.0.0.1"] {
        assert!(at(start(), name));
        assert!(at(start() - BACKDATED, name), "a client with a slow clock rejects it");
        assert!(!at(start() - BACKDATED - Duration::SECOND, name));
        assert!(!at(start() + Duration::days(3), name));
    }
    assert!(!at(start(), "localhost"));
    let read = Certificate::read_all(leaf.certificate.pem().as_bytes()).unwrap();
    assert_eq!(read, std::slice::from_ref(&leaf.certificate), "the certificate changes when it is written and read");
}
